"""What inboxes promise: each item once, in order, and nobody sleeps over one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noeta.core.errors import Conflict
from noeta.testing.store.observed import observe, same
from noeta.testing.store.world import StoreFactory, expect, mail, new, opened, refused
from noeta.toolkit.errors import Duplicate, TaskOver


async def a_dedupe_key_is_accepted_once_for_ever(make_store: StoreFactory) -> None:
    """A key of a task is accepted once, whatever the body, by whatever way, also after consumption (I8)."""
    async with opened(make_store) as world:
        await world.ready("task")
        await world.store.post(mail("task", "key", body=b"first"))
        before = await observe(world.store)
        for post in (mail("task", "key", body=b"first"), mail("task", "key", "entry", b"second")):
            await refused(world.store.post(post), Duplicate, "a second post with a key")
        same(await observe(world.store), before, "after a second post with a key")
        claim = await world.claim("task")
        await world.park(claim, release=False)
        await refused(world.store.post(mail("task", "key")), Duplicate, "a post with a key that was consumed")
        done = await world.write(
            claim, 1, posts=[mail("task", "key"), mail("task", "new"), mail("task", "new")]
        )
        expect(list(done.undelivered), [], "posts that were accepted before are no undelivered ones")
        expect(await world.keys("task"), ["new"], "the inbox after an append posted old and new keys")
        await refused(
            world.store.post(mail("task", "new")), Duplicate, "a post with a key that an append gave"
        )
        twice = [mail("child", "start"), mail("child", "start"), mail("child", "more")]
        await world.write(claim, 1, spawn=[new("child", parent="task", posts=twice)])
        expect(await world.keys("child"), ["start", "more"], "the inbox of a child spawned with posts")
        await refused(world.store.post(mail("child", "start")), Duplicate, "a key that came with a spawn")
        await world.write(claim, 1, posts=[mail("child", "more")])
        expect(await world.keys("child"), ["start", "more"], "the inbox of a child that got an old key")
        await world.idle("made", posts=[mail("made", "start")])
        await refused(world.store.post(mail("made", "start")), Duplicate, "a key that came with a new task")
        await world.end(claim)
        await refused(
            world.store.post(mail("task", "new")), Duplicate, "an accepted post repeated at the end"
        )


async def keys_of_other_tasks_are_other_keys(make_store: StoreFactory) -> None:
    """A dedupe key belongs to one task: another task accepts the same one (I8)."""
    async with opened(make_store) as world:
        await world.idle("one")
        await world.idle("two")
        await world.store.post(mail("one", "key"))
        await world.store.post(mail("two", "key"))
        expect([await world.keys("one"), await world.keys("two")], [["key"], ["key"]], "the inboxes")


async def items_are_consumed_once_and_in_order(make_store: StoreFactory) -> None:
    """Items are consumed in the order of their posts, none twice and none before an older one (I7, I10)."""
    async with opened(make_store) as world:
        claim = await world.running("task", posts=[mail("task", f"key {n}") for n in range(1, 4)])
        for n in range(4, 7):
            await world.store.post(mail("task", f"key {n}"))
        items = await world.store.inbox("task")
        expect([(item.n, item.key) for item in items], [(n, f"key {n}") for n in range(1, 7)], "the inbox")
        first = await world.store.inbox("task", 2)
        expect([item.n for item in first], [1, 2], "the oldest two items")
        await world.write(claim, 1, consume=[1, 2])
        for why, consume in (
            ("consumed before", [1]),
            ("consumed before, with a later one", [2, 3]),
            ("with an older one left", [4]),
            ("out of order", [4, 3]),
            ("named twice", [3, 3]),
        ):
            await refused(world.write(claim, 1, consume=consume), Conflict, f"consuming an item {why}")
        expect((await world.store.task("task")).unread, 4, "the number of unread items")
        await world.write(claim, 1, consume=[3, 4, 5])
        await world.store.post(mail("task", "key 7"))
        items = await world.store.inbox("task")
        expect([(item.n, item.key) for item in items], [(6, "key 6"), (7, "key 7")], "what is left")
        await world.drain(claim)
        expect(await world.store.inbox("task"), [], "the inbox after all was consumed")


async def nobody_sleeps_over_mail(make_store: StoreFactory) -> None:
    """A post before, with or after the append that lets a task wait is consumed or leaves it ready (I9)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        await world.write(claim, 1, consume=[1])
        await world.store.post(mail("task", "before"))
        for status in ("waiting", "ended"):
            step = world.write(claim, 1, status=status, release=True)
            await refused(step, Conflict, f"{status} with an unread item")
        await world.park(claim)
        expect(await world.status("task"), ("waiting", "idle"), "a task that read its mail and waits")
        expect(await world.claimable("other"), [], "tasks to take while all wait")
        await world.store.post(mail("task", "after"))
        expect(await world.status("task"), ("ready", ""), "a waiting task that got a post")
        claim = await world.claim("task")
        await world.park(claim, posts=[mail("task", "to myself")])
        expect(await world.status("task"), ("ready", ""), "a task that goes to wait and posts to itself")
        claim = await world.claim("task")
        await world.park(claim, release=False)
        await world.store.post(mail("task", "while kept"))
        await refused(world.write(claim, status="waiting"), Conflict, "a kept task that waits over a post")
        await world.store.release(claim)
        expect(await world.claimable("other"), ["task"], "a kept task with a post, given up")


