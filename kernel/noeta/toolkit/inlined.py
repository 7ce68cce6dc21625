"""Making a JSON Schema small: parts stand where they are used, and what a model does not need is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PARTS = "#/$defs/"


def inlined(schema: dict[str, Any], parts: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """`schema` with each of the `parts` in the place of its ``$ref``, without titles.

    A part that holds itself, or that is used twice and is more than a list of words, stays under ``$defs``.
    """
    uses = [name for node in (schema, *parts.values()) for name in _refs(node)]
    shared = {name for name, part in parts.items() if uses.count(name) > 1 and "enum" not in part}
    kept = shared | {name for name in parts if name in _reach(name, parts)}

    def placed(node: Any) -> Any:
        if isinstance(node, list):
            return [placed(inner) for inner in node]
        if not isinstance(node, dict):
            return node
        name = _name(node)
        # A discriminator names parts that may be gone; what it says is in the parts too.
        rest = {key: placed(value) for key, value in node.items() if not _discriminates(key, value)}
        if name is None or name in kept:
            return rest
        del rest["$ref"]
        return part(name) | rest

    def part(name: str) -> dict[str, Any]:
        return {key: placed(value) for key, value in parts[name].items() if key != "title"}

    definitions = {name: part(name) for name in parts if name in kept}
    return {**placed(schema), **({"$defs": definitions} if definitions else {})}


def _name(node: Mapping[str, Any]) -> str | None:
    """The part that `node` stands for."""
    ref = node.get("$ref")
    return ref.removeprefix(PARTS) if isinstance(ref, str) else None


def _discriminates(key: str, value: Any) -> bool:
    # A property may have this name as well, and then its value is a schema.
    return key == "discriminator" and isinstance(value, dict) and isinstance(value.get("propertyName"), str)


def _refs(node: Any) -> Iterator[str]:
    """The parts that `node` refers to, as often as it does."""
    if isinstance(node, dict):
        if name := _name(node):
            yield name
        node = list(node.values())
    for inner in node if isinstance(node, list) else ():
        yield from _refs(inner)


def _reach(name: str, parts: Mapping[str, Any]) -> set[str]:
    """The parts that the part `name` leads to."""
    found: set[str] = set()
    left = [name]
    while left:
        new = set(_refs(parts[left.pop()])) - found
        found |= new
        left += new
    return found
