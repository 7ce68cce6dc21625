"""Secrets in settings: a file names a variable of the environment, and what is shown names no secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from noeta.host.layers import PlaceError, Value, dotted

HIDDEN = "***"
_NAME = re.compile(r"(?:^|[_-])(?:key|apikey|token|secret|password|passphrase)$", re.IGNORECASE)
_USER = re.compile(r"(?<=://)[^/@\s]*(?=@)")


def resolved(value: Value, environ: Mapping[str, str]) -> Any:
    """The value with ``{env = "NAME"}``, wherever it stands in it, replaced by the variable NAME.

    Raises `PlaceError` for a variable that is not set.
    """

    def look(given: Any) -> Any:
        if (name := _reference(given)) is not None:
            if name not in environ:
                why = f"the environment has no variable {name}; set it, or take the key out"
                raise PlaceError(str(value.place), dotted(value.key), why)
            return environ[name]
        if isinstance(given, Mapping):
            return {key: look(entry) for key, entry in given.items()}
        return [look(entry) for entry in given] if isinstance(given, list) else given

    return look(value.value)


def shown(value: Value) -> Any:
    """The value for people: a reference as it is written, and no secret that stands in the file itself."""

    def look(name: str, given: Any) -> Any:
        if _reference(given) is not None:
            return given
        if isinstance(given, Mapping):
            return {key: look(str(key), entry) for key, entry in given.items()}
        if isinstance(given, list | tuple):
            return [look(name, entry) for entry in given]
        if _NAME.search(name) and given:
            return HIDDEN
        return _USER.sub(HIDDEN, given) if isinstance(given, str) else given

    return look(value.key[-1], value.value)


def _reference(given: Any) -> str | None:
    """The variable that a value stands for, if it is a reference."""
    if isinstance(given, Mapping) and len(given) == 1 and isinstance(name := given.get("env"), str):
        return name
    return None
