"""An input for a tool, made up from its schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 20
WORD = "text"


def sample(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The smallest input that fits. Raises `ValueError` with the reason when none is found."""
    from noeta.toolkit.schema import check_schema

    try:
        made = _made(schema, schema, 0)
    except (KeyError, IndexError, TypeError, RecursionError) as error:
        raise ValueError(f"its schema is too intricate ({error!r})") from error
    if not isinstance(made, dict):
        raise ValueError(f"its schema asks for {made!r}, which is no object")  # noqa: TRY004 (no argument)
    if why := check_schema(dict(schema), made):
        raise ValueError(why.rstrip("."))
    return made


def _made(schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    if isinstance(schema, bool):
        return WORD
    if depth > MAX_DEPTH:
        raise RecursionError("it refers to itself")
    if isinstance(ref := schema.get("$ref"), str):
        found: Any = root
        for part in ref.removeprefix("#").strip("/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        return _made(found, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    if "default" in schema:
        return schema["default"]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _made({**schema, key: None, **schema[key][0]}, root, depth + 1)
    if schema.get("allOf"):
        merged: dict[str, Any] = {**schema, "allOf": None}
        for each in schema["allOf"]:
            merged |= each
        return _made(merged, root, depth + 1)
    return _of_type(schema, root, depth)


def _of_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {
                name: _made(properties.get(name, True), root, depth + 1)
                for name in schema.get("required", ())
            }
        case "array":
            items = schema.get("items", True)
            return [_made(items, root, depth + 1) for _ in range(schema.get("minItems", 0))]
        case "string":
            text = WORD.ljust(schema.get("minLength", 0), "x")
            return text[: schema.get("maxLength", len(text))]
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return False
        case _:
            return None


def _number(schema: Mapping[str, Any]) -> int | float:
    least = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf))
    most = schema.get("maximum", schema.get("exclusiveMaximum", math.inf))
    step = schema.get("multipleOf", 1)
    value = 0 if least <= 0 <= most else least if least > 0 else most
    value = math.ceil(value / step) * step if value >= 0 else math.floor(value / step) * step
    if value == schema.get("exclusiveMinimum"):
        value += step
    if value == schema.get("exclusiveMaximum"):
        value -= step
    return int(value) if float(value).is_integer() else value
