"""`noeta show`: a task as a conversation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from noeta_cli.asks import answer_line, asks_of, shown_ask, state_of
from noeta_cli.output import age, bold, clean, one_line, show_json, when
from noeta_cli.readers import reading
from noeta_cli.stores import json_option, store_option
from noeta_cli.task_ids import every, find_task, task_argument

if TYPE_CHECKING:
    from noeta import TaskState
    from noeta.host.outcome import Asked
    from noeta.toolkit.store import TaskRow


@click.command()
@task_argument
@click.option("--full", is_flag=True, help="Cut nothing.")
@json_option
@store_option
def show(task: str, full: bool, as_json: bool, store: str | None) -> None:
    """Show a task as a conversation, then what it waits for, its children, its timers and what it used.

    TASK is an id, the beginning of one, or `last`.
    """
    from noeta.host.at_once import each_at_once, looking
    from noeta.host.reading import records
    from noeta_cli.conversation import Conversation, is_said

    with reading(store) as opened:
        reader = opened.reader
        row = reader.task(find_task(reader, task))
        said = (each for each in each_at_once(records(looking(reader), row.task)) if is_said(each))
        state, children = state_of(reader, row.task), list(every(reader, parent=row.task))
        asks = asks_of(reader, row.task)
        if as_json:
            waits = [{"ask": ask, "answer": _line(ask, store)} for ask in asks]
            timers = list(state.timers.values())
            found = {"task": row, "records": list(said), "waits": waits, "children": children}
            show_json({**found, "timers": timers, "usage": state.usage})
            return
        # What is told about the task is the answer too: people read it from the top, or its end.
        click.echo(bold(_title(row)))
        conversation = Conversation(full=full)
        for record in said:
            click.echo(f"\n{conversation.told(record)}")
    for paragraph in (_waits(asks, store), _children(children), _timers(state), _usage(state)):
        if lines := list(paragraph):
            click.echo("\n" + "\n".join(lines))


def _title(row: TaskRow) -> str:
    why = f" ({row.reason})" if row.reason else ""
    base = f", goes on from {row.base} behind record {row.through}" if row.base else ""
    parent = f", child of {row.parent}" if row.parent else ""
    old = age(time.time() - row.created_at)
    return f"Task {row.task} of agent {row.agent}: {row.status}{why}, {old} old{base}{parent}"


def _waits(asks: list[Asked], store: str | None) -> Iterator[str]:
    if asks:
        yield bold("It waits for you:")
    for ask in asks:
        yield from (f"  {clean(line)}" for line in shown_ask(ask))
        yield f"    {_line(ask, store)}"


def _line(ask: Asked, store: str | None) -> str:
    return clean(answer_line(ask, store))


def _children(rows: list[TaskRow]) -> Iterator[str]:
    if rows:
        yield bold("Children:")
    for row in rows:
        yield f"  {row.task}  {one_line(row.agent)}  {row.status}{f' ({row.reason})' if row.reason else ''}"


def _timers(state: TaskState) -> Iterator[str]:
    if state.timers:
        yield bold("Timers:")
    for timer in state.timers.values():
        yield f"  {one_line(timer.name)}  {when(timer.at)}  {one_line(timer.text)}".rstrip()


def _usage(state: TaskState) -> Iterator[str]:
    usage = state.usage
    if usage.input or usage.output:
        cached = f" ({usage.cache_read} of them cached)" if usage.cache_read else ""
        yield f"Used: {usage.input} tokens in{cached}, {usage.output} out."
