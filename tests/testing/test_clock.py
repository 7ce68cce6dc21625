"""The clock of a test moves only when told to, and its ids repeat."""

from __future__ import annotations

import math

import anyio
import pytest

from noeta.testing.clock import FrozenClock, SeededIds

pytestmark = pytest.mark.anyio


def test_time_stands_still_until_it_is_advanced() -> None:
    clock = FrozenClock(now=100.0)
    before = clock.monotonic()
    assert clock.now() == 100.0
    clock.advance(2.5)
    assert (clock.now(), clock.monotonic() - before) == (102.5, 2.5)


def test_a_jump_moves_the_wall_clock_alone() -> None:
    clock = FrozenClock(now=100.0)
    before = clock.monotonic()
    clock.jump(-3600.0)
    assert (clock.now(), clock.monotonic()) == (-3500.0, before)
    clock.jump(3601.0)
    assert (clock.now(), clock.monotonic()) == (101.0, before)


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        FrozenClock().advance(-1.0)


async def test_sleepers_wake_when_their_time_has_come() -> None:
    clock, woken = FrozenClock(), []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async with anyio.create_task_group() as group:
        for seconds in (3.0, 1.0, 2.0, 2.0):
            group.start_soon(sleep, seconds)
        await anyio.wait_all_tasks_blocked()
        clock.jump(86_400.0)
        await anyio.wait_all_tasks_blocked()
        assert woken == []
        clock.advance(0.9)
        await anyio.wait_all_tasks_blocked()
        assert woken == []
        clock.advance(0.1)
        await anyio.wait_all_tasks_blocked()
        assert woken == [1.0]
        clock.advance(5.0)
    assert sorted(woken) == [1.0, 2.0, 2.0, 3.0]


async def test_many_small_steps_are_one_large_one() -> None:
    clock = FrozenClock()
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 1.0)
        await anyio.wait_all_tasks_blocked()
        for _ in range(10):
            clock.advance(0.1)
    assert clock.monotonic() == 1.0


async def test_a_sleep_of_no_length_ends_and_lets_others_run() -> None:
    clock, ran = FrozenClock(), anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 0.0)
        group.start_soon(clock.sleep, -1.0)

        async def run() -> None:
            ran.set()

        group.start_soon(run)
        while not ran.is_set():
            await clock.sleep(0.0)


async def test_a_sleep_without_end_never_ends() -> None:
    clock, awake = FrozenClock(), False

    async def sleep() -> None:
        nonlocal awake
        await clock.sleep(math.inf)
        awake = True

    async with anyio.create_task_group() as group:
        group.start_soon(sleep)
        await anyio.wait_all_tasks_blocked()
        clock.advance(1e15)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert not awake


async def test_the_shortest_sleep_is_a_microsecond() -> None:
    clock = FrozenClock()
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 1e-9)
        await anyio.wait_all_tasks_blocked()
        clock.advance(1e-6)
    assert clock.monotonic() == 1e-6


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FrozenClock()
    async with anyio.create_task_group() as group:
        group.start_soon(clock.sleep, 1.0)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    clock.advance(2.0)
    assert clock.monotonic() == 2.0


def test_ids_repeat_with_their_seed_and_never_within_one() -> None:
    one, same, other = SeededIds(1), SeededIds(1), SeededIds(2)
    made = [(one.token(), one.new()) for _ in range(100)]
    assert made == [(same.token(), same.new()) for _ in range(100)]
    assert made[0] != (other.token(), other.new())
    tokens, names = zip(*made, strict=True)
    assert len(set(tokens)) == len(set(names)) == 100
    assert {len(token) for token in tokens} == {16}
    assert all(name.isalnum() and name == name.lower() for name in names)
