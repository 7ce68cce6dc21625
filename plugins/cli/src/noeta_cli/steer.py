"""The commands that steer a task: `interrupt`, `cancel`, `fork`, `erase`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import click

from noeta_cli.opening import acting, whoami
from noeta_cli.output import note, one_line, show
from noeta_cli.readers import reading
from noeta_cli.stores import store_option
from noeta_cli.task_ids import find_task, task_argument

if TYPE_CHECKING:
    from noeta.toolkit.store import Reader

PREVIEW_CHARS = 100


@click.command(short_help="Stop the turn of a task.")
@task_argument
@store_option
def interrupt(task: str, store: str | None) -> None:
    """Stop the turn that TASK is at, and no later one. The worker that runs it does so within a second."""

    with reading(store) as opened:
        name = find_task(opened.reader, task)
        if acting(lambda host: host.interrupt(name, by=whoami()), opened):
            note(f"the turn of task {name} is interrupted, or will be when a worker comes to it")
        else:
            note(f"task {name} is at no turn, so there is nothing to interrupt")


@click.command(short_help="End a task.")
@task_argument
@click.option("--reason", metavar="TEXT", default="", help="Kept in the log.")
@store_option
def cancel(task: str, reason: str, store: str | None) -> None:
    """Stop TASK and end it, with its children. It takes no more messages then; a fork goes on from it."""

    with reading(store) as opened:
        name = find_task(opened.reader, task)
        if acting(lambda host: host.cancel(name, by=whoami(), reason=reason), opened):
            note(f"task {name} is cancelled, or will be when a worker comes to it")
        else:
            note(f"task {name} has ended already")


@click.command(short_help="Start a task that continues another one.")
@task_argument
@click.option("--through", type=click.IntRange(min=1), metavar="SEQ", help="The last record to take along.")
@store_option
def fork(task: str, through: int | None, store: str | None) -> None:
    """Start a task that continues TASK, and print its id. TASK stays as it is."""

    with reading(store) as opened:
        name = find_task(opened.reader, task)
        made = acting(lambda host: host.fork(name, through), opened)
    show(made)
    note(f"it waits for a message: noeta run --resume {made} PROMPT")


@click.command(short_help="Take messages out of a task for good.")
@task_argument
@click.argument("seqs", metavar="SEQ...", nargs=-1, required=True, type=click.IntRange(min=1))
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def erase(task: str, seqs: tuple[int, ...], yes: bool, store: str | None) -> None:
    """Take the person's messages at these records out of TASK and its forks. They cannot be had back.

    A reply of the model and a result of a tool stay. noeta log shows the records with their numbers.
    """
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("what is erased cannot be had back; say --yes where nobody can be asked")
    from noeta.host.at_once import at_once, looking
    from noeta.host.erasure import check_erasable

    with reading(store) as opened:
        name = find_task(opened.reader, task)
        at_once(check_erasable(looking(opened.reader), name, seqs))
        if not yes:
            for preview in _previews(opened.reader, name, seqs):
                click.echo(preview, err=True)
            if not click.confirm("Erase for good?", err=True):
                raise click.Abort
        acting(lambda host: host.erase(name, sorted(set(seqs)), by=whoami()), opened)
    note(f"task {name} is told to erase; it is done when a worker comes to it: noeta worker")


def _previews(reader: Reader, task: str, seqs: Collection[int]) -> Iterator[str]:
    """What is about to go, a line for each record."""
    from noeta.host.at_once import at_once, each_at_once, looking
    from noeta.host.reading import record_of
    from noeta.toolkit.store import history

    store = looking(reader)
    for seq in sorted(set(seqs)):
        for lines in each_at_once(history(store, task, seq - 1, through=seq)):
            for record in [at_once(record_of(store, line)) for line in lines]:
                text = record.message.text if record.message else f"({record.kind})"
                yield f"  {record.seq}  {one_line(text, PREVIEW_CHARS)}"
