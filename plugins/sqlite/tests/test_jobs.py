"""A cancelled caller takes its work back, or waits until it is done, on both event loops."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from noeta.toolkit.store import UnknownTask
from noeta_sqlite.jobs import JobThread

pytestmark = pytest.mark.anyio


async def until(event: threading.Event) -> None:
    # No event of a loop can be set by a thread.
    while not event.is_set():  # noqa: ASYNC110
        await anyio.sleep(0.001)


async def occupied(thread: JobThread, group: anyio.abc.TaskGroup) -> threading.Event:
    """Keep the thread busy until the event that is returned is set."""
    begun, over = threading.Event(), threading.Event()

    def work(_: object) -> None:
        begun.set()
        assert over.wait(30)

    group.start_soon(thread.do, work)
    await until(begun)
    return over


async def test_work_that_has_not_begun_is_taken_back(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store, anyio.create_task_group() as group:
        over = await occupied(store._writer, group)
        with anyio.move_on_after(0.05) as scope:
            await store.create(new_task("task"))
        assert scope.cancelled_caught
        over.set()
        await store.create(new_task("other"))
        with pytest.raises(UnknownTask):
            await store.task("task")


@pytest.mark.parametrize("which", ["_writer", "_reader"])
async def test_work_that_has_begun_is_waited_for(which: str, path: Path, opened: Any, new_task: Any) -> None:
    done = []
    async with opened(path) as store:
        begun, over = threading.Event(), threading.Event()

        def work(_: object) -> None:
            begun.set()
            assert over.wait(30)
            done.append(True)

        async def call() -> None:
            try:
                await getattr(store, which).do(work)
            finally:
                done.append(False)

        async with anyio.create_task_group() as inner:
            inner.start_soon(call)
            await until(begun)
            inner.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
                assert done == []
                over.set()
        assert done == [True, False]
        await store.create(new_task("task"))
        assert (await store.task("task")).last_seq == 1


async def test_many_callers_share_a_commit_and_an_error_is_one_callers(
    path: Path, opened: Any, new_task: Any
) -> None:
    async with opened(path) as store:
        before = store._writer.commits
        failed = []

        async def create(name: str) -> None:
            try:
                await store.create(new_task(name, base="" if name != "bad" else "nobody"))
            except UnknownTask:
                failed.append(name)

        async with anyio.create_task_group() as group:
            over = await occupied(store._writer, group)
            for name in ("one", "bad", "two", "three"):
                group.start_soon(create, name)
            await anyio.sleep(0.02)
            over.set()
        assert failed == ["bad"]
        assert {row.task for row in await store.tasks()} == {"one", "two", "three"}
        # One for the work that kept the thread busy, one for all that waited meanwhile.
        assert store._writer.commits - before == 2
