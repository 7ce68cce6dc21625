"""Reading tasks from outside: their state, and their records as plugins declare them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from typing import Any

from noeta.core.codec import decode, recorded
from noeta.core.fold import Folder
from noeta.core.records import Recorded
from noeta.core.state import TaskState
from noeta.host.agents import Agents
from noeta.host.snapshot import Snapshots
from noeta.toolkit.history import history, whole
from noeta.toolkit.store import Line, Store, TaskRow


class Reader:
    """Reads the tasks of a store. One whose agent is not among `agents` is read without plugins."""

    def __init__(self, store: Store, agents: Agents) -> None:
        self._store, self._agents = store, agents

    async def state(self, task: str, at: int | None = None) -> TaskState:
        """The task's state after the record `at`, or after its last one. Raises `UnknownTask`."""
        folder = await self._folder(task)
        if at is None:
            return await Snapshots(self._store, task, folder).load()
        state = folder.start()
        async with aclosing(history(self._store, task, through=at)) as pages:
            async for lines in pages:
                for line in lines:
                    folder.apply(state, await whole(self._store, decode(line)))
        return state

    async def records(self, task: str, after: int = 0) -> AsyncGenerator[Recorded, None]:
        """The records behind `after` that are there now, from the history that the task continues on.

        Who stops early closes it (`contextlib.aclosing`). Raises `UnknownTask`.
        """
        folder = await self._folder(task)
        types = {reducer.name: reducer.types for reducer in folder.reducers}
        async with aclosing(records(self._store, task, after, types=types)) as found:
            async for record in found:
                yield record

    async def log(self, task: str, after: int = 0) -> list[Recorded]:
        """What `records` gives, as a list."""
        async with aclosing(self.records(task, after)) as found:
            return [record async for record in found]

    async def _folder(self, task: str) -> Folder:
        composed = self._agents.get((await self._store.task(task)).agent)
        return composed.folder if composed else Folder(())


async def records(
    store: Store,
    task: str,
    after: int = 0,
    *,
    only: Collection[str] | None = None,
    types: Mapping[str, Mapping[str, Any] | None] | None = None,
) -> AsyncGenerator[Recorded, None]:
    """The records of a task and of the history it continues, in order; `only` as for `Store.read`.

    `types` are those of each plugin's kinds, by its name. Who stops early closes it.
    """
    async with aclosing(history(store, task, after, only=only)) as pages:
        async for lines in pages:
            for line in lines:
                yield await record_of(store, line, types)


async def record_of(
    store: Store, line: Line, types: Mapping[str, Mapping[str, Any] | None] | None = None
) -> Recorded:
    """The record in a line of a log; `types` are as for `records`."""
    envelope = await whole(store, decode(line))
    return recorded(envelope, (types or {}).get(envelope.extension))


async def children_of(store: Store, task: str) -> list[TaskRow]:
    """The rows of all children of a task, the oldest first."""
    found: list[TaskRow] = []
    while rows := await store.tasks(parent=task, after=found[-1] if found else None):
        found += rows
    return found
