"""What two calls at once promise: wherever one suspends while the other runs, they end as if in turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from noeta.core.codec import blob_of
from noeta.core.log import Timer
from noeta.testing.store.cut import outcome, within
from noeta.testing.store.erasure import stone
from noeta.testing.store.observed import Seen, differences, observe
from noeta.testing.store.world import StoreFactory, World, line, lines, mail, new, opened

Call = Callable[[], Awaitable[Any]]
Pair = Callable[[World], Awaitable[tuple[Call, Call]]]
"""Prepares a world for two calls. Each gives back what it saw, in values that can be compared."""

BLOB = blob_of(b"picture")


async def seen_by_all(world: World) -> Seen:
    """What can be seen, but for the fences: how many a claim skips is left to the store."""
    seen = await observe(world.store, [BLOB.sha256])
    for task in seen.tasks.values():
        task.row = msgspec.structs.replace(task.row, fence=0)
    return seen


async def as_if_in_turn(make_store: StoreFactory, names: str, pair: Pair) -> None:
    """Run one call within the other, wherever that suspends, and compare with what they do in turn."""
    in_turn: list[tuple[list[Any], Seen]] = []
    for order in ((0, 1), (1, 0)):
        async with opened(make_store) as world:
            calls, told = await pair(world), [None, None]
            for place in order:
                told[place] = await outcome(calls[place]())
            in_turn.append((told, await seen_by_all(world)))
    for held, whole in ((0, 1), (1, 0)):
        reached, at = True, 0
        while reached:
            at += 1
            async with opened(make_store) as world:
                calls, told = await pair(world), [None, None]
                told[held], told[whole], reached = await within(calls[held], at, calls[whole])
                seen = await seen_by_all(world)
            wrong = [
                [*([f"they told {told}, not {wanted}"] if told != wanted else []), *differences(seen, state)]
                for wanted, state in in_turn
            ]
            if all(wrong):
                raise AssertionError(
                    f"{names}: with the {'first' if whole == 0 else 'second'} run whole where the other"
                    f" suspends for the {at}. time, neither order explains the end:"
                    f" {'; '.join(wrong[0][:3])}; or {'; '.join(wrong[1][:3])}"
                )


async def told(append: Awaitable[Any]) -> tuple[object, ...]:
    """What an append reports."""
    done = await append
    return done.last_seq, [post.key for post in done.undelivered], list(done.existing)


async def takes(world: World, worker: str, task: str) -> list[object]:
    """Claim a task, and look at once at what the claimer will build on."""
    found: list[object] = []
    for claim in await world.store.claim(worker, task=task):
        items = await world.store.inbox(task)
        row = await world.store.task(task)
        found = [claim.attempts, claim.unreleased, row.last_seq, [item.key for item in items]]
    return found


async def mail_beside_a_wait_is_not_slept_over(make_store: StoreFactory) -> None:
    """A post while its task goes to wait or to end comes before, or wakes it, or finds it over (I9)."""
    for status in ("waiting", "ended"):
        for sender in ("a client", "a child"):

            async def pair(world: World, status: str = status, sender: str = sender) -> tuple[Call, Call]:
                claim = await world.running("task")
                child = await world.running("child", "another", parent="task")
                step: dict[str, Any] = {"consume": [1], "status": status, "reason": "idle", "release": True}
                end: dict[str, Any] = step | {"status": "ended", "posts": [mail("task", "late")]}

                async def send() -> object:
                    if sender == "a client":
                        await world.store.post(mail("task", "late"))
                        return None
                    return await told(world.append(child, 1, b"end", lines(1, 1), **end))

                return lambda: told(world.append(claim, 1, b"step", lines(1, 1), **step)), send

            await as_if_in_turn(make_store, f"an append with {status} and mail from {sender}", pair)


async def a_write_beside_a_takeover_comes_before_it_or_not_at_all(make_store: StoreFactory) -> None:
    """Once another worker's claim is answered, nothing is written under the one before (I3)."""
    for name in ("an append", "a purge", "a release"):

        async def pair(world: World, name: str = name) -> tuple[Call, Call]:
            claim = await world.running("task", "paused", blobs=[BLOB])
            world.clock.advance(31)
            step: dict[str, Any] = {"consume": [1], "posts": [mail("task", "from the paused one")]}
            calls: dict[str, Call] = {
                "an append": lambda: told(world.append(claim, 1, b"step", lines(1, 1), **step)),
                "a purge": lambda: world.store.purge(claim, [stone(line(1))], [BLOB.sha256]),
                "a release": lambda: world.store.release(claim),
            }

            async def take() -> object:
                found = await takes(world, "other", "task")
                return [found, await world.store.read_blob(BLOB.sha256)]

            return calls[name], take

        await as_if_in_turn(make_store, f"{name} and a claim of another worker", pair)


async def an_append_tried_twice_at_once_is_there_once(make_store: StoreFactory) -> None:
    """A repetition while the first try is still under way writes nothing, and both report the seq (I6)."""

    async def pair(world: World) -> tuple[Call, Call]:
        claim = await world.running("task")
        await world.idle("other")
        step: dict[str, Any] = {
            "consume": [1],
            "posts": [mail("other", "hello")],
            "status": "waiting",
            "release": True,
        }

        async def call() -> int:
            return (await world.append(claim, 1, b"one and the same", lines(1, 1), **step)).last_seq

        return call, call

    await as_if_in_turn(make_store, "an append and the same again", pair)


