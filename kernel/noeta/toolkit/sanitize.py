"""Make text and values fit for a log, at the point where they come in.

A log is JSON in UTF-8. Lone surrogates, NaN, infinities and endless nesting have no place in it; everything
else has.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import msgspec

from noeta.core.codec import MAX_NESTING
from noeta.core.errors import NotStorable
from noeta.core.text import checked_key as checked_key
from noeta.core.text import storable_text as storable_text

MAX_DEPTH = MAX_NESTING - 8
"""How deep a value may be nested, so that there is room for a message's blocks around it."""


def storable(value: object) -> Any:
    """Return `value` as builtins that a log can hold and give back equal.

    Text goes through `storable_text`. NaN and the infinities become the texts ``"NaN"``, ``"Infinity"`` and
    ``"-Infinity"``. Tuples and sets become lists, structs and dataclasses dicts, bytes base64 text, keys
    text.

    Raises `NotStorable`, naming the place, for a type that JSON does not know and for nesting deeper than
    64.
    """
    return _storable(value, "$", 0)


def _storable(value: object, where: str, depth: int) -> Any:
    match value:
        case Enum():
            return _storable(value.value, where, depth)
        case str():
            return storable_text(value)
        case None | bool():
            return value
        case int():
            return int(value)
        case float():
            if math.isfinite(value):
                return float(value)
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if depth == MAX_DEPTH:
        raise NotStorable(where, f"it is nested deeper than {MAX_DEPTH}")
    match value:
        case dict():
            stored = {_key(k, where): _storable(v, f"{where}.{k}", depth + 1) for k, v in value.items()}
            if len(stored) < len(value):
                raise NotStorable(where, "two of its keys become one")
            return stored
        case list() | tuple() | set() | frozenset():
            return [_storable(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    try:
        plain = msgspec.to_builtins(value)
    except (TypeError, RecursionError):
        raise NotStorable(where, f"it is a {type(value).__name__}") from None
    return _storable(plain, where, depth)


def _key(key: object, where: str) -> str:
    if isinstance(key, str):
        return storable_text(key)
    if isinstance(key, bool) or not isinstance(key, int):
        raise NotStorable(where, f"it has the key {key!r}, which is no text")
    return str(key)
