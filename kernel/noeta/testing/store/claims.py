"""What claims and leases promise: one writer a task, whatever the clocks say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from noeta.core.errors import Fenced
from noeta.core.log import Claim
from noeta.testing.store.observed import observe, same
from noeta.testing.store.world import (
    StoreFactory,
    World,
    expect,
    line,
    lines,
    mail,
    opened,
    refused,
    together,
)


async def writes_nothing(world: World, stale: Claim, why: str) -> None:
    """Every way to write with a claim that is not the newest is refused, or does nothing."""
    before = await observe(world.store)
    seq = before.tasks[stale.task].row.last_seq
    append = world.append(stale, seq, world.ids.token(), lines(seq, 1))
    await refused(append, Fenced, f"an append under a claim {why}")
    await refused(world.append(stale, seq, world.ids.token()), Fenced, f"an empty append under one {why}")
    purge = world.store.purge(stale, [line(1, "gone")], [])
    await refused(purge, Fenced, f"a purge under a claim {why}")
    await world.store.release(stale)
    same(await observe(world.store), before, f"after the holder of a claim {why} tried to write")


async def a_stale_claim_writes_nothing(make_store: StoreFactory) -> None:
    """A worker paused past its lease writes nothing once another has claimed, nor after a release (I3)."""
    async with opened(make_store) as world:
        paused = await world.running("task", "paused")
        world.clock.advance(31)
        await world.claim("task", "other")
        await writes_nothing(world, paused, "that another worker took over")
        await world.store.renew("paused")
        await writes_nothing(world, paused, "that was renewed too late")
        world.clock.advance(31)
        await writes_nothing(world, paused, "of a worker before the last, whose lease ran out too")
    async with opened(make_store) as world:
        given_up = await world.running("task")
        await world.store.release(given_up)
        await writes_nothing(world, given_up, "that was given up")
        await world.claim("task")
        await writes_nothing(world, given_up, "that the same worker replaced")


async def a_lease_that_ran_out_alone_stops_nobody(make_store: StoreFactory) -> None:
    """The newest claim writes even when its lease ran out: only another claim ends it (I3, I5)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        world.clock.advance(1000)
        done = await world.write(claim, 1)
        expect(done.last_seq, 2, "the seq after an append of the newest claim")


async def fence_and_token_must_both_match(make_store: StoreFactory) -> None:
    """A fence number issued twice lets nobody in without its token, nor a token without its fence (I4)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        expect(len(claim.token), 16, "the length of a token")
        for why, forged in (
            ("with an equal fence and another token", msgspec.structs.replace(claim, token=b"x" * 16)),
            ("with an equal fence and no token", msgspec.structs.replace(claim, token=b"")),
            ("with an older fence", msgspec.structs.replace(claim, fence=claim.fence - 1)),
            ("with a newer fence", msgspec.structs.replace(claim, fence=claim.fence + 1)),
        ):
            await writes_nothing(world, forged, why)
        await world.write(claim, 1)


async def every_claim_has_a_higher_fence(make_store: StoreFactory) -> None:
    """The fence of a task grows with every claim, released or lost, and the token is another (I4)."""
    async with opened(make_store) as world:
        await world.ready("task")
        claims: list[Claim] = []
        for turn in range(6):
            claims.append(await world.claim("task", f"worker {turn}"))
            expect((await world.store.task("task")).fence, claims[-1].fence, "the fence of the row")
            if turn % 2:
                await world.store.release(claims[-1])
            else:
                world.clock.advance(31)
        fences = [claim.fence for claim in claims]
        expect(fences, sorted(set(fences)), "the fences of claims in order")
        expect(len({claim.token for claim in claims}), 6, "the number of different tokens")


async def concurrent_claimers_get_different_tasks(make_store: StoreFactory) -> None:
    """However many workers claim at once, each task goes to one of them (I4)."""
    async with opened(make_store) as world:
        tasks = [f"task {n}" for n in range(12)]
        for task in tasks:
            await world.ready(task)
        found = await together(*(world.store.claim(f"worker {n}", limit=1 + n % 3) for n in range(16)))
        if errors := [result for result in found if isinstance(result, Exception)]:
            raise AssertionError(f"a claim beside others raised {errors[0]!r}") from errors[0]
        claimed = [claim for result in found for claim in result]
        expect(sorted(claim.task for claim in claimed), sorted(tasks), "the tasks that claimers got")
        for claim in claimed:
            await world.write(claim, 1)


async def wall_clock_jumps_change_no_claim(make_store: StoreFactory) -> None:
    """Leases run by the monotonic clock: a wall clock a day off neither ends nor extends one (I5)."""
    for jump in (86_400.0, -86_400.0):
        async with opened(make_store) as world:
            claim = await world.running("task", "worker")
            world.clock.jump(jump)
            expect(await world.claimable("other"), [], f"tasks to take when the wall clock jumped {jump} s")
            expect(await world.store.renew("worker"), True, f"a renewal when the wall clock jumped {jump} s")
            await world.write(claim, 1)
            world.clock.advance(31)
            expect(await world.claimable("other"), ["task"], f"lost tasks after a jump of {jump} s")


async def a_lost_task_is_claimable_whatever_its_status(make_store: StoreFactory) -> None:
    """A task whose holder's lease ran out can be claimed, also one that has ended: its holder may have died
    before it removed what was erased (I4, I22, I28).
    """
    async with opened(make_store) as world:
        await world.running("running", "gone")
        await world.park(await world.running("kept", "gone"), "children", release=False)
        await world.end(await world.running("ended", "gone"), release=False)
        await world.end(await world.running("over", "gone"), release=False)
        await world.store.post(mail("ended", "erasure", "erase"))
        await world.running("safe", "alive")
        world.clock.advance(20)
        await world.store.renew("alive")
        expect(await world.claimable("early"), [], "tasks to take while all leases run")
        world.clock.advance(11)
        claims = await world.store.claim("next", limit=10)
        lost = ["ended", "kept", "over", "running"]
        expect(sorted(claim.task for claim in claims), lost, "tasks of a lost worker")
        expect([claim.unreleased for claim in claims], [True] * 4, "`unreleased` of what was not given up")
        wanted = {"running": ("running", ""), "kept": ("waiting", "children"), "ended": ("ended", "done")}
        wanted["over"] = ("ended", "done")
        for task, status in wanted.items():
            expect(await world.status(task), status, f"status and reason of {task!r}, claimed again")
            expect((await world.store.task(task)).worker, "next", f"the worker of {task!r}")


async def unreleased_says_that_a_claim_was_not_given_up(make_store: StoreFactory) -> None:
    """A claim after a release, plain or with an append, follows nobody who may have died (I14)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        expect(claim.unreleased, False, "`unreleased` of a first claim")
        await world.store.release(claim)
        claim = await world.claim("task")
        expect(claim.unreleased, False, "`unreleased` after a release")
        await world.write(claim, 1, release=True)
        claim = await world.claim("task", "gone")
        expect(claim.unreleased, False, "`unreleased` after an append that released")
        world.clock.advance(31)
        claim = await world.claim("task", "next")
        expect(claim.unreleased, True, "`unreleased` after a lost claim")


