"""Making text and values storable where they enter: tool output, inbox, file names, anything from outside.

A log is JSON in UTF-8. Lone surrogates, NaN, infinities and endless nesting have no place in it; everything
else has, NUL included: it is kept, since stores hold bytes.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec

from noeta.core.errors import NotStorable

MAX_DEPTH = 64
MAX_KEY_CHARS = 512


def storable_text(text: str) -> str:
    """Return `text` with surrogate pairs joined and each lone surrogate replaced by U+FFFD.

    Text without surrogates comes back unchanged.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str.__str__(text)


def storable(value: object) -> Any:
    """Return `value` as builtins that a log can hold and give back equal.

    Text goes through `storable_text`. NaN and the infinities become the texts ``"NaN"``, ``"Infinity"`` and
    ``"-Infinity"``. Tuples and sets become lists, structs and dataclasses dicts, bytes base64 text, keys
    text.

    Raises `NotStorable`, naming the place, for a type that JSON does not know and for nesting deeper than 64.
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


def checked_key(text: str, what: str) -> str:
    """Return `text` if it may name something in a store: 1 to 512 characters, no NUL, no lone surrogate.

    `what` names the thing in the error (`NotStorable`). Names are refused, not mended, since two mended names
    might become one.
    """
    if not 1 <= len(text) <= MAX_KEY_CHARS:
        raise NotStorable(what, f"it has {len(text)} characters; 1 to {MAX_KEY_CHARS} are allowed")
    if "\0" in text or storable_text(text) != text:
        raise NotStorable(what, "it holds a NUL or a lone surrogate")
    return text


def meant(given: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """`` (did you mean 'x'?)`` for the name in `known` that `given` looks like, else the empty text."""
    close = difflib.get_close_matches(given, list(known), 1, likeness)
    return f" (did you mean {close[0]!r}?)" if close else ""
