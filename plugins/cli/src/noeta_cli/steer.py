"""The commands that steer a task: `interrupt`, `cancel`, `fork`, `erase`."""

from __future__ import annotations

import sys
from collections.abc import Collection
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from noeta_cli.opening import acting, find_task, whoami
from noeta_cli.output import note, one_line, show
from noeta_cli.stores import store_option

if TYPE_CHECKING:
    from noeta.host.host import Host
    from noeta.toolkit.store import Store

PREVIEW_CHARS = 100


@click.command(short_help="Stop the turn of a task.")
@click.argument("task")
@store_option
def interrupt(task: str, store: str | None) -> None:
    """Stop the turn that TASK is at, and no later one. The worker that runs it does so within a second."""

    async def verb(host: Host, opened: Store) -> None:
        name = await find_task(opened, task)
        if await host.interrupt(name, by=whoami()):
            note(f"the turn of task {name} is interrupted, or will be when a worker comes to it")
        else:
            note(f"task {name} is at no turn, so there is nothing to interrupt")

    acting(verb, store)


@click.command(short_help="End a task.")
@click.argument("task")
@click.option("--reason", metavar="TEXT", default="", help="Kept in the log.")
@store_option
def cancel(task: str, reason: str, store: str | None) -> None:
    """Stop TASK and end it, with its children. It takes no more messages then; a fork goes on from it."""

    async def verb(host: Host, opened: Store) -> None:
        name = await find_task(opened, task)
        if await host.cancel(name, by=whoami(), reason=reason):
            note(f"task {name} is cancelled, or will be when a worker comes to it")
        else:
            note(f"task {name} has ended already")

    acting(verb, store)


@click.command(short_help="Start a task that continues another one.")
@click.argument("task")
@click.option("--through", type=click.IntRange(min=1), metavar="SEQ", help="The last record to take along.")
@store_option
def fork(task: str, through: int | None, store: str | None) -> None:
    """Start a task that continues TASK, and print its id. TASK stays as it is."""

    async def verb(host: Host, opened: Store) -> None:
        made = await host.fork(await find_task(opened, task), through)
        show(made)
        note(f"it waits for a message: noeta run --resume {made} PROMPT")

    acting(verb, store)


@click.command(short_help="Take messages out of a task for good.")
@click.argument("task")
@click.argument("seqs", metavar="SEQ...", nargs=-1, required=True, type=click.IntRange(min=1))
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def erase(task: str, seqs: tuple[int, ...], yes: bool, store: str | None) -> None:
    """Take the person's messages at these records out of TASK and its forks. They cannot be had back.

    A reply of the model and a result of a tool stay. noeta log shows the records with their numbers.
    """
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("what is erased cannot be had back; say --yes where nobody can be asked")

    async def look(host: Host, opened: Store) -> tuple[str, list[str]]:
        from noeta.host.erasure import check_erasable

        name = await find_task(opened, task)
        await check_erasable(opened, name, seqs)
        return name, [] if yes else await _previews(opened, name, seqs)

    async def verb(host: Host, opened: Store) -> None:
        await host.erase(name, sorted(set(seqs)), by=whoami())

    name, previews = acting(look, store)
    for preview in previews:
        click.echo(preview, err=True)
    if not yes and not click.confirm("Erase for good?", err=True):
        raise click.Abort
    acting(verb, store)
    note(f"task {name} is told to erase; it is done when a worker comes to it: noeta worker")


async def _previews(store: Store, task: str, seqs: Collection[int]) -> list[str]:
    """What is about to go, a line for each record."""
    from noeta.host.reading import records

    found = []
    async with aclosing(records(store, task, min(seqs) - 1)) as read:
        async for recorded in read:
            if recorded.seq in seqs:
                text = recorded.message.text if recorded.message else f"({recorded.kind})"
                found.append(f"  {recorded.seq}  {one_line(text, PREVIEW_CHARS)}")
            if recorded.seq >= max(seqs):
                break
    return found
