"""What sizes and names promise: nothing is cut off, put out of order, or taken for another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from noeta.core.errors import NotStorable
from noeta.core.log import SnapshotPart, Timer
from noeta.testing.store.observed import observe, same
from noeta.testing.store.world import StoreFactory, expect, line, lines, mail, new, opened, refused, texts
from noeta.toolkit.errors import Duplicate

LONG = "n" * 299
NAMES = [
    "name",
    "Name",
    "NAME",
    "name ",
    " name",
    "nam_",
    "nam%",
    "nam*",
    "name'",
    'name"',
    "name\\",
    "1",
    "01",
    "1.0",
    "1e0",
    "null",
    "strasse",
    "straße",
    "istanbul",
    "İstanbul",
    "caf\u00e9",
    "cafe\u0301",
    "\ufb01n",
    "fin",
    "任务",
    "任務",
    "🜁",
    "🜂",
    LONG,
    LONG + "x",
    LONG + "y",
]
"""Names that a store may take for each other, though they differ."""


def alike(found: Sequence[Any], wanted: Sequence[Any], promise: str) -> None:
    """Raise AssertionError with the promise, and the first difference of two long lists."""
    if list(found) != list(wanted):
        pairs = enumerate(zip(found, wanted, strict=False))
        place = next((n for n, (one, other) in pairs if one != other), min(len(found), len(wanted)))
        here, there = (repr(list(part[place : place + 1]))[:200] for part in (found, wanted))
        raise AssertionError(
            f"{promise}: wanted {len(wanted)}, found {len(found)}; at {place} wanted {there}, found {here}"
        )


async def a_long_inbox_stays_in_order(make_store: StoreFactory) -> None:
    """Items come in the order of their posts beyond the 9th and the 100th, and as many as asked (I7, I10)."""
    async with opened(make_store) as world:
        for task, count in (("twelve", 12), ("many", 1150)):
            claim = await world.running(task)
            for n in range(2, 13):
                await world.store.post(mail(task, f"key {n}"))
            posts = [mail(task, f"key {n}") for n in range(13, count + 1)]
            await world.write(claim, 1, posts=posts)
            items = await world.store.inbox(task)
            alike([item.n for item in items], list(range(1, min(count, 100) + 1)), "an inbox, unasked")
            items = await world.store.inbox(task, 100_000)
            alike([item.n for item in items], list(range(1, count + 1)), f"an inbox of {count} items")
            keys = ["start", *(f"key {n}" for n in range(2, count + 1))]
            alike([item.key for item in items], keys, f"the keys of {count} items")
            expect((await world.store.task(task)).unread, count, "the number of unread items")
            await world.write(claim, 1, consume=list(range(1, count - 1)))
            items = await world.store.inbox(task, 100_000)
            alike([item.n for item in items], [count - 1, count], "the items left when most are consumed")
            await refused(world.store.post(mail(task, "key 9")), Duplicate, "a key of long ago")


async def a_long_log_is_read_whole(make_store: StoreFactory) -> None:
    """However many records come in one append, they all come back, in order, as far as asked (I2, I31)."""
    async with opened(make_store) as world:
        claim = await world.running("task", lines=lines(0, 1))
        await world.append(claim, 1, world.ids.token(), written := lines(1, 1500))
        await world.append(claim, 1501, world.ids.token(), more := lines(1501, 1))
        wanted = [*texts(lines(0, 1)), *texts(written), *texts(more)]
        cases: list[tuple[dict[str, Any], slice]] = [
            ({}, slice(0, None)),
            ({"limit": 100_000}, slice(0, None)),
            ({"limit": 1200}, slice(0, 1200)),
            ({"after": 9, "through": 1400}, slice(9, 1400)),
        ]
        for asked, part in cases:
            found = await world.store.read("task", **asked)
            alike(texts(found), wanted[part], f"the records read with {asked}")
        expect(len(await world.store.messages("task")), 500, "the number of records with a message")


async def many_rows_come_when_asked(make_store: StoreFactory) -> None:
    """A limit above any page gives all the rows, and one append may spawn, set and claim many (I31)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        names = [f"child {n:03}" for n in range(150)]
        children = [new(name, parent="task", root="task", posts=[mail(name, "start")]) for name in names]
        timers = [Timer(name=name, gen=2, at=5.0) for name in names]
        await world.park(claim, spawn=children, set_timers=timers)
        rows = await world.store.tasks(parent="task", limit=100_000)
        alike(sorted(row.task for row in rows), names, "the rows of 150 children")
        alike([timer.name for timer in await world.store.timers("task")], names, "the names of 150 timers")
        expect(await world.store.fire_timers(100_000), 150, "the number of timers that fired")
        claims = await world.store.claim("other", limit=100_000)
        alike(sorted(claim.task for claim in claims), [*names, "task"], "the tasks that one worker claimed")


