"""Text fit for a log and names fit for a store, where they come in.

A log is JSON in UTF-8. Lone surrogates have no place in it; everything else has, NUL included: it is kept,
since stores hold bytes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from noeta.core.errors import NotStorable

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


def checked_key(text: str, what: str) -> str:
    """Return `text` if it may name something in a store: 1 to 512 characters, no NUL, no lone surrogate.

    `what` names the thing in the error (`NotStorable`). Names are refused, not mended, since two mended names
    might become one.
    """
    if not isinstance(text, str) or not 1 <= len(text) <= MAX_KEY_CHARS:  # type: ignore[redundant-expr]
        raise NotStorable(what, f"it has to be a text of 1 to {MAX_KEY_CHARS} characters")
    if "\0" in text or storable_text(text) != text:
        raise NotStorable(what, "it holds a NUL or a lone surrogate")
    return text


def meant(given: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """`` (did you mean 'x'?)`` for the name in `known` that `given` looks like, else the empty text."""
    close = difflib.get_close_matches(given, list(known), 1, likeness)
    return f" (did you mean {close[0]!r}?)" if close else ""
