"""A quick way through the schemas that tools have: a check that knows most values that fit.

Nearly every call fits, and its schema uses few of the words there are. The library says what is wrong with
the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Fits = Callable[[Any], bool]
TYPES: dict[str, type] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
SILENT = frozenset(
    {"title", "description", "default", "examples", "deprecated", "format", "$comment", "$defs"}
)
"""Words that say nothing of a value here."""
OF_OBJECTS = frozenset({"properties", "required", "additionalProperties"})


def shortcut(schema: object) -> Fits | None:
    """A check that is true of values that fit `schema` and of no other; None when that is not simple.

    It may be false of a value that fits: a whole number written as ``1.0``, say.
    """
    match _bare(schema):
        case {"type": "object", **rest} if rest.keys() <= OF_OBJECTS:
            words: dict[Any, Any] = {"properties": {}, "required": (), "additionalProperties": True} | rest
            return _object(*words.values())
        case {"type": "array", **rest} if rest.keys() <= {"items"}:
            inner = shortcut(rest.get("items", {}))
            return inner and (lambda value: type(value) is list and all(map(inner, value)))
        case {"type": "string", "enum": list(allowed), **rest} if not rest:
            texts = frozenset(word for word in allowed if isinstance(word, str))
            return lambda value: type(value) is str and value in texts
        case {"type": "number", **rest} if not rest:
            return lambda value: type(value) is float or type(value) is int
        case {"type": str(name), **rest} if not rest and name in TYPES:
            wanted = TYPES[name]
            return lambda value: type(value) is wanted
        case {"anyOf": list(forms), **rest} if not rest:
            checks = [shortcut(form) for form in forms]
            return None if None in checks else lambda value: any(fits(value) for fits in checks if fits)
        case {**rest} if not rest:
            return lambda value: True
    return None


def _bare(schema: object) -> Any:
    """The words of `schema` that count."""
    return {k: v for k, v in schema.items() if k not in SILENT} if isinstance(schema, dict) else schema


def _object(properties: dict[str, Any], required: Any, open_: object) -> Fits | None:
    checks, needed = {name: shortcut(inner) for name, inner in properties.items()}, frozenset(required)
    if None in checks.values() or not isinstance(open_, bool):
        return None

    def fits(value: Any) -> bool:
        if type(value) is not dict or not needed <= value.keys():
            return False
        for name, inner in value.items():
            check = checks.get(name)
            if not (open_ if check is None else check(inner)):
                return False
        return True

    return fits
