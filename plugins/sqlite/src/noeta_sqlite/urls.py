"""What a URL says: where the file is, and how it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from noeta.toolkit.settings import SettingsError, settings_of

FORMS = "write sqlite:noeta.db, sqlite:~/noeta.db or sqlite:/srv/noeta.db"


class SqliteSettings(Struct, frozen=True, kw_only=True):
    """What a URL or the settings of a host may say about the file; see `SqliteStore`.

    `network` is ``refuse`` or ``allow``.
    """

    synchronous: str = "FULL"
    network: str = "refuse"


def place_of(url: str, settings: Mapping[str, Any]) -> tuple[Path, SqliteSettings]:
    """The file that ``sqlite:PATH`` or ``sqlite:PATH?OPTION=VALUE`` names, and what was chosen for it.

    An option of the URL goes before the same one in `settings`. Raises `ValueError` for a URL that names no
    file, and `SettingsError` for an option or setting that there is not.
    """
    scheme, _, rest = url.partition(":")
    path, _, query = rest.partition("?")
    if scheme != "sqlite" or not path:
        raise ValueError(f"{url!r} names no SQLite file; {FORMS}")
    if path.startswith("//") and not path.startswith("///"):
        raise ValueError(f"{url!r} has a host in front of its path, and the file is on this one; {FORMS}")
    options = dict(option.partition("=")[::2] for option in query.split("&") if option)
    chosen = settings_of("sqlite", SqliteSettings, {**settings, **options})
    choices = {"synchronous": ("FULL", "NORMAL"), "network": ("refuse", "allow")}
    for name, (one, other) in choices.items():
        if (value := getattr(chosen, name)) not in (one, other):
            raise SettingsError("sqlite", name, f"it is {value!r}; it can be {one!r} or {other!r}")
    return Path(path).expanduser(), chosen
