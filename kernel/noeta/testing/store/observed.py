"""All that can be seen of a store through the port, as one value that can be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec
from msgspec import Struct

from noeta.core.codec import Line
from noeta.core.log import InboxItem, SnapshotPart, Timer
from noeta.toolkit.store import Store, TaskRow


class SeenTask(Struct, kw_only=True):
    """What can be seen of one task. When it was last updated only informs, so it is left out of the row."""

    row: TaskRow
    lines: list[Line]
    inbox: list[InboxItem]
    timers: list[Timer]
    parts: dict[str, SnapshotPart]


class Seen(Struct, kw_only=True):
    """What can be seen of a store."""

    tasks: dict[str, SeenTask]
    blobs: dict[str, bytes]
    next_wake: float | None


async def observe(store: Store, blobs: Collection[str] = ()) -> Seen:
    """Look at every task, and at the blobs with these names."""
    rows: list[TaskRow] = []
    while page := await store.tasks(after=rows[-1] if rows else None):
        rows += page
    tasks = {
        row.task: SeenTask(
            row=msgspec.structs.replace(row, updated_at=0.0),
            lines=[Line(*entry) for entry in await store.read(row.task)],
            inbox=await store.inbox(row.task, 1000),
            timers=await store.timers(row.task),
            parts={part.name: part for part in await store.snapshot(row.task)},
        )
        for row in rows
    }
    found = {name: data for name in blobs if (data := await store.read_blob(name)) is not None}
    return Seen(tasks=tasks, blobs=found, next_wake=await store.next_wake())


def differences(found: Seen, wanted: Seen) -> Iterable[str]:
    """What differs, in words. A snapshot part may be gone, since a store may drop it at any time."""
    for task in sorted(found.tasks.keys() | wanted.tasks.keys()):
        here, there = found.tasks.get(task), wanted.tasks.get(task)
        if here is None or there is None:
            yield f"task {task!r} {'is missing' if here is None else 'should not be there'}"
            continue
        for field in (*TaskRow.__struct_fields__, "lines", "inbox", "timers"):
            is_row = field in TaskRow.__struct_fields__
            one, two = (getattr(of.row if is_row else of, field) for of in (here, there))
            if one != two:
                yield f"{field} of task {task!r} is {one!r}, not {two!r}"
        for name, part in here.parts.items():
            if there.parts.get(name) != part:
                yield f"snapshot part {name!r} of task {task!r} is {part!r}, not {there.parts.get(name)!r}"
    if found.blobs != wanted.blobs:
        yield f"the blobs kept are {sorted(found.blobs)}, not {sorted(wanted.blobs)}"
    if found.next_wake != wanted.next_wake:
        yield f"the next wake is {found.next_wake}, not {wanted.next_wake}"


def same(found: Seen, wanted: Seen, promise: str) -> None:
    """Raise AssertionError with the promise when anything differs."""
    if where := list(differences(found, wanted)):
        raise AssertionError(f"{promise}: {'; '.join(where[:4])}")
