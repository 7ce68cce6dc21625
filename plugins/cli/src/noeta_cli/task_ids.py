"""What TASK means on the command line: an id, the beginning of one, or `last`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from noeta_cli.readers import Wrong

if TYPE_CHECKING:
    from noeta.toolkit.store import Reader, TaskRow

LAST = "last"
SHORTEST = 4
"""How many characters of an id have to be given. Fewer may mean another task tomorrow."""
SHOWN = 5
PAGE = 1_000

task_argument: Callable[[Any], Any] = click.argument("task")


def find_task(reader: Reader, text: str) -> str:
    """The id that `text` means; ``last`` is the newest task that no other task spawned.

    Raises `Wrong` when there is none, or more than one.
    """
    from noeta.toolkit.errors import UnknownTask, meant

    if text == LAST:
        newest = None
        for row in every(reader):
            newest = row.task if not row.parent else newest
        if newest is None:
            raise Wrong("there is no task in this store yet; `noeta run` begins one.")
        return newest
    try:
        return reader.task(text).task
    except UnknownTask:
        ids = [row.task for row in every(reader)]
    found = [id for id in ids if id.startswith(text)]
    if not found or not text:
        raise Wrong(f"there is no task {text!r} in this store{meant(text, ids)}; `noeta tasks` lists them.")
    if len(text) < SHORTEST:
        raise Wrong(f"{text!r} is too short for a task; write its id, or its first {SHORTEST} characters.")
    if len(found) > 1:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        shown = ", ".join(found[-SHOWN:])
        raise Wrong(f"{text!r} begins the ids of {len(found)} tasks: {shown}{more}; write more of it.")
    return found[0]


def every(reader: Reader, **filters: Any) -> Iterator[TaskRow]:
    """Every row that matches, oldest first."""
    after = None
    while rows := reader.tasks(after=after, limit=PAGE, **filters):
        yield from rows
        if len(rows) < PAGE:
            return
        after = rows[-1]
