"""`noeta log`: the records of a task, one a line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from noeta_cli.output import clean, is_terminal, note, one_line, show_json, when
from noeta_cli.readers import Wrong, reading
from noeta_cli.stores import json_option, store_option
from noeta_cli.task_ids import find_task, task_argument

if TYPE_CHECKING:
    from noeta.toolkit.records import Recorded
    from noeta.toolkit.store import Reader

LOOK_SECONDS = 0.25


@click.command()
@task_argument
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="SEQ", help="Only later records.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only records of this kind. Repeatable.")
@click.option("--by", metavar="PLUGIN", help="Only records that are this plugin's.")
@click.option("--follow", is_flag=True, help="Go on until the task ends.")
@click.option("--raw", is_flag=True, help="Print the records as they are stored.")
@json_option
@store_option
def log(
    task: str,
    after: int,
    kinds: tuple[str, ...],
    by: str | None,
    follow: bool,
    raw: bool,
    as_json: bool,
    store: str | None,
) -> None:
    """Show the records of a task: seq, time, kind, plugin, and what it says.

    TASK is an id, the beginning of one, or `last`. A kind is one such as `gated` or `checklist.item`.
    """
    if raw and as_json:
        raise Wrong("--raw prints records as they are stored, --json decoded: give one of them.")
    with reading(store) as opened:
        reader = opened.reader
        id = find_task(reader, task)
        found, seen = 0, set[str]()
        for line, record in _records(reader, id, after, follow=follow):
            seen |= {record.kind, f"{record.extension}.{record.kind}"}
            if _wanted(record, kinds, by):
                found += 1
                if raw:
                    click.echo(clean(line.decode(errors="replace")) if is_terminal() else line)
                elif as_json:
                    show_json(record)
                else:
                    click.echo(told(record))
    if not found:
        _say_why(kinds, by, seen)


def told(record: Recorded) -> str:
    """A record on one line, for people."""
    from noeta_cli.summaries import by_whom, summary

    kind = record.kind if record.extension == "core" else f"{record.extension}.{record.kind}"
    by = f"[{by_whom(record)}] " if by_whom(record) else ""
    return (
        f"{record.seq:>5}  {when(record.at)}  {one_line(kind):<16}  {one_line(by)} {summary(record)}".rstrip()
    )


def _records(reader: Reader, task: str, after: int, *, follow: bool) -> Iterator[tuple[bytes, Recorded]]:
    """The stored bytes and the record of what is there, and with `follow` of what comes, until the end."""
    from noeta.host.at_once import at_once, each_at_once, looking
    from noeta.host.reading import record_of
    from noeta.toolkit.store import history

    store = looking(reader)
    while True:
        # Before the records: those of its end are there when it has ended.
        ended = reader.task(task).status == "ended"
        for lines in each_at_once(history(store, task, after)):
            for line in lines:
                yield line.data, at_once(record_of(store, line))
                after = line.seq
        if ended or not follow:
            return
        # Who follows through a pipe reads what there is.
        sys.stdout.flush()
        time.sleep(LOOK_SECONDS)


def _wanted(record: Recorded, kinds: tuple[str, ...], by: str | None) -> bool:
    from noeta_cli.summaries import by_whom

    if kinds and not {record.kind, f"{record.extension}.{record.kind}"} & {*kinds}:
        return False
    return by is None or by in {record.extension, by_whom(record)}


def _say_why(kinds: tuple[str, ...], by: str | None, seen: set[str]) -> None:
    """Why nothing was printed, with what may have been meant."""
    from noeta.toolkit.errors import meant
    from noeta.toolkit.records import CORE_KINDS

    known = {*seen, *CORE_KINDS, *(f"core.{kind}" for kind in CORE_KINDS)}
    for kind in kinds:
        if kind not in known:
            note(f"no record here is of kind {kind!r}{meant(kind, sorted(known))}.")
            return
    note("no record matches." if kinds or by else "there is no such record.")
