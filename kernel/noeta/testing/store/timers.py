"""What timers and retries promise: each fires once, never early, and wakes only whom it may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noeta.core.log import Claim, Timer
from noeta.testing.store.world import StoreFactory, World, expect, mail, opened, refused, together
from noeta.toolkit.errors import Duplicate
from noeta.toolkit.store import timer_post


async def kept(world: World, reason: str = "idle", *timers: Timer) -> Claim:
    """A waiting task with these timers whose claim is kept."""
    claim = await world.running("task")
    await world.park(claim, reason, release=False, set_timers=timers)
    return claim


async def a_timer_fires_once_and_never_early(make_store: StoreFactory) -> None:
    """A timer set once fires once, not before its time, whoever asks and however often (I21)."""
    async with opened(make_store) as world:
        at = world.clock.now() + 10
        await world.park(await world.running("task"), set_timers=[Timer(name="tea", gen=2, at=at)])
        expect(await world.store.next_wake(), at, "the next wake")
        world.clock.advance(9.9)
        expect(await world.store.fire_timers(), 0, "the number of timers that fired early")
        expect(await world.status("task"), ("waiting", "idle"), "a task whose timer is not due")
        world.clock.advance(0.2)
        expect(await world.store.next_wake(), at, "the next wake, due by now")
        fired = await together(*(world.store.fire_timers() for _ in range(4)))
        expect(sorted(fired), [0, 0, 0, 1], "the numbers of timers that four workers fired")
        [item] = await world.store.inbox("task")
        wanted = timer_post("task", "tea", 2, "")
        expect((item.key, item.kind, item.body), (wanted.key, wanted.kind, wanted.body), "a timer's post")
        expect(await world.store.timers("task"), [], "the timers left")
        expect(await world.store.next_wake(), None, "the next wake when nothing is left")
        expect(await world.status("task"), ("ready", ""), "a task whose timer fired")
        await world.park(await world.claim("task"))
        world.clock.jump(-3600)
        expect(await world.store.fire_timers(), 0, "timers that fired again when the wall clock went back")
        world.clock.advance(4000)
        expect(await world.store.fire_timers(), 0, "timers that fired again later")


async def a_timer_goes_by_the_wall_clock(make_store: StoreFactory) -> None:
    """The wall clock set forward makes a timer due, set back it makes it wait longer (I21)."""
    async with opened(make_store) as world:
        await kept(world, "idle", Timer(name="tea", gen=2, at=world.clock.now() + 100))
        world.clock.jump(-50)
        world.clock.advance(101)
        expect(await world.store.fire_timers(), 0, "timers that fired while the wall clock was behind")
        world.clock.jump(50)
        expect(await world.store.fire_timers(), 1, "timers that fired when the wall clock was right again")


async def a_timer_set_again_replaces_and_cleared_is_gone(make_store: StoreFactory) -> None:
    """Under one name there is one timer, the last one set; a cleared one never fires (I21)."""
    async with opened(make_store) as world:
        now = world.clock.now()
        claim = await world.running("task")
        names = ("moved", "cleared", "stays")
        await world.write(
            claim, 1, set_timers=[Timer(name=name, gen=2, at=now + 4.9876543) for name in names]
        )
        later = Timer(name="moved", gen=3, at=now + 50, text="later")
        await world.park(claim, set_timers=[later], clear_timers=["cleared", "never set"])
        stays = Timer(name="stays", gen=2, at=now + 4.9876543)
        expect(await world.store.timers("task"), [later, stays], "the timers of a task, by name")
        world.clock.advance(10)
        expect(await world.store.fire_timers(), 1, "the timers that fired at the old time")
        expect(await world.keys("task"), ["timer:stays:2"], "the inbox at the old time")
        await world.park(await world.claim("task"))
        world.clock.advance(50)
        expect(await world.store.fire_timers(), 1, "the timers that fired at the new time")
        expect(await world.keys("task"), ["timer:moved:3"], "the inbox at the new time")


async def due_timers_fire_in_the_order_of_their_times(make_store: StoreFactory) -> None:
    """What is due when a worker looks fires in that round, earliest first and up to its limit (I21)."""
    async with opened(make_store) as world:
        now = world.clock.now()
        for task, ats in (("one", (30, 10)), ("two", (20,))):
            timers = [Timer(name=f"at {at}", gen=2, at=now + at) for at in ats]
            await world.park(await world.running(task), set_timers=timers)
        expect(await world.store.next_wake(), now + 10, "the next wake")
        world.clock.advance(100)
        expect(await world.store.fire_timers(), 3, "the number of timers that fired")
        expect(await world.keys("one"), ["timer:at 10:2", "timer:at 30:2"], "posts of timers in order")
        expect(await world.keys("two"), ["timer:at 20:2"], "the post of another task's timer")
    async with opened(make_store) as world:
        now = world.clock.now()
        for task, at in (("late", 30), ("early", 10), ("middle", 20)):
            await world.park(await world.running(task), set_timers=[Timer(name="t", gen=2, at=now + at)])
        world.clock.advance(100)
        expect(await world.store.fire_timers(1), 1, "the number of timers that fired with a limit")
        expect(await world.keys("early"), ["timer:t:2"], "the inbox of the task that was due first")
        expect(await world.store.fire_timers(1), 1, "the number of timers that fired with a limit")
        expect(await world.keys("middle"), ["timer:t:2"], "the inbox of the task that was due second")
        expect(await world.keys("late"), [], "the inbox of the task that was due last")


async def a_timer_with_text_waits_until_its_task_is_idle(make_store: StoreFactory) -> None:
    """A timer with text fires when its task waits idle, one without in any wait, none while it runs (I21)."""
    async with opened(make_store) as world:
        at = world.clock.now() + 1
        claim = await world.running("task")
        text, bare = Timer(name="text", gen=2, at=at, text="hello"), Timer(name="bare", gen=2, at=at + 1)
        await world.drain(claim, set_timers=[text, bare])
        world.clock.advance(10)
        expect(await world.store.fire_timers(), 0, "the timers that fired while their task ran")
        expect(await world.store.next_wake(), None, "the next wake while the task runs")
        await world.park(claim, "question", release=False)
        expect(await world.store.next_wake(), at + 1, "the next wake in a wait that is not idle")
        expect(await world.store.fire_timers(), 1, "the timers that fired in a wait that is not idle")
        expect(await world.keys("task"), ["timer:bare:2"], "the inbox in a wait that is not idle")
        await world.park(claim, "idle")
        expect(await world.store.next_wake(), at, "the next wake of an idle task")
        expect(await world.store.fire_timers(), 1, "the timers that fired when the task was idle")
        [item] = await world.store.inbox("task")
        expect(item.body, timer_post("task", "text", 2, "hello").body, "the post of a timer with text")


async def an_ended_task_keeps_no_timer(make_store: StoreFactory) -> None:
    """The end of a task takes its timers and its retry with it, those of its last append included (I21)."""
    async with opened(make_store) as world:
        at = world.clock.now() + 1
        claim = await world.running("task")
        await world.write(claim, 1, set_timers=[Timer(name="old", gen=2, at=at)])
        await world.end(claim, set_timers=[Timer(name="last", gen=3, at=at)], retry_at=at)
        expect(await world.store.timers("task"), [], "the timers of an ended task")
        expect(await world.store.next_wake(), None, "the next wake when all tasks have ended")
        world.clock.advance(10)
        expect(await world.store.fire_timers(), 0, "the timers that fired for an ended task")
        expect(await world.status("task"), ("ended", "done"), "an ended task")
        await world.store.post(mail("task", "erasure", "erase"))
        late = Timer(name="late", gen=4, at=at)
        await world.drain(await world.claim("task"), set_timers=[late], retry_at=at, release=True)
        expect(await world.store.timers("task"), [], "the timers that an erasure set for an ended task")
        expect((await world.store.task("task")).retry_at, None, "the retry of an ended task")


async def a_kept_task_gets_its_timer(make_store: StoreFactory) -> None:
    """A waiting task whose claim is kept is woken by its timer too, and stays its worker's (I21)."""
    async with opened(make_store) as world:
        claim = await kept(world, "children", Timer(name="bare", gen=2, at=world.clock.now() + 5))
        expect(await world.store.next_wake(), world.clock.now() + 5, "the next wake of a kept task")
        world.clock.advance(6)
        expect(await world.store.fire_timers(), 1, "the timers that fired for a kept task")
        expect(await world.keys("task"), ["timer:bare:2"], "the inbox of a kept task")
        expect(await world.status("task"), ("ready", ""), "a kept task whose timer fired")
        expect(await world.claimable("other"), [], "tasks to take while their worker lives")
        await world.drain(claim)


