"""An input that is made up from a schema fits the schema, or it is said that there is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noeta.toolkit.schema import check_schema
from noeta_cli.plugins.samples import sample


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "minLength": 6}, "textxx"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 3}, 3),
        ({"type": "integer", "default": 7}, 7),
        ({"type": "integer", "examples": [9]}, 9),
        ({"type": "integer"}, 0),
        ({"type": "integer", "minimum": 3, "multipleOf": 2}, 4),
        ({"type": "integer", "exclusiveMinimum": 3}, 4),
        ({"type": "number", "maximum": -1.5}, -2),
        ({"type": "number", "exclusiveMaximum": 0}, -1),
        ({"type": "boolean"}, False),
        ({"type": "null"}, None),
        ({"type": ["string", "null"]}, "text"),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [0, 0]),
        ({"type": "array"}, []),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, 0),
        ({"allOf": [{"type": "string"}, {"minLength": 5}]}, "textx"),
        ({"$ref": "#/$defs/place"}, {"at": "text"}),
        ({}, "text"),
    ],
)
def test_what_is_made_up_is_the_smallest_that_fits(schema: dict[str, Any], made: Any) -> None:
    whole = {**of(it=schema), "$defs": {"place": of(at={"type": "string"})}}
    assert sample(whole) == {"it": made}
    assert check_schema(whole, sample(whole)) is None


def test_what_is_not_required_is_left_out() -> None:
    assert sample({"type": "object", "properties": {"at": {"type": "string"}}}) == {}


@pytest.mark.parametrize(
    "schema",
    [
        of(it={"type": "string", "pattern": "^[0-9]{4}$"}),
        of(it={"$ref": "#/$defs/nowhere"}),
        {**of(it={"$ref": "#/$defs/self"}), "$defs": {"self": {"$ref": "#/$defs/self"}}},
        of(it=False),
        {"type": "string"},
    ],
)
def test_a_schema_that_nothing_is_found_for_is_told(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        sample(schema)


SIZES = st.integers(-30, 30)


@settings(deadline=None)
@given(SIZES, st.integers(0, 30), st.integers(1, 7), st.sampled_from(["minimum", "exclusiveMinimum"]))
def test_a_number_within_bounds_fits_them(least: int, room: int, step: int, kind: str) -> None:
    bounds = {kind: least, "maximum": least + step + room, "multipleOf": step}
    schema = of(it={"type": "integer", **bounds})
    made = sample(schema)
    assert check_schema(schema, made) is None
