"""What watches promise: a change is never lost between two waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noeta.core.log import Claim, Timer
from noeta.testing.store.world import StoreFactory, expect, mail, opened


async def a_change_between_two_waits_is_not_lost(make_store: StoreFactory) -> None:
    """What changes after a watch begins, and between two of its waits, ends the next wait at once (I9)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        async with world.store.watch("task") as watch:
            await world.write(claim, 1)
            expect(await world.wait(watch), True, "a wait after an append")
            await world.store.post(mail("task", "first"))
            expect(await world.wait(watch), True, "a wait after a post")
        async with world.store.watch("task", log=False) as watch:
            # Records alone need not be told of, nor must they hide the post behind them.
            await world.write(claim, 1)
            await world.store.post(mail("task", "second"))
            await world.write(claim, 1)
            expect(await world.wait(watch), True, "a wait without the log after a post")
            await world.park(claim)
            expect(await world.wait(watch), True, "a wait without the log after a wait")
        async with world.store.watch() as watch:
            await world.store.post(mail("task", "third"))
            expect(await world.wait(watch), True, "a wait of a worker after a post that wakes")


async def a_wait_ends_with_a_change_or_with_its_time(make_store: StoreFactory) -> None:
    """Whoever waits is woken by an append, a post or a timer, and else when time is up (I9).

    An append is no matter of a worker's, so who watches all need not hear of it.
    """
    async with opened(make_store) as world:
        claim = await world.running("task")
        at = world.clock.now() + 5000

        async def fire() -> None:
            world.clock.jump(6000)
            await world.store.fire_timers()

        async with world.store.watch("task") as own, world.store.watch() as every:
            for watch in (own, every):
                expect(await world.times_out(watch), True, "a short wait ends when nothing happens")
            for n, (why, change) in enumerate(
                (
                    ("an append", lambda: world.drain(claim)),
                    ("a post", lambda: world.store.post(mail("task", "first"))),
                    ("a wait", lambda: world.park(claim, set_timers=[Timer(name="t", gen=9, at=at)])),
                    ("a timer", fire),
                )
            ):
                # Each kind of watch waits for half of the changes, and has to notice the other half later.
                one, other = (every, own) if n % 2 else (own, every)
                expect(await world.wait(one, change), True, f"a wait ends with {why}")
                if n > 0:
                    expect(await world.wait(other), True, f"a wait after {why} ends at once")


async def a_watch_on_everything_sees_work_to_do(make_store: StoreFactory) -> None:
    """A worker that watches all is woken by a new task, a wake and a release, and finds the task (I9)."""
    async with opened(make_store) as world, world.store.watch() as watch:
        expect(await world.wait(watch, lambda: world.ready("task")), True, "a wait ends with a new task")
        claim = await world.claim("task")
        await world.times_out(watch)
        expect(
            await world.wait(watch, lambda: world.store.release(claim)), True, "a wait ends with a release"
        )
        await world.park(await world.claim("task"))
        await world.times_out(watch)
        post = mail("task", "wake")
        expect(await world.wait(watch, lambda: world.store.post(post)), True, "a wait ends with a wake")
        expect(await world.claimable("worker"), ["task"], "the tasks to take after a wait ended")


async def a_watch_on_a_task_hears_of_what_others_do_to_it(make_store: StoreFactory) -> None:
    """Mail that comes with the append of another task, a claim and a release end a wait (I9, I12)."""
    async with opened(make_store) as world:
        await world.idle("parent")
        child = await world.running("child", parent="parent")
        end = mail("parent", "child:child", "child_ended")
        async with world.store.watch("parent") as watch:
            await world.times_out(watch)
            found = await world.wait(watch, lambda: world.end(child, posts=[end]))
            expect(found, True, "a wait ends with mail that another task's append brings")
            expect(await world.keys("parent"), ["child:child"], "the inbox after that wait")
            await world.times_out(watch)
            claims: list[Claim] = []

            async def claim() -> None:
                claims.append(await world.claim("parent"))

            expect(await world.wait(watch, claim), True, "a wait ends with a claim")
            await world.times_out(watch)
            found = await world.wait(watch, lambda: world.store.release(claims[0]))
            expect(found, True, "a wait ends with a release")


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    a_change_between_two_waits_is_not_lost,
    a_wait_ends_with_a_change_or_with_its_time,
    a_watch_on_everything_sees_work_to_do,
    a_watch_on_a_task_hears_of_what_others_do_to_it,
)
