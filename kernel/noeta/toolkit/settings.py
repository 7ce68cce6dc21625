"""Settings of what is no extension: stores, providers and places to act take them by the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec

from noeta.core.errors import SettingsError as SettingsError
from noeta.core.extension import Extension

S = TypeVar("S", bound=msgspec.Struct)
EVERY_PLACE = msgspec.Meta(extra={"places": "every"})
"""Marks a list in a struct of settings: ``deny: Annotated[list[str], EVERY_PLACE] = []``.

It is made of what all places of settings say, the one that goes first in front, so none can drop what another
one says.
"""


def settings_of(plugin: str, struct: type[S], given: Mapping[str, Any]) -> S:
    """The settings `given` to the factory of `plugin`, as its struct.

    Raises `SettingsError` for one that `struct` does not have, does not take, or cannot do without, as the
    constructor of an `Extension` does.
    """
    taker = type(plugin, (Extension,), {"name": plugin, "Settings": struct})
    settings: S = taker(**given).settings
    return settings


def of_every_place(struct: type[msgspec.Struct] | None) -> list[str]:
    """The fields of a struct of settings that are marked with `EVERY_PLACE`."""
    if struct is None:
        return []
    hints = get_type_hints(struct, include_extras=True)
    return [name for name, hint in hints.items() if EVERY_PLACE in getattr(hint, "__metadata__", ())]
