"""`noeta store`: sizes, old tasks, backups."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from noeta_cli.output import show_json, size, working
from noeta_cli.readers import Opened, Wrong, reading
from noeta_cli.stores import json_option, store_option
from noeta_cli.task_ids import every

UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
SIZES = {"file", "free", "log", "blobs"}
TREES = 100


def read_age(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """The seconds of an age such as 30d. Raises `click.BadParameter`."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([a-z]+)", value)
    if found is None or found[2] not in UNITS:
        why = f"{value!r} is no age; write a number and one of {', '.join(UNITS)}, such as 30d."
        raise click.BadParameter(why, ctx, param)
    return float(found[1]) * UNITS[found[2]]


@click.group()
def store() -> None:
    """Look after the store."""


@store.command()
@json_option
@store_option
def stats(as_json: bool, store: str | None) -> None:
    """Say how much there is: tasks by status, records, bytes."""
    from msgspec import to_builtins

    with reading(store) as opened, working("counting"):
        if (count := getattr(opened.reader, "stats", None)) is None:
            raise _cannot(opened, "say how much it holds")
        found = to_builtins(count())
    if as_json:
        show_json(found)
        return
    for name, value in found.items():
        click.echo(f"{name.replace('_', ' '):<12} {_told(name, value)}")


@store.command()
@click.option("--older-than", required=True, callback=read_age, metavar="AGE", help="Such as 30d, 12h or 2w.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--compact", is_flag=True, help="Give the room back to the disk. Writers wait meanwhile.")
@json_option
@store_option
def sweep(older_than: float, yes: bool, compact: bool, as_json: bool, store: str | None) -> None:
    """Delete trees of tasks that ended longer ago than AGE, with all they hold.

    A tree goes when each of its tasks ended before, and no task outside continues one of them.
    """
    before = time.time() - older_than
    with reading(store) as opened:
        # This also finds out whether there is a store: opening one to write makes it.
        count = _old(opened, before)
        if count and not yes:
            _ask(f"delete up to {count} tasks of {opened.url.partition('?')[0]} for good?")
        from anyio import run

        with working("deleting"):
            gone = run(_swept, opened, before, compact) if count or compact else []
    if as_json:
        show_json({"deleted": gone})
    else:
        click.echo(f"{len(gone)} tasks deleted.")


@store.command()
@click.argument("file", type=click.Path(dir_okay=False))
@store_option
def backup(file: str, store: str | None) -> None:
    """Write all that is durable now to the new FILE, while others go on. Prints the name of the file."""
    with reading(store) as opened, working("writing the backup"):
        if (write := getattr(opened.reader, "backup", None)) is None:
            raise _cannot(opened, "write a backup")
        write(Path(file))
    click.echo(file)


async def _swept(opened: Opened, before: float, compact: bool) -> list[str]:
    store = opened.catalog.store(opened.url)
    try:
        give_back = getattr(store, "compact", None)
        if compact and give_back is None:
            raise _cannot(opened, "be compacted")
        gone: list[str] = []
        while found := await store.sweep(before, TREES):
            gone += found
        if compact and give_back is not None:
            await give_back()
        return gone
    finally:
        await store.aclose()


def _old(opened: Opened, before: float) -> int:
    """How many tasks stand in trees that are over and old."""
    trees: dict[str, tuple[bool, int]] = {}
    for row in every(opened.reader):
        old, number = trees.get(row.root, (True, 0))
        trees[row.root] = (old and row.status == "ended" and row.updated_at < before, number + 1)
    return sum(number for old, number in trees.values() if old)


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise Wrong("nobody can be asked here, since standard input is no terminal; add --yes.")
    click.confirm(f"noeta: {question}", abort=True, err=True)


def _cannot(opened: Opened, what: str) -> Wrong:
    return Wrong(f"a store of the kind {opened.url.partition(':')[0]!r} cannot {what}.")


def _told(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{count} {what}" for what, count in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return size(value) if name in SIZES else f"{value:,}" if isinstance(value, int) else str(value) or "-"