async def names_that_differ_are_kept_apart(make_store: StoreFactory) -> None:
    """No case, space, accent, normal form or length makes two names one, and they come back as given (I2)."""
    async with opened(make_store) as world:
        for task in NAMES:
            await world.idle(task, agent=task, queue=task)
        rows = await world.store.tasks()
        alike(sorted(row.task for row in rows), sorted(NAMES), "the ids of tasks")
        await world.idle("task")
        for key in NAMES:
            await world.store.post(mail("task", key))
        alike(await world.keys("task"), NAMES, "the dedupe keys of posts")
        for task in NAMES:
            await world.store.post(mail(task, "wake"))
        for n, task in enumerate(NAMES):
            found = [row.task for row in await world.store.tasks(agent=task)]
            expect(found, [task], f"the tasks of the agent {task!r}")
            for filters in ({"queues": [task]}, {"agents": [task]}, {"task": task}):
                claims = await world.store.claim(task, limit=100, **filters)
                expect([claim.task for claim in claims], [task], f"the tasks to claim with {filters}")
                await world.store.release(claims[0])
            claim = await world.claim(task, f"worker {task}")
            child = new(f"child {n}", parent=task, key=task)
            await world.drain(claim, spawn=[child])
            expect((await world.store.task(f"child {n}")).key, task, "the spawn key of a child")
        claim = await world.claim("task")
        children = [new(f"of the task {n}", parent="task", key=key) for n, key in enumerate(NAMES)]
        timers = [Timer(name=name, gen=2, at=5.0) for name in NAMES]
        parts = [SnapshotPart(name=name, fingerprint=name, seq=1, data=name.encode()) for name in NAMES]
        done = await world.drain(claim, spawn=children, set_timers=timers, snapshot=parts)
        expect(list(done.existing), [], "the children that were there before")
        found = [timer.name for timer in await world.store.timers("task")]
        alike(sorted(found), sorted(NAMES), "the names of timers")
        for part in await world.store.snapshot("task"):
            expect(part, parts[NAMES.index(part.name)], "a part of a snapshot")


async def workers_and_kinds_are_kept_apart_by_name(make_store: StoreFactory) -> None:
    """The lease of one worker is not that of another, nor a kind of record another, by a like name (I28)."""
    async with opened(make_store) as world:
        claims = [await world.running(f"task {n}", worker) for n, worker in enumerate(NAMES)]
        world.clock.advance(20)
        for worker in NAMES[1:]:
            expect(await world.store.renew(worker), True, f"a renewal of {worker!r}")
        world.clock.advance(20)
        expect(await world.claimable("another"), ["task 0"], "the tasks of the worker that did not renew")
        kinds = ["noted", "note", "Noted", "note_", "notes"]
        for seq, kind in enumerate(kinds, 2):
            entry = line(seq, extension=kind, kind=kind)
            await world.append(claims[1], seq - 1, world.ids.token(), [entry])
        for seq, kind in enumerate(kinds, 2):
            for only in (kind, f"{kind}.{kind}"):
                found = await world.store.read("task 1", only=[only])
                expect([entry.seq for entry in found], [seq], f"the records of {only!r}")


async def what_no_store_keeps_is_refused(make_store: StoreFactory) -> None:
    """A lone surrogate and a number of more than 64 bits are refused, with nothing kept (I1, I32)."""
    text, number = "\ud800", 2**64
    async with opened(make_store) as world:
        store = world.store
        claim = await world.running("task")
        last = (await store.task("task")).last_seq

        async def append(**fields: Any) -> None:
            await world.append(claim, last, world.ids.token(), lines(last, 1), **fields)

        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "a task with such an id": lambda: store.create(new(text)),
            "a task with such a key": lambda: store.create(new("child", parent="task", key=text)),
            "a task of such a version": lambda: store.create(new("child", version=number)),
            "a post with such a key": lambda: store.post(mail("task", text)),
            "a claim by such a worker": lambda: store.claim(text),
            "a timer of such a name": lambda: append(set_timers=[Timer(name=text, gen=2, at=5.0)]),
            "a timer of such a generation": lambda: append(set_timers=[Timer(name="t", gen=number, at=5.0)]),
            "such a reason": lambda: append(status="waiting", reason=text, consume=[1]),
            "such a version": lambda: append(version=number),
            "a post in an append": lambda: append(posts=[mail("task", text)]),
        }
        before = await observe(store)
        for what, call in calls.items():
            await refused(call(), NotStorable, what)
            same(await observe(store), before, f"after {what} was refused")
        alike(await store.read("task", number), [], "the records behind any seq")
        for through in (number, -number):
            found = len(await store.read("task", through=through, limit=number))
            expect(found, last if through > 0 else 0, f"the number of records up to {through}")
        for limit in (0, -1, -number):
            expect(len(await store.read("task", limit=limit)), 0, f"the number of records, at most {limit}")
            expect(len(await store.tasks(limit=limit)), 0, f"the number of tasks, at most {limit}")
            expect(len(await store.inbox("task", limit)), 0, f"the number of items, at most {limit}")
        expect(len(await store.tasks(limit=number)), 1, "the number of tasks, however many")
        expect(await store.fire_timers(number), 0, "the number of timers")
        expect(await store.sweep(0.0, number), [], "the tasks swept")


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    a_long_inbox_stays_in_order,
    a_long_log_is_read_whole,
    many_rows_come_when_asked,
    names_that_differ_are_kept_apart,
    workers_and_kinds_are_kept_apart_by_name,
    what_no_store_keeps_is_refused,
)