async def of_two_posts_at_once_with_one_key_one_is_accepted(make_store: StoreFactory) -> None:
    """Two posts of one key at once, plain or by an append, give one item, and the second is told (I8)."""

    async def posts(world: World) -> tuple[Call, Call]:
        await world.idle("task")
        one, two = (mail("task", "key", body=body) for body in (b"one", b"two"))
        return lambda: world.store.post(one), lambda: world.store.post(two)

    async def append(world: World) -> tuple[Call, Call]:
        await world.idle("task")
        other = await world.running("other")
        one, two = (mail("task", "key", body=body) for body in (b"one", b"two"))
        return lambda: told(world.write(other, 1, posts=[one])), lambda: world.store.post(two)

    await as_if_in_turn(make_store, "two posts of one key", posts)
    await as_if_in_turn(make_store, "an append that posts a key and a post of that key", append)


async def of_two_tasks_made_at_once_there_is_one(make_store: StoreFactory) -> None:
    """Of one id or one spawn key comes one task, whole before anyone posts to it or claims it (I11)."""
    posts = [mail("task", "one"), mail("task", "two")]
    mine = new("task", agent="mine", parent="parent", key="key", posts=posts, blobs=[BLOB])
    others = {
        "the same id": new("task", agent="other", posts=[mail("task", "three")]),
        "the same spawn key": new("other", agent="other", parent="parent", key="key"),
    }

    async def parent(world: World) -> tuple[Call, Call]:
        claim = await world.running("parent")
        return lambda: world.store.create(mine), lambda: told(world.write(claim, 1, spawn=[mine]))

    ways = ("create", "spawn")
    for place, way in enumerate(ways):

        def first(calls: tuple[Call, Call], place: int = place) -> Call:
            return calls[place]

        for why, other in others.items():

            async def double(world: World, first: Any = first, other: Any = other) -> tuple[Call, Call]:
                return first(await parent(world)), lambda: world.store.create(other)

            await as_if_in_turn(make_store, f"{way} and a create with {why}", double)

        async def post(world: World, first: Any = first) -> tuple[Call, Call]:
            return first(await parent(world)), lambda: world.store.post(mail("task", "early"))

        async def claim(world: World, first: Any = first) -> tuple[Call, Call]:
            return first(await parent(world)), lambda: takes(world, "other", "task")

        await as_if_in_turn(make_store, f"{way} and a post to the new task", post)
        await as_if_in_turn(make_store, f"{way} and a claim of the new task", claim)


async def what_is_due_fires_before_a_step_or_after_it(make_store: StoreFactory) -> None:
    """A timer or retry that comes due while its task takes a step fires once, or is cleared unfired (I21)."""
    for name in ("clear", "go on", "wait anew"):

        async def pair(world: World, name: str = name) -> tuple[Call, Call]:
            at = world.clock.now() + 1
            claim = await world.running("task")
            timers = [Timer(name="t", gen=2, at=at)] * (name != "go on")
            await world.park(claim, release=False, set_timers=timers, retry_at=at + 1)
            world.clock.advance(5)
            steps: dict[str, dict[str, Any]] = {
                "clear": {"status": "waiting", "reason": "idle", "clear_timers": ["t"]},
                "go on": {"status": "running"},
                "wait anew": {"status": "waiting", "reason": "question", "retry_at": at + 100},
            }
            return (
                lambda: told(world.append(claim, 2, b"step", lines(2, 1), **steps[name])),
                world.store.fire_timers,
            )

        await as_if_in_turn(make_store, f"an append ({name}) and `fire_timers`", pair)

    async def twice(world: World) -> tuple[Call, Call]:
        at = world.clock.now() + 1
        for task in ("one", "two"):
            await world.park(await world.running(task), set_timers=[Timer(name="t", gen=2, at=at)])
            at += 1
        await world.park(await world.running("three"), retry_at=at)
        world.clock.advance(5)
        return world.store.fire_timers, world.store.fire_timers

    await as_if_in_turn(make_store, "`fire_timers` by two workers", twice)


async def of_two_claims_at_once_one_gets_the_task(make_store: StoreFactory) -> None:
    """Of two workers that claim at once, one gets a task that is ready or lost, the other nothing (I4)."""
    for state in ("ready", "lost"):

        async def pair(world: World, state: str = state) -> tuple[Call, Call]:
            await world.ready("task")
            if state == "lost":
                await world.claim("task", "gone")
                world.clock.advance(31)
            return lambda: takes(world, "one", "task"), lambda: takes(world, "two", "task")

        await as_if_in_turn(make_store, f"two claims of a {state} task", pair)


async def a_sweep_beside_a_fork_takes_nothing_that_it_needs(make_store: StoreFactory) -> None:
    """A tree that a new task begins to continue stays, or was gone before (I31)."""

    async def pair(world: World) -> tuple[Call, Call]:
        await world.ended("base", blobs=[BLOB])
        await world.ended("base/child", root="base", parent="base")
        world.clock.advance(10)
        before = world.clock.now()

        async def sweep() -> list[str]:
            return sorted(await world.store.sweep(before))

        fork = new("fork", base="base/child", through=1)
        return lambda: world.store.create(fork), sweep

    await as_if_in_turn(make_store, "a task that continues another and a sweep", pair)


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    mail_beside_a_wait_is_not_slept_over,
    a_write_beside_a_takeover_comes_before_it_or_not_at_all,
    an_append_tried_twice_at_once_is_there_once,
    of_two_posts_at_once_with_one_key_one_is_accepted,
    of_two_tasks_made_at_once_there_is_one,
    what_is_due_fires_before_a_step_or_after_it,
    of_two_claims_at_once_one_gets_the_task,
    a_sweep_beside_a_fork_takes_nothing_that_it_needs,
)
