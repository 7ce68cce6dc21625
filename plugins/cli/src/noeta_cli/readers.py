"""Reading a store: by its reader, else by the store itself, run on an event loop in another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click

from noeta_cli.exits import USAGE
from noeta_cli.stores import read_settings, store_url

if TYPE_CHECKING:
    from noeta.host.catalog import Catalog
    from noeta.host.settings import Settings
    from noeta.toolkit.store import Reader


class Wrong(click.ClickException):
    """What a person asked for is not there, or cannot be done; a sentence says so."""

    exit_code = USAGE


@dataclass(frozen=True)
class Opened:
    """A store that a command reads, and where its name came from."""

    reader: Reader
    url: str
    settings: Settings
    catalog: Catalog


@contextmanager
def reading(given: str | None, *, safe: bool = False) -> Iterator[Opened]:
    """Read the store of the command line, else the one that settings name.

    Raises `Wrong` for one that nobody can read, and what `Catalog.store` raises; a store that is not there
    yet is an `Unavailable` with the reason ``missing``.
    """
    from noeta.host.catalog import Catalog

    settings = read_settings(safe=safe)
    url, catalog = store_url(settings, given), Catalog(settings)
    with reader_of(catalog, url) as reader:
        yield Opened(reader, url, settings, catalog)


@contextmanager
def reader_of(catalog: Catalog, url: str) -> Iterator[Reader]:
    """A reader of the store that `url` names. Raises as `reading`."""
    if url.partition(":")[0] == "memory":
        raise Wrong(f"the store {url!r} is gone with the process that had it; name another one with --store.")
    reader = catalog.reader(url)
    if reader is not None:
        yield reader
        return
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        store = portal.call(catalog.store, url)
        try:
            yield cast("Reader", _OnLoop(portal, store))
        finally:
            portal.call(store.aclose)


class _OnLoop:
    """The methods of a store, each of which waits until it is done."""

    def __init__(self, portal: Any, store: object) -> None:
        self._portal, self._store = portal, store

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)
        return lambda *args, **kwargs: self._portal.call(partial(method, *args, **kwargs))