async def a_timers_key_is_a_dedupe_key(make_store: StoreFactory) -> None:
    """The post of a timer has its key for ever, and is passed over where the key was accepted (I8, I21)."""
    async with opened(make_store) as world:
        claim = await kept(world, "idle", Timer(name="t", gen=2, at=1.0))
        await world.store.fire_timers()
        await refused(
            world.store.post(mail("task", "timer:t:2")), Duplicate, "a post with a fired timer's key"
        )
        await world.store.post(mail("task", "timer:by hand:5", body=b"by hand"))
        await world.store.post(mail("task", "last"))
        await world.park(claim, release=False, set_timers=[Timer(name="by hand", gen=5, at=1.0)])
        await world.store.fire_timers()
        expect(await world.store.timers("task"), [], "the timers left when one was due")
        expect(await world.keys("task"), [], "the inbox when a due timer's key was accepted before")
        await world.write(claim, 1, posts=[mail("task", "next")])
        expect((await world.store.inbox("task"))[0].n, 5, "the number of the fifth post")


async def a_retry_makes_a_waiting_task_ready(make_store: StoreFactory) -> None:
    """`retry_at` wakes a waiting task without a post, once, unless a post woke it before (I21)."""
    async with opened(make_store) as world:
        at = world.clock.now() + 10
        await world.park(await world.running("task"), "provider", retry_at=at)
        await world.park(await world.running("woken"), "provider", retry_at=at)
        expect(await world.store.next_wake(), at, "the next wake")
        await world.store.post(mail("woken", "wake"))
        expect((await world.store.task("woken")).retry_at, None, "the retry of a task that a post woke")
        await world.park(await world.claim("woken"))
        world.clock.advance(9)
        expect(await world.store.fire_timers(), 0, "the retries that came due early")
        world.clock.advance(2)
        expect(await world.store.fire_timers(), 1, "the retries that came due")
        expect(await world.status("task"), ("ready", ""), "a task to retry")
        expect(await world.status("woken"), ("waiting", "idle"), "a task that a post had woken")
        expect(await world.keys("task"), [], "the inbox of a task to retry")
        expect(await world.store.fire_timers(), 0, "the retries that came due again")
        expect(await world.claimable("other"), ["task"], "tasks to take when a retry came due")


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    a_timer_fires_once_and_never_early,
    a_timer_goes_by_the_wall_clock,
    a_timer_set_again_replaces_and_cleared_is_gone,
    due_timers_fire_in_the_order_of_their_times,
    a_timer_with_text_waits_until_its_task_is_idle,
    an_ended_task_keeps_no_timer,
    a_kept_task_gets_its_timer,
    a_timers_key_is_a_dedupe_key,
    a_retry_makes_a_waiting_task_ready,
)
