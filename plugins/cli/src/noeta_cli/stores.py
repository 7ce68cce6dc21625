"""Which store a command uses, and reading one without an event loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from noeta.host.settings import Settings

store_option: Callable[[Any], Any] = click.option(
    "--store", metavar="URL", default=None, help="The store, such as sqlite:noeta.db."
)
json_option: Callable[[Any], Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def here(given: str | Path | None = None) -> Path:
    """The folder to work in: the given one, else the one this process is in."""
    try:
        folder = (Path(given) if given else Path.cwd()).resolve()
    except FileNotFoundError:
        raise click.ClickException("the folder you are in is gone; change to another one") from None
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        # What a task remembers of it has to be text.
        why = f"the name of the folder {str(folder)!r} is no UTF-8; work in another one, or rename it"
        raise click.ClickException(why) from None
    return folder


def read_settings(cwd: str | None = None, flags: tuple[str, ...] = (), *, safe: bool = False) -> Settings:
    """The settings that count in a folder. Raises `SettingsError`."""
    from noeta.host.places import find_places
    from noeta.host.settings import load_settings

    return load_settings(find_places(os.environ, here(cwd)), os.environ, flags=flags, safe=safe)


def store_url(settings: Settings, given: str | None) -> str:
    """The URL of the store: of the command line, of the settings, or the person's own."""
    default = settings.places.store if settings.places else "memory:"
    chosen: str = settings.chosen("store", given, default)
    return chosen
