"""The quick check of a value knows most that fit, and takes none that does not for one."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.toolkit.schema_shortcut import shortcut

TEXT = {"type": "string", "description": "A text."}
EDIT = {"type": "object", "properties": {"old": TEXT}, "required": ["old"]}
NESTED = {
    "type": "object",
    "properties": {
        "path": TEXT,
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "mode": {"type": "string", "enum": ["read", "write"]},
        "ratio": {"type": "number"},
        "edits": {
            "type": "array",
            "items": {"type": "object", "properties": {"old": TEXT}, "required": ["old"]},
        },
        "flags": {"type": "array"},
        "any": {},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "value",
    [
        {"path": "a"},
        {"path": "a", "limit": None, "mode": "read", "ratio": 0.5, "any": [1, {}]},
        {"path": "a", "limit": 3, "ratio": 1, "edits": [{"old": "x", "more": 1}], "flags": [1, "a"]},
    ],
)
def test_what_fits_a_schema_as_tools_have_it_is_known_at_once(value: Any) -> None:
    fits = shortcut(NESTED)
    assert fits
    assert fits(value)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"path": 1},
        {"path": "a", "other": 1},
        {"path": "a", "limit": True},
        {"path": "a", "limit": 1.5},
        {"path": "a", "mode": "delete"},
        {"path": "a", "ratio": False},
        {"path": "a", "edits": [{"old": "x"}, {}]},
        {"path": "a", "flags": "text"},
        [],
        None,
    ],
)
def test_what_does_not_fit_is_never_taken_for_it(value: Any) -> None:
    fits = shortcut(NESTED)
    assert fits
    assert not fits(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 1},
        {"type": "object", "patternProperties": {}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}},
        {"type": ["string", "null"]},
        {"type": "array", "items": [{"type": "string"}]},
        {"anyOf": [{"type": "string"}, {"const": 1}]},
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"},
        {"enum": [1, 2]},
        {"type": "unheard"},
        False,
    ],
)
def test_a_schema_with_other_words_has_no_quick_check(schema: Any) -> None:
    assert shortcut(schema) is None


leaves = st.sampled_from(
    [{"type": name} for name in ("string", "integer", "number", "boolean", "null", "array", "object")]
    + [{}, {"type": "string", "enum": ["a", "b"]}, {"type": "string", "maxLength": 1}]
)
names = st.lists(st.sampled_from("abc"), unique=True)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda forms: {"anyOf": forms}, st.lists(inner, min_size=1, max_size=2)),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), inner)},
            optional={
                "required": st.lists(st.sampled_from("abc"), unique=True),
                "additionalProperties": st.booleans(),
            },
        ),
    ),
    max_leaves=5,
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["a", "b", "cc"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner)),
    max_leaves=5,
)


@given(schemas, values)
def test_the_library_agrees_with_every_yes(schema: dict[str, Any], value: Any) -> None:
    fits = shortcut(schema)
    if fits and fits(value):
        jsonschema.Draft202012Validator(schema).validate(value)