async def a_lease_that_ran_out_stays_so(make_store: StoreFactory) -> None:
    """A worker whose lease ran out renews nothing and claims nothing, until it takes a new name (I28)."""
    async with opened(make_store) as world:
        claim = await world.running("task", "worker")
        await world.ready("free")
        world.clock.advance(31)

        async def is_out(when: str) -> None:
            expect(await world.store.renew("worker"), False, f"a renewal {when}")
            await refused(world.store.claim("worker"), Fenced, f"a claim {when}")

        await is_out("after the lease ran out")
        await world.claim("task", "other")
        await is_out("after another worker took the task")
        await world.store.release(claim)
        await is_out("after a release that came too late")
        expect((await world.claim("free", "worker again")).worker, "worker again", "the worker of a claim")
    async with opened(make_store) as world:
        claim = await world.running("task", "worker")
        world.clock.advance(31)
        await world.store.release(claim)
        expect(await world.store.renew("worker"), False, "a renewal after all was given up too late")


async def one_lease_covers_all_a_worker_holds(make_store: StoreFactory) -> None:
    """A renewal, or a further claim, extends the worker's one lease for every task it holds (I28)."""
    async with opened(make_store) as world:
        await world.running("first", "worker")
        world.clock.advance(20)
        await world.running("second", "worker")
        world.clock.advance(20)
        expect(await world.claimable("other"), [], "tasks to take after a further claim extended the lease")
        expect(await world.store.renew("worker", 100.0), True, "a renewal in time")
        world.clock.advance(90)
        expect(await world.claimable("other"), [], "tasks to take after a renewal")
        world.clock.advance(11)
        expect(await world.claimable("other"), ["first", "second"], "tasks to take when the lease ran out")


async def attempts_count_claims_since_progress(make_store: StoreFactory) -> None:
    """Every claim that was not given up counts, until an append says that the task made progress (I27)."""
    async with opened(make_store) as world:
        await world.ready("task")
        for number, attempts in ((1, 1), (2, 2), (3, 2), (4, 3)):
            claim = await world.claim("task", f"worker {number}")
            expect(claim.attempts, attempts, "the attempts of a claim without progress before it")
            expect((await world.store.task("task")).attempts, attempts, "the attempts of the row")
            await world.write(claim, 1)
            if number == 2:
                await world.store.release(claim)
                expect((await world.store.task("task")).attempts, 1, "the attempts after a release")
            else:
                world.clock.advance(31)
        claim = await world.claim("task", "worker 5")
        expect(claim.attempts, 4, "the attempts of a claim after appends without progress")
        await world.write(claim, 1, release=True)
        expect((await world.store.task("task")).attempts, 3, "the attempts after an append that gives up")
        claim = await world.claim("task", "worker 6")
        await world.write(claim, 1, progress=True, release=True)
        expect((await world.claim("task", "worker 7")).attempts, 1, "the attempts after progress")