async def mail_wakes_a_task_that_is_kept(make_store: StoreFactory) -> None:
    """A waiting task whose claim is kept is ready as soon as a post comes, and nobody else gets it (I9)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        await world.park(claim, "question", release=False)
        await world.store.post(mail("task", "answer"))
        expect(await world.status("task"), ("ready", ""), "a kept task that got a post")
        expect(await world.claimable("other"), [], "tasks to take while their worker lives")
        await world.drain(claim)
        expect(await world.status("task"), ("running", ""), "a kept task that went on")


async def an_ended_task_takes_only_an_erasure(make_store: StoreFactory) -> None:
    """An ended task refuses posts, but an erasure; with one it can be claimed, and it stays ended (I22)."""
    async with opened(make_store) as world:
        await world.ended("task")
        for kind in ("message", "cancel", "timer"):
            await refused(world.store.post(mail("task", kind, kind)), TaskOver, "a post to an ended task")
        expect(await world.keys("task"), [], "the inbox of an ended task")
        expect(await world.claimable("other"), [], "tasks to take when all have ended")
        await world.store.post(mail("task", "erasure", "erase"))
        expect(await world.status("task"), ("ended", "done"), "an ended task with an erasure to do")
        claim = await world.claim("task")
        await world.drain(claim, release=True)
        expect(await world.status("task"), ("ended", "done"), "an ended task after its erasure")
        expect((await world.store.task("task")).last_seq, 3, "the log of an ended task takes the erasure")
        expect(await world.claimable("third"), [], "tasks to take when the erasure is done")


async def posts_of_an_append_reach_who_can_take_them(make_store: StoreFactory) -> None:
    """A post to a task unknown or ended is reported and fails nothing; the others arrive (I1, I10)."""
    async with opened(make_store) as world:
        await world.ended("ended")
        await world.idle("other")
        claim = await world.running("task")
        posts = [
            mail("other", "1"),
            mail("nobody", "2"),
            mail("ended", "3"),
            mail("other", "4"),
            mail("ended", "5", "erase"),
            mail("task", "6"),
        ]
        done = await world.write(claim, 1, posts=posts)
        expect(list(done.undelivered), [posts[1], posts[2]], "the posts that could not be delivered")
        expect(await world.keys("other"), ["1", "4"], "the inbox of a waiting task")
        expect(await world.status("other"), ("ready", ""), "the status of a waiting task that got posts")
        expect(await world.keys("ended"), ["5"], "the inbox of an ended task")
        expect(await world.keys("task"), ["start", "6"], "the inbox of the task itself")


async def a_childs_end_reaches_its_parent_once(make_store: StoreFactory) -> None:
    """A child's last append brings its end to the parent, once, whatever the parent is doing (I12)."""
    for doing in ("running", "waiting", "kept", "ready", "lost"):
        async with opened(make_store) as world:
            parent = await world.running("parent", "parent's worker")
            await world.drain(parent, spawn=[new("child", parent="parent", posts=[mail("child", "start")])])
            if doing in {"waiting", "kept"}:
                await world.park(parent, "children", release=doing == "waiting")
            elif doing == "ready":
                await world.store.release(parent)
            elif doing == "lost":
                world.clock.advance(31)
            claim = await world.claim("child")
            step: dict[str, Any] = {
                "consume": [1],
                "posts": [mail("parent", "child:child", "child_ended")],
                "status": "ended",
                "release": True,
            }
            for _ in range(2):
                await world.append(claim, 1, b"the end of child", **step)
            items = [(item.key, item.kind) for item in await world.store.inbox("parent")]
            expect(items, [("child:child", "child_ended")], f"the inbox of a parent that is {doing}")
            status, _ = await world.status("parent")
            expect(status in {"ready", "running"}, True, f"a parent that was {doing} is awake")


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    a_dedupe_key_is_accepted_once_for_ever,
    keys_of_other_tasks_are_other_keys,
    items_are_consumed_once_and_in_order,
    nobody_sleeps_over_mail,
    mail_wakes_a_task_that_is_kept,
    an_ended_task_takes_only_an_erasure,
    posts_of_an_append_reach_who_can_take_them,
    a_childs_end_reaches_its_parent_once,
)
