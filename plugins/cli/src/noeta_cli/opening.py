"""Opening the store of a command that acts."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from noeta_cli.readers import Wrong
from noeta_cli.task_ids import every

if TYPE_CHECKING:
    from noeta.host.catalog import Catalog
    from noeta.host.host import Host
    from noeta.toolkit.store import Reader, Store
    from noeta_cli.readers import Opened

T = TypeVar("T")
OURS = ("sqlite", "local", "llamacpp", "anthropic", "openai")
"""What is usually used and may not be installed, by name."""


def acting(verb: Callable[[Host], Awaitable[T]], opened: Opened) -> T:
    """Run a verb of a host that runs no task itself and needs no plugin."""

    async def run() -> T:
        from noeta.host.host import Host

        async with (
            opening(opened.catalog, opened.url) as store,
            Host([], store=store, works=False) as host,
        ):
            return await verb(host)

    return alone(run)


def alone(main: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Run something on an event loop, and let an error out as it was raised, in no group."""
    import anyio

    try:
        return anyio.run(main, *arguments)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


@asynccontextmanager
async def opening(catalog: Catalog, url: str) -> AsyncIterator[Store]:
    """The store that a URL names, for the length of a block. Raises what `Catalog.store` raises."""
    import anyio

    from noeta.toolkit.in_memory import InMemoryStore
    from noeta.toolkit.system import RandomIds, SystemClock

    if url == "memory:":
        store: Store = InMemoryStore(SystemClock(), RandomIds())
    else:
        check_store(catalog, url)
        store = catalog.store(url)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()


def must_have(catalog: Catalog, group: str, name: str, what: str) -> None:
    """Say how to install what is released with noeta and is not there. Others are left to the catalog."""
    if name in OURS and catalog.find(name, group) is None:
        raise Wrong(f"{what} {name!r} is not installed; this installs it: pip install noeta-{name}")


def check_store(catalog: Catalog, url: str) -> None:
    """Raise `Wrong` for one of our stores that is not installed."""
    from noeta.host.catalog import STORES

    must_have(catalog, STORES, url.partition(":")[0], "the store")


def newest_in(reader: Reader, folder: str) -> str:
    """The newest task of a folder that has not ended and is no child. Raises `Wrong`."""
    from noeta.host.at_once import at_once, looking
    from noeta.host.reading import record_of

    for row in reversed([*every(reader)]):
        if row.parent or row.status == "ended":
            continue
        [line] = reader.read(row.task, row.through, limit=1)
        config = getattr(at_once(record_of(looking(reader), line)).data, "config", None)
        if isinstance(config, dict) and config.get("cwd") == folder:
            return row.task
    raise Wrong(f"there is no task of {folder} to continue; begin one with: noeta run PROMPT")


def whoami() -> str:
    """The name of the person, for the log."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"
