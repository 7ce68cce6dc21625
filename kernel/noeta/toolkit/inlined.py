"""Making a JSON Schema small and strict: parts stand where they are used, and objects are closed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PARTS = "#/$defs/"
# The keywords that hold schemas, by how they hold them. What stands under any other keyword is data.
BY_NAME = ("properties", "patternProperties")
IN_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
ALONE = ("additionalProperties", "items")


def inlined(schema: dict[str, Any], parts: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """`schema` with each of the `parts` in the place of its ``$ref``.

    A part that holds itself, or that is used twice and is more than a list of words, stays under ``$defs``.
    Titles are left out. An object that says what it may hold may hold nothing else, and any other says that
    it is open.
    """
    uses = [name for node in (schema, *parts.values()) for name in _refs(node)]
    shared = {name for name, part in parts.items() if uses.count(name) > 1 and "enum" not in part}
    kept = shared | {name for name in parts if name in _reach(name, parts)}

    def placed(node: dict[str, Any]) -> dict[str, Any]:
        rest = _each(node, placed)
        # A discriminator points to parts that may be gone; what it says is in the parts too.
        rest.pop("discriminator", None)
        if rest.get("type") == "object":
            rest.setdefault("additionalProperties", "properties" not in rest)
        name = _name(node)
        if name is None or name in kept:
            return rest
        del rest["$ref"]
        return part(name) | rest

    def part(name: str) -> dict[str, Any]:
        return placed({key: value for key, value in parts[name].items() if key != "title"})

    definitions = {name: part(name) for name in parts if name in kept}
    return {**placed(schema), **({"$defs": definitions} if definitions else {})}


def _each(node: dict[str, Any], change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """`node` with each schema right inside it changed."""

    def changed(key: str, value: Any) -> Any:
        if key in BY_NAME:
            return {name: change(inner) for name, inner in value.items()}
        if key in IN_LISTS:
            return [change(inner) for inner in value]
        return change(value) if key in ALONE and isinstance(value, dict) else value

    return {key: changed(key, value) for key, value in node.items()}


def _name(node: Mapping[str, Any]) -> str | None:
    """The part that `node` stands for."""
    ref = node.get("$ref")
    return ref.removeprefix(PARTS) if isinstance(ref, str) else None


def _refs(node: dict[str, Any]) -> list[str]:
    """The parts that `node` refers to, as often as it does."""
    found: list[str] = []

    def look(inner: dict[str, Any]) -> None:
        found.extend([name] if (name := _name(inner)) else [])
        _each(inner, look)

    look(node)
    return found


def _reach(name: str, parts: Mapping[str, dict[str, Any]]) -> set[str]:
    """The parts that the part `name` leads to."""
    found: set[str] = set()
    left = [name]
    while left:
        new = set(_refs(parts[left.pop()])) - found
        found |= new
        left += new
    return found
