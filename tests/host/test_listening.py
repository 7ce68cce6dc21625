"""The runner's inbox: nothing that came is missed, and nothing is asked for while nothing comes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from noeta.core.log import Claim
from noeta.host.listening import Listening
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.store.world import World, mail
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.store import Append, Conflict, Watch

pytestmark = pytest.mark.anyio


class Store(InMemoryStore):
    """Counts how often it is asked for an inbox."""

    asked = 0

    async def inbox(self, task: str, limit: int = 100) -> Any:
        self.asked += 1
        return await super().inbox(task, limit)


class Deaf:
    """A watch that hears of nothing."""

    async def wait(self, timeout: float) -> bool:
        await anyio.lowlevel.checkpoint()
        return False


@asynccontextmanager
async def heard(watch: Watch | None = None) -> AsyncIterator[tuple[World, Claim, Listening, Any]]:
    """A running task whose inbox was read and emptied."""
    clock, ids = FrozenClock(), SeededIds()
    store: Any = Store(clock, ids)
    world = World(store, clock, ids)
    claim = await world.running("task")
    async with store.watch("task", log=False) as own:
        log = Listening(store, watch or own)
        assert [item.key for item in await log.inbox("task")] == ["start"]
        await world.drain(claim)
        store.asked = 0
        yield world, claim, log, store


async def test_the_store_is_asked_once_for_what_came_and_then_no_more() -> None:
    async with heard() as (world, claim, log, store):
        for _ in range(3):
            assert await log.inbox("task") == []
            await world.write(claim, 1)
        assert store.asked == 0
        await world.store.post(mail("task", "one"))
        assert [item.key for item in await log.inbox("task")] == ["one"]
        assert await log.inbox("task") == []
        assert store.asked == 1


async def test_a_page_that_is_full_is_not_the_last() -> None:
    async with heard() as (world, _, log, _):
        for key in ("one", "two", "three"):
            await world.store.post(mail("task", key))
        assert [item.key for item in await log.inbox("task", 2)] == ["one", "two"]
        assert len(await log.inbox("task", 2)) == 2


async def test_an_append_that_is_refused_is_reason_to_look() -> None:
    async with heard(Deaf()) as (world, claim, log, store):
        await world.store.post(mail("task", "one"))
        assert await log.inbox("task") == []
        append = Append(expected_seq=2, id=b"a" * 16, status="waiting", reason="idle")
        with pytest.raises(Conflict, match="inbox"):
            await log.append(claim, append)
        assert [item.key for item in await log.inbox("task", 1)] == ["one"]
        assert store.asked == 1


async def test_what_somebody_else_looked_up_the_runner_finds_too() -> None:
    async with heard(Deaf()) as (world, _, log, _):
        await world.store.post(mail("task", "one"))
        assert await log.inbox("task") == []
        assert len(await log.look("task", 100)) == 1
        assert len(await log.inbox("task")) == 1


async def test_a_look_that_was_cut_off_is_made_up_for() -> None:
    async with heard() as (world, _, log, _):
        await world.store.post(mail("task", "one"))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await log.inbox("task")
        assert len(await log.inbox("task")) == 1
