"""The in-memory store keeps what it needs and nothing else."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

from noeta.core.codec import Blob, blob_of
from noeta.testing import FrozenClock, SeededIds
from noeta.testing.store.erasure import CANARY, stone
from noeta.testing.store.world import World, line, lines, mail, new
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.store import SnapshotPart, Timer

pytestmark = pytest.mark.anyio


def world() -> World:
    clock, ids = FrozenClock(), SeededIds(1)
    return World(InMemoryStore(clock, ids), clock, ids)


def reachable(root: object) -> Iterator[Any]:
    """All that an object leads to, but for code."""
    seen, todo = {id(root)}, [root]
    while todo:
        yield (found := todo.pop())
        for other in gc.get_referents(found):
            if id(other) not in seen and not isinstance(other, type | ModuleType | FunctionType):
                seen.add(id(other))
                todo.append(other)


def holds_canary(root: object) -> bool:
    return any(
        CANARY in (found if isinstance(found, str) else bytes(found).decode("latin-1"))
        for found in reachable(root)
        if isinstance(found, str | bytes | bytearray | memoryview)
    )


def secret(n: int) -> Blob:
    return blob_of(f"{CANARY} {n}".encode())


async def test_records_alone_wake_nobody_who_does_not_read_them() -> None:
    here = world()
    claim = await here.running("task")
    store = here.store
    async with store.watch("task", log=False) as row, store.watch() as work, store.watch("task") as log:
        await here.write(claim, 3)
        assert [await watch.wait(0) for watch in (row, work, log)] == [False, False, True]
        await store.post(mail("task", "key"))
        assert [await watch.wait(0) for watch in (row, work, log)] == [True, True, True]


async def test_a_claim_is_told_to_who_watches_the_task_and_to_no_worker() -> None:
    here = world()
    await here.ready("task")
    async with here.store.watch("task", log=False) as row, here.store.watch() as work:
        await here.claim("task")
        assert [await watch.wait(0) for watch in (row, work)] == [True, False]


async def test_nothing_of_what_was_purged_is_left_in_memory() -> None:
    here = world()
    store = here.store
    posts = [mail("task", "one", body=CANARY.encode())]
    claim = await here.running("task", lines=[line(1, CANARY)], posts=posts, blobs=[secret(1)])
    part = SnapshotPart(name="part", fingerprint="code", seq=2, data=CANARY.encode())
    child = new(
        "child", parent="task", lines=[line(1, CANARY)], posts=[mail("child", "start", body=CANARY.encode())]
    )
    timer = Timer(name="timer", gen=2, at=here.clock.now(), text=CANARY)
    await here.append(
        *(claim, 1, here.ids.token(), [line(2, CANARY)]),
        consume=[1],
        blobs=[secret(2)],
        snapshot=[part],
        spawn=[child],
        set_timers=[timer],
        posts=[mail("nobody", "lost", body=CANARY.encode())],
    )
    assert holds_canary(store)
    await here.park(claim, release=False)
    assert await store.fire_timers() == 1
    await here.drain(claim)
    for name, records in (("task", 2), ("child", 1)):
        held = claim if name == "task" else await here.claim("child")
        await here.drain(held)
        stones = [stone(entry) for entry in lines(0, records)]
        await store.purge(held, stones, [secret(1).sha256, secret(2).sha256])
    assert not holds_canary(store)


async def test_a_swept_task_leaves_nothing_in_memory() -> None:
    here = world()
    await here.ended("task", lines=[line(1, CANARY)], blobs=[secret(1)], agent=CANARY)
    here.clock.advance(1)
    assert holds_canary(here.store)
    assert await here.store.sweep(here.clock.now()) == ["task"]
    assert not holds_canary(here.store)


async def test_a_tree_is_not_swept_while_a_worker_holds_one_of_its_tasks() -> None:
    here = world()
    await here.ended("root")
    claim = await here.running("child", root="root", parent="root")
    await here.end(claim, release=False)
    here.clock.advance(10)
    assert await here.store.sweep(here.clock.now()) == []
    await here.write(claim, 1)
    here.clock.advance(31)
    assert await here.store.sweep(here.clock.now()) == ["root", "child"]


async def test_a_negative_limit_is_none_at_all() -> None:
    here = world()
    at = here.clock.now()
    claim = await here.running("task")
    await here.park(claim, set_timers=[Timer(name="timer", gen=2, at=at)])
    await here.ready("ready")
    store = here.store
    assert await store.read("task", limit=-1) == []
    assert await store.inbox("ready", -1) == []
    assert await store.claim("worker", limit=-1) == []
    assert await store.fire_timers(-1) == 0
    assert await store.tasks(limit=-1) == []
    assert await store.sweep(at + 100, -1) == []


async def test_those_that_wait_longest_come_first_lost_or_ready() -> None:
    here = world()
    for name, worker in (("first", "a"), ("third", "b")):
        await here.running(name, worker)
        here.clock.advance(20)
    await here.ready("second")
    here.clock.advance(20)
    await here.ready("fourth")
    claims = await here.store.claim("worker", limit=10)
    assert [claim.task for claim in claims] == ["first", "second", "third", "fourth"]
