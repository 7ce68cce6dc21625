"""What rows and trees of tasks promise: created once, found by every filter, deleted whole or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from noeta.core.codec import blob_of
from noeta.core.errors import Conflict
from noeta.testing.store.observed import observe, same
from noeta.testing.store.world import StoreFactory, World, expect, line, lines, mail, new, opened, refused
from noeta.toolkit.errors import Duplicate, UnknownTask
from noeta.toolkit.store import TaskRow


async def a_task_is_created_whole_or_not_at_all(make_store: StoreFactory) -> None:
    """A new task has its records, posts and blobs, and is ready exactly if it has a post (I1, I2)."""
    blob = blob_of(b"picture")
    async with opened(make_store) as world:
        posts = [mail("task", "one"), mail("task", "two")]
        made = new("task", lines=lines(0, 2), posts=posts, blobs=[blob], queue="slow", version=3)
        await world.store.create(made)
        await world.idle("idle")
        row = await world.store.task("task")
        names = (row.task, row.root, row.parent, row.agent, row.queue, row.base, row.through)
        expect(names, ("task", "task", "", "agent", "slow", "", 0), "the names of a new task")
        numbers = (row.last_seq, row.version, row.unread, row.fence, row.attempts, row.created_at)
        expect(numbers, (2, 3, 2, 0, 0, world.clock.now()), "the numbers of a new task")
        expect((row.status, row.reason, row.retry_at, row.worker), ("ready", "", None, ""), "its state")
        expect(await world.keys("task"), ["one", "two"], "the inbox of a new task")
        expect(await world.store.read_blob(blob.sha256), b"picture", "the blob of a new task")
        expect(await world.status("idle"), ("waiting", "idle"), "a new task without posts")
        expect(await world.store.snapshot("idle"), [], "the snapshot of a new task")
        before = await observe(world.store)
        for why, error, other in (
            ("an id that exists", Duplicate, new("task")),
            ("an unknown base", UnknownTask, new("other", base="nobody")),
            ("an unknown parent", UnknownTask, new("other", parent="nobody")),
            ("a gap in its log", Conflict, new("other", lines=[line(1), line(3)])),
            ("a log that begins late", Conflict, new("other", lines=lines(1, 1))),
            ("a base that is not that far", Conflict, new("other", base="task", through=3)),
            ("no base for what it follows", Conflict, new("other", through=1)),
        ):
            await refused(world.store.create(other), error, f"a new task with {why}")
            same(await observe(world.store), before, f"after a task was refused for {why}")


async def a_spawn_key_makes_one_child(make_store: StoreFactory) -> None:
    """The same parent and spawn key, or the same id, give the child that is there already (I11)."""
    async with opened(make_store) as world:
        claim = await world.running("parent")

        async def spawn(*children: Any) -> list[str]:
            return list((await world.write(claim, 1, spawn=children)).existing)

        first = new("child", parent="parent", key="key", agent="first")
        expect(await spawn(first), [], "the children that were there before the first spawn")
        again = new("other id", parent="parent", key="key", agent="second", posts=[mail("child", "late")])
        expect(await spawn(again), ["child"], "the child that has the spawn key")
        expect(
            await spawn(new("child", parent="parent", key="new key")), ["child"], "the child that has the id"
        )
        expect((await world.store.task("child")).agent, "first", "the child's agent")
        expect(await world.keys("child"), [], "the inbox of a child that was spawned again")
        await refused(world.store.task("other id"), UnknownTask, "a child spawned with a key that was used")
        await world.store.post(mail("child", "wake"))
        await world.end(await world.claim("child"))
        expect(await spawn(again), ["child"], "the child that has the spawn key, and has ended")
        other = await world.running("other parent")
        await world.write(other, 1, spawn=[new("cousin", parent="other parent", key="key")])
        expect((await world.store.task("cousin")).key, "key", "the key of another parent's child")
        free = [new("a", parent="parent"), new("b", parent="parent")]
        expect(await spawn(*free), [], "children without a spawn key are all new")


async def a_child_exists_exactly_if_its_append_landed(make_store: StoreFactory) -> None:
    """No child of an append that was refused, and one child of an append that was repeated (I11)."""
    async with opened(make_store) as world:
        await world.running("parent", "paused")
        world.clock.advance(31)
        claim = await world.claim("parent", "other")
        child = new("child", parent="parent", root="parent", posts=[mail("child", "start")])
        stale: dict[str, Any] = {"claim": claim, "expected_seq": 0, "append_id": b"1", "spawn": [child]}
        await refused(world.append(**stale), Conflict, "an append that spawns, on a log that went on")
        await refused(world.store.task("child"), UnknownTask, "the child of a refused append")
        expect(await world.claimable("eager"), [], "tasks to take after a refused append")
        for _ in range(2):
            await world.append(claim, 1, b"2", lines(1, 1), spawn=[child])
        expect(await world.claimable("eager"), ["child"], "tasks to take after an append that spawned")
        rows = await world.store.tasks(parent="parent")
        expect([row.task for row in rows], ["child"], "the children of a task")


async def rows_match_every_filter(make_store: StoreFactory) -> None:
    """`tasks` gives the rows that match all that is asked, oldest first."""
    async with opened(make_store) as world:
        made: dict[str, dict[str, Any]] = {
            "z": {},
            "m": {"parent": "z", "root": "z", "agent": "b"},
            "a": {"parent": "m", "root": "z"},
            "f": {"base": "z", "through": 1, "agent": "b"},
        }
        for task, fields in made.items():
            await world.idle(task, **fields)
            world.clock.advance(1)
        await world.store.post(mail("m", "wake"))
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ["z", "m", "a", "f"]),
            ({"limit": 2}, ["z", "m"]),
            ({"status": "waiting"}, ["z", "a", "f"]),
            ({"status": "ready"}, ["m"]),
            ({"agent": "b"}, ["m", "f"]),
            ({"parent": "z"}, ["m"]),
            ({"parent": ""}, ["z", "f"]),
            ({"root": "z"}, ["z", "m", "a"]),
            ({"base": "z"}, ["f"]),
            ({"root": "z", "status": "waiting"}, ["z", "a"]),
            ({"root": "z", "agent": "b", "status": "ended"}, []),
            ({"after": await world.store.task("m")}, ["a", "f"]),
            ({"after": await world.store.task("z"), "status": "waiting", "limit": 1}, ["a"]),
        ]
        for asked, wanted in cases:
            found = await world.store.tasks(**asked)
            expect([row.task for row in found], wanted, f"the rows for {asked}")


async def pages_of_rows_leave_nothing_out(make_store: StoreFactory) -> None:
    """Page after page gives each task once, also when tasks change meanwhile or were made at once (I32)."""
    async with opened(make_store) as world:
        for n in range(11):
            await world.ready(f"task {n}")
            world.clock.advance(float(n % 3 == 0))
        found: list[TaskRow] = []
        while page := await world.store.tasks(after=found[-1] if found else None, limit=3):
            expect(len(page) <= 3, True, "a page is within its limit")
            found += page
            world.clock.advance(1)
            for task in (page[0].task, "task 10"):
                await world.store.post(mail(task, f"key {len(found)}"))
        expect(
            sorted(row.task for row in found), sorted(f"task {n}" for n in range(11)), "the rows of all pages"
        )


async def pages_go_on_behind_a_row_that_is_gone(make_store: StoreFactory) -> None:
    """The row to go on behind says where, also when it was swept or has changed since (I32)."""
    async with opened(make_store) as world:
        for task in ("a", "b", "c", "d"):
            await (world.ended(task) if task == "b" else world.idle(task))
            world.clock.advance(1)
        [*_, last] = await world.store.tasks(limit=2)
        expect(await world.store.sweep(world.clock.now()), ["b"], "the tasks swept")
        rows = await world.store.tasks(after=last)
        expect([row.task for row in rows], ["c", "d"], "the rows behind one that was swept")


async def tree(world: World, root: str) -> None:
    """A task with a child, both ended."""
    await world.ended(root)
    await world.ended(f"{root}/child", root=root, parent=root)


async def sweep_deletes_whole_trees(make_store: StoreFactory) -> None:
    """A tree goes with all it holds when each of its tasks ended before that time, only then (I31)."""
    shared, own = blob_of(b"shared"), blob_of(b"own")
    async with opened(make_store) as world:
        await tree(world, "old")
        await world.ended("old/second", root="old", parent="old", key="key", blobs=[shared, own])
        await tree(world, "half")
        await world.ready("half/alive", root="half", parent="half", blobs=[shared])
        world.clock.advance(100)
        between = world.clock.now()
        world.clock.advance(100)
        await tree(world, "young")
        await world.ended("half/late", root="half", parent="half")
        expect(await world.store.sweep(between - 100), [], "trees swept that ended at that time")
        swept = await world.store.sweep(between)
        expect(sorted(swept), ["old", "old/child", "old/second"], "the tasks swept")
        left = sorted(row.task for row in await world.store.tasks())
        wanted = ["half", "half/alive", "half/child", "half/late", "young", "young/child"]
        expect(left, wanted, "the tasks left")
        await refused(world.store.read("old"), UnknownTask, "the log of a task swept")
        expect(await world.store.read_blob(own.sha256), None, "a blob that only a task swept held")
        expect(await world.store.read_blob(shared.sha256), b"shared", "a blob that another task holds")
        expect(await world.store.sweep(between), [], "the tasks swept again")
        await world.idle("old")
        await world.idle("old/other", root="old", parent="old", key="key")
        row = await world.store.task("old/other")
        expect((row.last_seq, row.fence), (1, 0), "a task made anew under the parent and key of one swept")


async def sweep_keeps_what_others_continue(make_store: StoreFactory) -> None:
    """A tree of which a task outside it continues one stays as long as that task does (I31)."""
    async with opened(make_store) as world:
        await tree(world, "base")
        await world.ended("base/fork", root="base", parent="base", base="base", through=1)
        claim = await world.running("outside", base="base/child", through=1)
        await tree(world, "free")
        world.clock.advance(10)
        swept = await world.store.sweep(world.clock.now())
        expect(sorted(swept), ["free", "free/child"], "the tasks swept while a fork lives")
        await world.end(claim)
        world.clock.advance(10)
        gone = [*await world.store.sweep(world.clock.now()), *await world.store.sweep(world.clock.now())]
        wanted = ["base", "base/child", "base/fork", "outside"]
        expect(sorted(gone), wanted, "the tasks swept when the fork has ended too")


async def sweep_leaves_what_a_worker_holds(make_store: StoreFactory) -> None:
    """A tree is not swept while a worker with a lease that goes on holds one of its tasks (I4)."""
    async with opened(make_store) as world:
        await world.end(await world.running("task"), release=False)
        world.clock.advance(10)
        expect(await world.store.sweep(world.clock.now()), [], "the tasks swept under a claim")
        world.clock.advance(30)
        expect(await world.store.sweep(world.clock.now()), ["task"], "the tasks swept after its lease")


async def sweep_takes_no_more_trees_than_asked(make_store: StoreFactory) -> None:
    """`limit` counts trees, and no tree is torn (I31)."""
    async with opened(make_store) as world:
        for root in ("a", "b", "c"):
            await tree(world, root)
        world.clock.advance(10)
        swept = await world.store.sweep(world.clock.now(), 2)
        expect(len(swept), 4, "the number of tasks in two trees swept")
        left = [row.task for row in await world.store.tasks()]
        expect(len({task[0] for task in left}), 1, "the number of trees left")
        expect(len(left), 2, "the number of tasks left")


async def an_unknown_task_is_called_unknown(make_store: StoreFactory) -> None:
    """What names a task that is not there raises `UnknownTask`; a claim just finds none (I32)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        await world.end(claim)
        world.clock.advance(10)
        await world.store.sweep(world.clock.now())
        store = world.store
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "append": lambda: world.append(claim, 2, b"1", lines(2, 1)),
            "purge": lambda: store.purge(claim, [], []),
            "post": lambda: store.post(mail("task", "key")),
            "inbox": lambda: store.inbox("task"),
            "read": lambda: store.read("task"),
            "snapshot": lambda: store.snapshot("task"),
            "task": lambda: store.task("task"),
            "timers": lambda: store.timers("task"),
        }
        for name, call in calls.items():
            error = await refused(call(), UnknownTask, f"`{name}` of a task that was swept")
            expect(error.task, "task", f"the task that the error of `{name}` names")
        await store.release(claim)
        expect(await store.claim("other", task="task"), [], "claims of an unknown task")
        expect(await store.read_blob("0" * 64), None, "a blob that nobody stored")
        expect(await store.tasks(), [], "the rows of an empty store")
        expect(await store.next_wake(), None, "the next wake of an empty store")
        expect(await store.fire_timers(), 0, "the timers that fired in an empty store")


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    a_task_is_created_whole_or_not_at_all,
    a_spawn_key_makes_one_child,
    a_child_exists_exactly_if_its_append_landed,
    rows_match_every_filter,
    pages_of_rows_leave_nothing_out,
    pages_go_on_behind_a_row_that_is_gone,
    sweep_deletes_whole_trees,
    sweep_keeps_what_others_continue,
    sweep_leaves_what_a_worker_holds,
    sweep_takes_no_more_trees_than_asked,
    an_unknown_task_is_called_unknown,
)
