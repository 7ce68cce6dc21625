"""What a cancelled call promises: wherever it suspended, all of it happened or nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec

from noeta.core.codec import blob_of
from noeta.core.log import SnapshotPart, Timer
from noeta.testing.store.cut import Cut, outcome
from noeta.testing.store.erasure import stone
from noeta.testing.store.observed import Seen, differences, observe, same
from noeta.testing.store.world import StoreFactory, World, expect, line, mail, new, opened

Call = Callable[[], Awaitable[Any]]
BLOB = blob_of(b"picture")


async def seen_by_all(world: World) -> Seen:
    """What can be seen, but for the fences: a claim that was cancelled may have used one."""
    seen = await observe(world.store, [BLOB.sha256])
    for task in seen.tasks.values():
        task.row = msgspec.structs.replace(task.row, fence=0)
    return seen


async def lands_whole_or_not_at_all(
    make_store: StoreFactory,
    name: str,
    prepare: Callable[[World], Awaitable[Call]],
    claimable: list[str],
    repeat: bool = True,
) -> None:
    """Cancel the call wherever it suspends, look, and repeat it, unless its caller has died.

    In the end another worker can claim those tasks, when all leases have run out.
    """
    async with opened(make_store) as world:
        await (await prepare(world))()
        wanted = await seen_by_all(world)
    reached, at = True, 0
    while reached:
        at += 1
        async with opened(make_store) as world:
            call = await prepare(world)
            before = await seen_by_all(world)
            with anyio.CancelScope() as scope:
                cut = Cut(call(), scope, at)
                await cut
            reached = cut.reached
            when = f"`{name}` cancelled where it suspends for the {at}. time"
            seen = await seen_by_all(world)
            lacking, surplus = list(differences(seen, wanted)), list(differences(seen, before))
            if lacking and surplus:
                raise AssertionError(
                    f"{when} is torn: {'; '.join(surplus[:3])} of before; and {'; '.join(lacking[:3])}"
                )
            if repeat:
                told = await outcome(call())
                # What landed may say so.
                if isinstance(told, str) and told != "Duplicate":
                    raise AssertionError(f"{when} could not be repeated: {told}")
                same(await seen_by_all(world), wanted, f"after {when} was repeated")
            world.clock.advance(31)
            expect(await world.claimable("another"), claimable, f"the tasks to take after {when}")


async def a_cancelled_create_makes_a_whole_task_or_none(make_store: StoreFactory) -> None:
    """A task that exists after a cancel has its records, posts and blobs, and can be claimed (I1, I34)."""

    async def prepare(world: World) -> Call:
        posts = [mail("task", "one"), mail("task", "two")]
        return lambda: world.store.create(new("task", posts=posts, blobs=[BLOB]))

    await lands_whole_or_not_at_all(make_store, "create", prepare, ["task"])


async def a_cancelled_post_wakes_its_task_or_is_not_there(make_store: StoreFactory) -> None:
    """An item that is in the inbox after a cancel has made its waiting task ready (I9, I34)."""

    async def prepare(world: World) -> Call:
        await world.idle("task")
        return lambda: world.store.post(mail("task", "key"))

    await lands_whole_or_not_at_all(make_store, "post", prepare, ["task"])


async def a_cancelled_claim_has_a_lease_or_is_none(make_store: StoreFactory) -> None:
    """A claim whose answer is lost runs out with its lease, and another worker has its turn (I28, I34)."""

    async def prepare(world: World) -> Call:
        for task in ("one", "two"):
            await world.ready(task)
        return lambda: world.store.claim("worker", limit=2)

    await lands_whole_or_not_at_all(make_store, "claim", prepare, ["one", "two"], repeat=False)


async def a_cancelled_release_gives_up_or_does_not(make_store: StoreFactory) -> None:
    """A task whose claim was given up is there for others, whenever the release was cancelled (I14, I34)."""

    async def prepare(world: World) -> Call:
        claim = await world.running("task")
        return lambda: world.store.release(claim)

    await lands_whole_or_not_at_all(make_store, "release", prepare, ["task"])


async def a_cancelled_purge_takes_all_or_nothing(make_store: StoreFactory) -> None:
    """Records, snapshot and blobs go together, or all stay, and the purge can be repeated (I22, I34)."""

    async def prepare(world: World) -> Call:
        claim = await world.running("task", blobs=[BLOB])
        part = SnapshotPart(name="part", fingerprint="code", seq=1, data=b"1")
        await world.write(claim, 2, snapshot=[part])
        stones = [stone(line(2)), stone(line(3))]
        return lambda: world.store.purge(claim, stones, [BLOB.sha256])

    await lands_whole_or_not_at_all(make_store, "purge", prepare, ["task"])


async def a_cancelled_round_of_timers_loses_none(make_store: StoreFactory) -> None:
    """What fired is in the inbox and what did not is still set, after a round cancelled (I21, I34)."""

    async def prepare(world: World) -> Call:
        at = world.clock.now() + 1
        timers = [Timer(name="one", gen=2, at=at)]
        await world.park(await world.running("task"), set_timers=timers)
        await world.park(await world.running("retried"), retry_at=at + 1)
        world.clock.advance(5)
        return world.store.fire_timers

    await lands_whole_or_not_at_all(make_store, "fire_timers", prepare, ["retried", "task"])


async def a_cancelled_sweep_tears_no_tree(make_store: StoreFactory) -> None:
    """A tree is whole or gone after a cancel (I1, I34)."""

    async def prepare(world: World) -> Call:
        await world.ended("root", blobs=[BLOB])
        await world.ended("child", root="root", parent="root", key="key")
        await world.ready("other")
        world.clock.advance(10)
        before = world.clock.now()
        return lambda: world.store.sweep(before)

    await lands_whole_or_not_at_all(make_store, "sweep", prepare, ["other"])


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    a_cancelled_create_makes_a_whole_task_or_none,
    a_cancelled_post_wakes_its_task_or_is_not_there,
    a_cancelled_claim_has_a_lease_or_is_none,
    a_cancelled_release_gives_up_or_does_not,
    a_cancelled_purge_takes_all_or_nothing,
    a_cancelled_round_of_timers_loses_none,
    a_cancelled_sweep_tears_no_tree,
)
