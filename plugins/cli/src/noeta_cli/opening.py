"""Opening the store of a command that acts, and finding tasks in it."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from noeta_cli.stores import read_settings, store_url

if TYPE_CHECKING:
    from noeta.host.host import Host
    from noeta.host.settings import Settings
    from noeta.toolkit.store import Store, TaskRow

T = TypeVar("T")
PAGE = 1_000
NEWEST = "last"


def acting(verb: Callable[[Host, Store], Awaitable[T]], store: str | None) -> T:
    """Run a verb of a host that runs no task itself and needs no plugin, on the store of the command."""

    async def run() -> T:
        from noeta.host.host import Host

        settings = read_settings()
        async with (
            opened(settings, store_url(settings, store)) as opened_store,
            Host([], store=opened_store, works=False) as host,
        ):
            return await verb(host, opened_store)

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
async def opened(settings: Settings, url: str) -> AsyncIterator[Store]:
    """The store that a URL names, for the length of a block. Raises what `Catalog.store` raises."""
    import anyio

    from noeta.host.catalog import STORES, Catalog
    from noeta.toolkit.in_memory import InMemoryStore
    from noeta.toolkit.system import RandomIds, SystemClock

    if url == "memory:":
        store: Store = InMemoryStore(SystemClock(), RandomIds())
    else:
        catalog = Catalog(settings)
        must_have(catalog, STORES, url.partition(":")[0], "the store")
        store = catalog.store(url)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()


def must_have(catalog: Any, group: str, name: str, what: str) -> None:
    """Say how to install what is released with noeta and is not there. Others are left to the catalog."""
    if name in {"sqlite", "local", "llamacpp", "anthropic", "openai"} and catalog.find(name, group) is None:
        raise click.ClickException(
            f"{what} {name!r} is not installed; this installs it: pip install noeta-{name}"
        )


async def find_task(store: Store, text: str) -> str:
    """The id of the task that is meant: an id, a unique prefix of one, or `last` for the newest.

    The newest is the newest that is no child. Raises `click.ClickException`.
    """
    from noeta import UnknownTask

    if text != NEWEST:
        try:
            return (await store.task(text)).task
        except UnknownTask:
            pass
    found = [
        row.task
        for row in await all_tasks(store)
        if (not row.parent if text == NEWEST else text and row.task.startswith(text))
    ]
    if text == NEWEST and found:
        return found[-1]
    if len(found) != 1:
        few = ", ".join(found[:5])
        why = f"{len(found)} tasks begin with {text!r}: {few}; write more of it" if found else _none(text)
        raise click.ClickException(why)
    return found[0]


async def all_tasks(store: Store) -> list[TaskRow]:
    """The rows of all tasks, the oldest first."""
    rows: list[TaskRow] = []
    while page := await store.tasks(after=rows[-1] if rows else None, limit=PAGE):
        rows += page
    return rows


async def newest_in(store: Store, folder: str) -> str:
    """The newest task of a folder that has not ended and is no child. Raises `click.ClickException`."""
    from contextlib import aclosing

    from noeta.host.reading import records

    for row in reversed(await all_tasks(store)):
        if row.parent or row.status == "ended":
            continue
        async with aclosing(records(store, row.task, row.through)) as found:
            created = await anext(found, None)
        config = getattr(created.data, "config", None) if created else None
        if isinstance(config, dict) and config.get("cwd") == folder:
            return row.task
    raise click.ClickException(f"there is no task of {folder} to continue; begin one with: noeta run PROMPT")


def whoami() -> str:
    """The name of the person, for the log."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"


def _none(text: str) -> str:
    if text == NEWEST:
        return "there is no task in this store yet"
    return f"there is no task {text!r} in this store; noeta tasks lists them"
