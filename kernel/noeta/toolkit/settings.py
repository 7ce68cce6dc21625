"""Settings of what is no extension: stores, providers and places to act take them by the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from noeta.core.errors import SettingsError as SettingsError
from noeta.core.extension import Extension

S = TypeVar("S", bound=msgspec.Struct)


def settings_of(plugin: str, struct: type[S], given: Mapping[str, Any]) -> S:
    """The settings `given` to the factory of `plugin`, as its struct.

    Raises `SettingsError` for one that `struct` does not have, does not take, or cannot do without, as the
    constructor of an `Extension` does.
    """
    taker = type(plugin, (Extension,), {"name": plugin, "Settings": struct})
    settings: S = taker(**given).settings
    return settings
