"""Settings from several places, laid over each other: each value keeps the place that holds it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from noeta.core.errors import SettingsError

Level = Literal["managed", "command line", "code", "local", "project", "user"]
"""The kinds of places, the first one wins."""

Key: TypeAlias = tuple[str, ...]
"""A key of the settings: the names of its tables, then its own."""


class Place(Struct, frozen=True):
    """A place that settings come from. `file` is empty for the command line and for code."""

    level: Level
    file: str = ""

    def __str__(self) -> str:
        return self.file or {"code": "keyword arguments"}.get(self.level, f"the {self.level}")


class Value(Struct, frozen=True):
    """A value of the settings, and the place that holds it."""

    key: Key
    value: Any
    place: Place

    @property
    def where(self) -> str:
        """The place and the key, for people."""
        return f"{self.place}, {dotted(self.key)}"


Layer: TypeAlias = Mapping[Key, Value]
"""What one place holds, or what several make together."""


class PlaceError(SettingsError):
    """Settings that cannot be used. `place` is who holds them, `setting` the key, `why` what is wrong."""

    def __init__(self, place: str, key: str, why: str) -> None:
        super().__init__("", key, why)
        self.place: str = place
        self.args: tuple[Any, ...] = (f"{place}{f', {key}' if key else ''}: {why.rstrip('.')}.",)


def laid_over(upper: Layer, lower: Layer) -> Layer:
    """The two as one: a key is taken as a whole from `upper`, if that has it.

    A plugin that either switches off is off.
    """
    off = {key: value for key, value in lower.items() if switches_off(value)}
    kept = {key: value for key, value in off.items() if key in upper and not switches_off(upper[key])}
    return {**lower, **upper, **kept}


def together(layers: Sequence[Layer]) -> Layer:
    """All of them as one, the first on top."""
    return reduce(laid_over, layers, dict[Key, Value]())


def switches_off(value: Value) -> bool:
    """Whether this is an ``enabled = false`` of a plugin."""
    return value.key[0] == "plugins" and value.key[2:] == ("enabled",) and value.value is False


def dotted(key: Key) -> str:
    """A key as it is written in a file."""
    plain = re.compile(r"[A-Za-z0-9_-]+")
    return ".".join(
        name if plain.fullmatch(name) else msgspec.json.encode(name).decode() for name in key if name
    )
