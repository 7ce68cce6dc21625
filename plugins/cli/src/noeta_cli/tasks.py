"""`noeta tasks`: the tasks of a store."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from noeta_cli.output import age, note, one_line, show_json, show_table
from noeta_cli.readers import reading
from noeta_cli.stores import json_option, store_option
from noeta_cli.task_ids import every, find_task

if TYPE_CHECKING:
    from noeta.toolkit.store import Reader, TaskRow

STATUSES = ("ready", "running", "waiting", "ended")
GOAL_CHARS = 60


@click.command()
@click.option("--status", type=click.Choice(STATUSES), help="Only tasks with this status.")
@click.option("--agent", metavar="NAME", help="Only tasks of this agent.")
@click.option("--parent", metavar="TASK", help="Only the children of this task.")
@click.option("--root", metavar="TASK", help="Only this task and all that come from it.")
@click.option("--all", "show_all", is_flag=True, help="All of them, however many there are.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many.")
@json_option
@store_option
def tasks(
    status: str | None,
    agent: str | None,
    parent: str | None,
    root: str | None,
    show_all: bool,
    limit: int,
    as_json: bool,
    store: str | None,
) -> None:
    """List tasks, the newest first. A child stands behind `└`.

    With --json, one task a line.
    """
    from noeta.toolkit.store import Unavailable

    try:
        with reading(store) as opened:
            reader = opened.reader
            filters: dict[str, Any] = {"status": status, "agent": agent}
            filters["parent"] = None if parent is None else find_task(reader, parent)
            filters["root"] = None if root is None else find_task(reader, root)
            total, kept = _last(every(reader, **filters), None if show_all else limit)
            rows = list(reversed(kept))
            goals = [_goal(reader, row) for row in rows]
    except Unavailable as error:
        if error.reason != "missing" or store:
            raise
        total, rows, goals = 0, [], []
    if as_json:
        from msgspec.structs import asdict

        for row, goal in zip(rows, goals, strict=True):
            show_json({**asdict(row), "goal": goal})
    elif rows:
        show_table(("task", "status", "agent", "age", "goal"), _cells(rows, goals))
    elif status or agent or parent or root:
        note("no task matches.")
    else:
        note("there is no task yet; `noeta run` begins one.")
    if total > len(rows):
        note(f"{total - len(rows)} more; --all shows them.")


def _last(rows: Iterator[TaskRow], limit: int | None) -> tuple[int, deque[TaskRow]]:
    """How many rows there are, and the last of them."""
    total, kept = 0, deque[Any](maxlen=limit)
    for total, row in enumerate(rows, 1):  # noqa: B007 (the last number is how many there are)
        kept.append(row)
    return total, kept


def _cells(rows: list[TaskRow], goals: list[str]) -> list[tuple[str, ...]]:
    now = time.time()
    return [
        (
            f"└ {row.task}" if row.parent else row.task,
            f"{row.status} ({row.reason})" if row.reason else row.status,
            row.agent,
            age(now - row.created_at),
            one_line(goal, GOAL_CHARS),
        )
        for row, goal in zip(rows, goals, strict=True)
    ]


def _goal(reader: Reader, row: TaskRow) -> str:
    from noeta.host.goal import goal

    return goal(reader, row) or (f"(goes on from {row.base})" if row.base else "")
