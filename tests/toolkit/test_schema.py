"""`check_schema` says where a value does not fit and why, and nothing makes it raise."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import time
import weakref
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.toolkit.schema import MAX_SCHEMAS, check_schema, schema_fault

FILES = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "maxLength": 5},
        "limit": {"type": ["integer", "null"], "minimum": 1},
        "mode": {"enum": ["read", "write", 3]},
        "title": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}},
                "required": ["path"],
                "additionalProperties": False,
                "patternProperties": {"^x-": {}},
            },
        },
        "target": {
            "anyOf": [
                {"type": "object", "properties": {"a": {"const": 7}, "b": {"type": "null"}}},
                {
                    "type": "object",
                    "properties": {
                        "a": {"type": "integer"},
                        "c": {"anyOf": [{"type": "null"}, {"properties": {"d": {"enum": [2, 3]}}}]},
                    },
                    "required": ["a"],
                },
                {"type": "string"},
            ]
        },
    },
    "required": ["path"],
    "additionalProperties": False,
}
KNOWN = "known are 'path', 'limit', 'mode', 'title', 'files', 'target'"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"path": "a"}, None),
        ({"path": "a", "limit": None, "mode": 3, "title": "t", "files": [{"path": "b", "x-y": 1}]}, None),
        ({"pth": "a"}, f"$.pth: there is no such property (did you mean 'path'?); {KNOWN}"),
        ({"path": "a", "zzz": 1}, f"$.zzz: there is no such property; {KNOWN}"),
        ({"path": "a", "x y": 1}, f"$['x y']: there is no such property; {KNOWN}"),
        ({}, "$.path: it is required and missing"),
        ([], "$: must be of type object, not array"),
        (None, "$: must be of type object, not null"),
        ({"path": True}, "$.path: must be of type string, not boolean"),
        ({"path": "a", "limit": 1.5}, "$.limit: must be of type integer or null, not number"),
        ({"path": "a", "limit": "1"}, "$.limit: must be of type integer or null, not string"),
        ({"path": "a", "limit": 0}, "$.limit: 0 is less than the minimum of 1"),
        ({"path": "a", "title": {}}, "$.title: must be of type string or null, not object"),
        ({"path": "a", "target": 3}, "$.target: must be of type object or string, not integer"),
        ({"path": "a", "target": {"a": "x"}}, "$.target.a: must be of type integer, not string"),
        ({"path": "a", "target": {"a": 8, "c": {"d": 2}, "b": 3}}, None),
        ({"path": "a", "target": {"b": 1}}, "$.target.b: must be of type null, not integer"),
        (
            {"path": "a", "target": {"a": 1, "b": "x", "c": {"d": 1}}},
            "$.target.c.d: must be one of 2, 3, not 1",
        ),
        (
            {"path": "a", "mode": "wirte"},
            "$.mode: must be one of 'read', 'write', 3, not 'wirte' (did you mean 'write'?)",
        ),
        ({"path": "a", "mode": []}, "$.mode: must be one of 'read', 'write', 3, not []"),
        (
            {"path": "a", "files": [{"path": "b"}, {"path": 5}]},
            "$.files[1].path: must be of type string, not integer",
        ),
        ({"path": "a", "files": [{}]}, "$.files[0].path: it is required and missing"),
        (
            {"path": "a", "files": [{"path": "b", "x-": 1, "pat": 2}]},
            "$.files[0].pat: there is no such property (did you mean 'path'?); known are 'path'",
        ),
    ],
)
def test_a_sentence_names_the_place_and_what_is_wrong_there(value: object, said: str | None) -> None:
    assert check_schema(FILES, value) == said


def test_one_word_that_is_allowed_is_named() -> None:
    assert check_schema({"properties": {"a": {"const": 7}}}, {"a": "x"}) == "$.a: must be 7, not 'x'"


def test_a_long_value_is_not_repeated() -> None:
    assert check_schema(FILES, {"path": "x" * 1_000}) == "$.path: it is too long"
    said = check_schema(FILES, {"path": "a", "mode": "x" * 1_000})
    assert said is not None
    assert len(said) < 200


def test_a_sentence_is_short_and_soon_there_however_much_is_wrong() -> None:
    names = {f"name{i}": {"type": "integer"} for i in range(2_000)}
    many = {"type": "object", "properties": names, "additionalProperties": False}
    said = check_schema(many, {"name" * 5_000: 1})
    assert said is not None
    assert len(said) < 2_000
    assert said.endswith("'name39' and 1960 more")
    fixed = {"type": "object", "properties": {"a": {"enum": [*names]}, "b": {"const": [0] * 9_999}}}
    for value in ({"a": "nam"}, {"b": 1}):
        assert len(check_schema(fixed, value) or "") < 2_000
    numbers = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    begun = time.process_time()
    assert "must be of type integer, not string" in (check_schema(numbers, {"a": ["x"] * 200_000}) or "")
    assert time.process_time() - begun < 5


def test_a_key_without_a_name_for_it_is_told_as_unknown() -> None:
    assert check_schema({"additionalProperties": False}, {"a": 1}) == "$.a: there is no such property"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "object", "properties": []}, "$.properties: must be of type object, not array"),
        (
            {"type": "object", "properties": {"a": {"minimum": "3"}}},
            "$.properties.a.minimum: must be of type number, not string",
        ),
        ({"type": "object", "$ref": "#/nope"}, "it refers to '#/nope', which is not in it"),
        (
            {"type": "object", "properties": {"a": {"items": {"$ref": "https://example.com/a.json"}}}},
            "it refers to 'https://example.com/a.json', which is not in it",
        ),
        ({"type": "object", "$schema": []}, "its $schema is no text"),
        (
            {"type": "object", "patternProperties": {"(": {}}},
            "the pattern '(' cannot be read: missing ) at position 1",
        ),
    ],
)
def test_a_broken_schema_is_named_as_what_is_wrong(schema: dict[str, Any], why: str) -> None:
    assert schema_fault(schema) == why
    assert check_schema(schema, {"a": [1]}) == f"the schema is wrong: {why}"


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (5, "a schema is a dict, not a int"),
        (None, "a schema is a dict, not a NoneType"),
        ({}, "it has no type, and the input of a tool is an object: write 'type': 'object'"),
        (
            {"type": "array"},
            "its type is 'array', and the input of a tool is an object: write 'type': 'object'",
        ),
    ],
)
def test_a_schema_that_is_no_objects_cannot_be_a_tools(schema: object, why: str) -> None:
    assert schema_fault(schema) == why


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-07/schema#", "urn:nobody-knows-this"])
def test_a_schema_of_another_draft_is_checked(draft: str) -> None:
    schema = {
        "$schema": draft,
        "type": "object",
        "definitions": {"name": {"type": "string"}},
        "properties": {"a": {"$ref": "#/definitions/name"}},
    }
    assert schema_fault(schema) is None
    assert check_schema(schema, {"a": 1}) == "$.a: must be of type string, not integer"


def test_a_pattern_of_another_dialect_lets_every_text_pass() -> None:
    schema = {"properties": {"a": {"pattern": r"^\p{L}+$"}, "b": {"pattern": "^b+$"}}}
    assert check_schema(schema, {"a": "anything", "b": 3}) is None
    assert check_schema(schema, {"b": "x"}) == "$.b: 'x' does not match the pattern '^b+$'"


def test_a_schema_or_a_value_without_end_gives_a_sentence() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    nested: dict[str, Any] = {}
    for _ in range(10_000):
        nested = {"items": nested}
    circular = {"$ref": "#"}
    tree = {"type": "array", "items": {"$ref": "#"}}
    assert "without end" in str(check_schema(circular, 1))
    assert "nested too deep" in str(check_schema(tree, deep))
    assert "nested too deep" in str(check_schema(nested, [[]]))


def test_no_schema_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("it opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    for address in ("http://127.0.0.1:9/a.json", "file:///etc/passwd"):
        assert "which is not in it" in str(check_schema({"$ref": address}, 1))
    assert check_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}) is None


def test_schemas_are_told_apart_though_they_share_an_address_in_turn() -> None:
    for _ in range(100):
        assert check_schema({"type": "string"}, 1) is not None
        assert check_schema({"type": "integer"}, 1) is None


def test_only_so_many_schemas_are_kept() -> None:
    class Schema(dict[str, Any]):
        """A dict that can be watched."""

    first = Schema(type="string")
    gone = weakref.ref(first)
    assert check_schema(first, "a") is None
    del first
    for _ in range(MAX_SCHEMAS):
        check_schema({}, 1)
    gc.collect()
    assert gone() is None


def test_the_library_is_loaded_by_the_first_check() -> None:
    code = (
        "import sys, noeta.toolkit.schema as s; assert 'jsonschema' not in sys.modules;"
        "s.check_schema({}, 1); assert 'jsonschema' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
words = [
    *("type", "properties", "items", "anyOf", "required", "$ref", "enum", "pattern", "minimum", "$id", "not"),
    *("additionalProperties", "patternProperties", "$defs", "const", "uniqueItems", "$schema", "allOf"),
]
wild_schemas = st.recursive(
    st.sampled_from(["string", "object", "a", "#", "#/$defs/a", "(", 1, -1, None, True, False, []]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*words, "a"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(words), wild_schemas, max_size=4), json_values)
def test_whatever_the_schema_and_the_value_are_there_is_a_sentence_or_none(
    schema: dict[str, Any], value: object
) -> None:
    for said in (check_schema(schema, value), schema_fault(schema)):
        assert said is None or (said and "Traceback" not in said)


tame_schemas = st.recursive(
    st.sampled_from(
        [
            *({}, {"type": "string"}, {"type": "integer"}, {"type": ["null", "boolean"]}),
            *({"enum": ["a", 1]}, {"minimum": 0}, {"maxLength": 1}, {"const": None}),
        ]
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
                "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
                "additionalProperties": st.booleans(),
            }
        ),
    ),
    max_leaves=5,
)
small_values = st.recursive(
    st.sampled_from([None, True, 0, -1, 1.5, "", "a", "abc"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=6,
)


@given(tame_schemas, small_values)
def test_a_sentence_comes_exactly_when_the_value_does_not_fit(schema: dict[str, Any], value: object) -> None:
    fits: bool = jsonschema.Draft202012Validator(schema).is_valid(value)
    said = check_schema(schema, value)
    assert (said is None) == fits
    assert said is None or said.startswith("$")


SLOW = "^(a|a)*$|(a+)+b$|^(([a-z])+.)+[A-Z]([a-z])+$"
EVIL = "a" * 40 + "!"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"x": {"pattern": SLOW}}}, {"x": EVIL}),
        ({"patternProperties": {SLOW: {"type": "string"}}}, {EVIL: "x"}),
        ({"patternProperties": {SLOW: {}}, "additionalProperties": False}, {EVIL: "x"}),
        ({"properties": {"x": {"items": {"pattern": SLOW}}}}, {"x": [f"{EVIL}{n}" for n in range(1_000)]}),
        ({"anyOf": [{"properties": {"x": {"pattern": SLOW}}}, {"required": ["y"]}]}, {"x": EVIL}),
    ],
    ids=["value", "name", "extra", "many", "choice"],
)
def test_a_pattern_that_takes_for_ever_is_given_up_and_lets_nothing_pass(schema: Any, value: Any) -> None:
    began = time.monotonic()
    said = check_schema({"type": "object", **schema}, value)
    assert said is not None
    assert "takes too long to compare with" in said
    assert len(said) < 300
    assert time.monotonic() - began < 10


def test_patterns_of_names_decide_what_is_extra() -> None:
    schema = {"patternProperties": {"^x-": {"type": "integer"}}, "properties": {"y": {}}}
    closed = {"type": "object", **schema, "additionalProperties": False}
    assert check_schema(closed, {"x-1": 1, "y": "a"}) is None
    assert check_schema(closed, {"x-1": "a"}) == "$.x-1: must be of type integer, not string"
    assert check_schema(closed, {"z": 1}) == "$.z: there is no such property; known are 'y'"
    typed = {"type": "object", **schema, "additionalProperties": {"type": "string"}}
    assert check_schema(typed, {"z": 1}) == "$.z: must be of type string, not integer"
    assert check_schema(typed, {"z": "a", "x-1": 2}) is None
    both = {"type": "object", **schema, "unevaluatedProperties": False}
    assert "unevaluatedProperties" in (check_schema(both, {}) or "")