async def claims_pass_over_what_was_not_asked_for(make_store: StoreFactory) -> None:
    """`queues`, `agents`, `task` and `limit` choose among the tasks that need a worker."""
    async with opened(make_store) as world:
        for queue in ("", "slow"):
            for agent in ("a", "b"):
                await world.ready(f"{queue}{agent}", queue=queue, agent=agent)
        await world.idle("idle")

        async def gives(*wanted: str, **filters: Any) -> None:
            claims = await world.store.claim("worker", limit=10, **filters)
            expect(sorted(claim.task for claim in claims), sorted(wanted), f"tasks claimed with {filters}")
            for claim in claims:
                await world.store.release(claim)

        await gives("a", "b", "slowa", "slowb")
        await gives("slowa", "slowb", queues=["slow"])
        await gives("a", "b", queues=[""])
        await gives(queues=[])
        await gives(queues=["none"])
        await gives("a", "slowa", agents={"a"})
        await gives("slowb", queues=["slow"], agents=["b"])
        await gives("slowb", task="slowb")
        await gives(task="slowb", queues=[""])
        await gives(task="idle")
        expect(len(await world.store.claim("worker", limit=3)), 3, "the number of tasks claimed with a limit")


async def newer_tasks_are_passed_over(make_store: StoreFactory) -> None:
    """A worker gets no task with records newer than it reads; the newest record written decides (I30)."""
    async with opened(make_store) as world:
        await world.ready("born newer", version=3)
        claim = await world.running("grown newer")
        await world.write(claim, 1, version=2)
        await world.write(claim, 1, version=1, release=True)
        expect((await world.store.task("grown newer")).version, 2, "the version of a row")
        expect(await world.claimable("old"), [], "tasks for a worker of version 1")
        expect(await world.claimable("middle", version=2), ["grown newer"], "tasks for a worker of version 2")
        world.clock.advance(31)
        expect(await world.claimable("old again"), [], "lost tasks for a worker of version 1")
        wanted = ["born newer", "grown newer"]
        expect(await world.claimable("new", version=3), wanted, "tasks for a worker of version 3")


async def those_that_wait_longest_come_first(make_store: StoreFactory) -> None:
    """Tasks are claimed in the order in which they came to need a worker, whatever comes later (I7)."""
    async with opened(make_store) as world:
        for task in ("c", "a", "b"):
            await world.idle(task)
        for task in ("b", "c", "a"):
            world.clock.advance(1)
            await world.store.post(mail(task, "wake"))
        world.clock.advance(1)
        await world.store.post(mail("b", "again"))
        order = [(await world.store.claim("worker"))[0].task for _ in range(3)]
        expect(order, ["b", "c", "a"], "the order of claims")


async def a_lost_task_is_not_kept_waiting_by_later_ones(make_store: StoreFactory) -> None:
    """Tasks whose workers were lost come in the order in which the leases ran out, and first (I28)."""
    async with opened(make_store) as world:
        await world.running("lost", "z")
        world.clock.advance(1)
        await world.running("lost later", "a")
        world.clock.advance(1000)
        for task in ("fresh", "fresher"):
            await world.ready(task)
            world.clock.advance(1)
        order = [(await world.store.claim("worker"))[0].task for _ in range(4)]
        expect(order, ["lost", "lost later", "fresh", "fresher"], "the order of claims")


async def a_release_leaves_what_is_left_to_do(make_store: StoreFactory) -> None:
    """Given up, a running task is ready, a waiting one waits, an ended one stays ended; twice is once."""
    async with opened(make_store) as world:
        running = await world.running("running")
        waiting = await world.running("waiting")
        await world.park(waiting, "question", release=False)
        ended = await world.running("ended")
        await world.end(ended, release=False)
        for claim in (running, waiting, ended):
            for _ in range(2):
                await world.store.release(claim)
        wanted = {"running": ("ready", ""), "waiting": ("waiting", "question"), "ended": ("ended", "done")}
        for task, status in wanted.items():
            expect(await world.status(task), status, f"status and reason of {task!r} after a release")
            expect((await world.store.task(task)).worker, "", f"the worker of {task!r} after a release")
        expect(await world.claimable("other"), ["running"], "tasks to take after a release")
        again = await world.running("again")
        await world.write(again, 1, release=True)
        expect(await world.status("again"), ("ready", ""), "a running task after an append that released")
        await world.claim("again", "third")
        await world.store.release(again)
        expect(
            (await world.store.task("again")).worker, "third", "the worker after a release of an old claim"
        )


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    a_stale_claim_writes_nothing,
    a_lease_that_ran_out_alone_stops_nobody,
    fence_and_token_must_both_match,
    every_claim_has_a_higher_fence,
    concurrent_claimers_get_different_tasks,
    wall_clock_jumps_change_no_claim,
    a_lost_task_is_claimable_whatever_its_status,
    unreleased_says_that_a_claim_was_not_given_up,
    a_lease_that_ran_out_stays_so,
    one_lease_covers_all_a_worker_holds,
    attempts_count_claims_since_progress,
    claims_pass_over_what_was_not_asked_for,
    newer_tasks_are_passed_over,
    those_that_wait_longest_come_first,
    a_lost_task_is_not_kept_waiting_by_later_ones,
    a_release_leaves_what_is_left_to_do,
)
