"""What an append promises: all of it or nothing, once, and the same bytes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import msgspec

from noeta.core.codec import Line, blob_of
from noeta.core.errors import Conflict, Fenced
from noeta.core.log import Claim, SnapshotPart, Timer
from noeta.testing.store.cut import Cut
from noeta.testing.store.observed import Seen, observe, same
from noeta.testing.store.world import (
    StoreFactory,
    World,
    expect,
    line,
    lines,
    mail,
    new,
    opened,
    refused,
    texts,
)
from noeta.toolkit.errors import UnknownTask

OLD, FRESH = blob_of(b"old"), blob_of(b"fresh")
BLOBS = (OLD.sha256, FRESH.sha256)


async def busy(world: World) -> tuple[Claim, dict[str, Any]]:
    """A claimed task that has something of everything, and a step that changes something of everything."""
    await world.idle("other")
    claim = await world.running("task", posts=[mail("task", "one"), mail("task", "two")])
    part = SnapshotPart(name="part", fingerprint="code", seq=1, data=b"1")
    await world.write(claim, 1, blobs=[OLD], set_timers=[Timer(name="old", gen=2, at=5.0)], snapshot=[part])
    step: dict[str, Any] = {
        "claim": claim,
        "expected_seq": 2,
        "append_id": b"append of a step",
        "lines": lines(2, 2),
        "blobs": [FRESH],
        "consume": [1, 2],
        "posts": [mail("other", "from task")],
        "spawn": [new("child", root="task", parent="task", key="key", posts=[mail("child", "start")])],
        "set_timers": [Timer(name="fresh", gen=3, at=world.clock.now() + 60.0)],
        "clear_timers": ["old"],
        "status": "waiting",
        "reason": "children",
        "retry_at": world.clock.now() + 90.0,
        "release": True,
        "progress": True,
        "version": 2,
        "snapshot": [msgspec.structs.replace(part, seq=4, data=b"2")],
    }
    return claim, step


async def after_the_step(make_store: StoreFactory) -> Seen:
    """What is seen when nothing disturbs that step."""
    async with opened(make_store) as world:
        _, step = await busy(world)
        await world.append(**step)
        return await observe(world.store, BLOBS)


async def an_append_lands_whole(make_store: StoreFactory) -> None:
    """Records, blobs, consumption, posts, children, timers and status of one append land together (I1)."""
    async with opened(make_store) as world:
        _, step = await busy(world)
        done = await world.append(**step)
        expect(
            (done.last_seq, list(done.undelivered), list(done.existing)), (4, [], []), "an append's report"
        )
        row = await world.store.task("task")
        expect((row.last_seq, row.version), (4, 2), "seq and version of the row")
        expect((row.status, row.reason, row.unread), ("waiting", "children", 0), "status, reason and unread")
        expect((row.worker, row.attempts), ("", 0), "worker and attempts after a release with progress")
        expect(row.retry_at, world.clock.now() + 90.0, "the retry of a waiting task")
        seen = await observe(world.store, BLOBS)
        expect(texts(seen.tasks["task"].lines), texts(lines(0, 4)), "the log")
        expect([timer.name for timer in seen.tasks["task"].timers], ["fresh"], "timers set and cleared")
        expect(seen.blobs, {OLD.sha256: b"old", FRESH.sha256: b"fresh"}, "the blobs kept")
        expect(await world.keys("other"), ["from task"], "the inbox of another task")
        expect((await world.status("other"))[0], "ready", "a task that got a post")
        child = await world.store.task("child")
        expect((child.parent, child.key, child.root), ("task", "key", "task"), "the row of a child")
        expect((child.last_seq, child.unread, child.status), (1, 1, "ready"), "log and inbox of a child")


async def a_refused_append_changes_nothing(make_store: StoreFactory) -> None:
    """An append that is refused, for whatever reason, leaves all that can be seen as it was (I1, I2)."""
    async with opened(make_store) as world:
        claim, step = await busy(world)
        before = await observe(world.store, BLOBS)
        stranger = new("child", root="task", parent="task", base="nobody")
        orphan = new("child", root="task", parent="nobody")
        holey = new("child", root="task", parent="task", lines=[line(1), line(3)])
        cases: list[tuple[str, type[Exception], dict[str, Any]]] = [
            ("an older fence", Fenced, {"claim": msgspec.structs.replace(claim, fence=claim.fence - 1)}),
            ("another token", Fenced, {"claim": msgspec.structs.replace(claim, token=b"\0" * 16)}),
            ("a log that went on", Conflict, {"expected_seq": 1, "lines": lines(1, 2)}),
            ("no record for a log that went on", Conflict, {"expected_seq": 1, "lines": []}),
            ("a log that is not that far", Conflict, {"expected_seq": 3, "lines": lines(3, 2)}),
            ("records that leave a gap", Conflict, {"lines": [line(3), line(5)]}),
            ("records that do not follow", Conflict, {"lines": lines(3, 2)}),
            ("an item consumed before an older one", Conflict, {"consume": [2]}),
            ("items consumed out of order", Conflict, {"consume": [2, 1]}),
            ("an item that is not there", Conflict, {"consume": [1, 2, 3]}),
            ("a wait with unread items", Conflict, {"consume": [1]}),
            ("an end with unread items", Conflict, {"consume": [], "status": "ended"}),
            ("a child of an unknown base", UnknownTask, {"spawn": [*step["spawn"], stranger]}),
            ("a child of an unknown parent", UnknownTask, {"spawn": [*step["spawn"], orphan]}),
            ("a child with a gap in its log", Conflict, {"spawn": [*step["spawn"], holey]}),
        ]
        for why, error, changed in cases:
            await refused(world.append(**step | changed), error, f"an append with {why}")
            same(await observe(world.store, BLOBS), before, f"after an append refused for {why}")
        await world.append(**step)
        same(await observe(world.store, BLOBS), await after_the_step(make_store), "after refused appends")


async def a_cancelled_append_lands_whole_or_not_at_all(make_store: StoreFactory) -> None:
    """Cancelled wherever it suspends, an append is all there or not at all, and can be repeated (I1, I34)."""
    wanted = await after_the_step(make_store)
    for at in range(1, 1000):
        async with opened(make_store) as world:
            _, step = await busy(world)
            before = await observe(world.store, BLOBS)
            with anyio.CancelScope() as scope:
                cut = Cut(world.append(**step), scope, at)
                await cut
            seen = await observe(world.store, BLOBS)
            if seen.tasks["task"].row.last_seq == 2:
                same(seen, before, f"after an append cancelled where it suspends for the {at}. time")
            same_after_retry = await world.append(**step)
            expect(same_after_retry.last_seq, 4, "the seq after a cancelled append was repeated")
            promise = f"after an append cancelled at its {at}. suspension was repeated"
            same(await observe(world.store, BLOBS), wanted, promise)
        if not cut.reached:
            return


async def an_append_repeated_is_done_once(make_store: StoreFactory) -> None:
    """Repeated with its id, an append writes nothing and reports its seq, though the claim is gone (I6)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        step: dict[str, Any] = {
            "expected_seq": 1,
            "append_id": b"a lost answer...",
            "lines": lines(1, 2),
            "consume": [1],
            "posts": [mail("task", "to myself")],
        }
        first = await world.append(claim, **step)
        seen = await observe(world.store)

        async def again(when: str) -> None:
            done = await world.append(claim, **step)
            expect(done.last_seq, first.last_seq, f"the seq of an append repeated {when}")

        await again("at once")
        await world.write(await world.running("other"), 1)
        seen = await observe(world.store)
        await again("after another task's append")
        same(await observe(world.store), seen, "after an append was repeated")
        await world.store.release(claim)
        await again("after a release")
        later = await world.claim("task", "later")
        seen = await observe(world.store)
        await again("after a later claim")
        same(await observe(world.store), seen, "after an append was repeated under a later claim")
        await world.write(later, 1)
        seen = await observe(world.store)
        await refused(
            world.append(claim, **step | {"append_id": b"not the same one"}),
            Fenced,
            "an append with an id of its own under a claim that is gone",
        )
        same(await observe(world.store), seen, "after a stale append")


async def an_append_with_no_id_before_it_is_new(make_store: StoreFactory) -> None:
    """Whatever its id, the first append of a task is no repetition (I6)."""
    for append_id in (b"", b"\0" * 16):
        async with opened(make_store) as world:
            claim = await world.running("task")
            done = await world.append(claim, 1, append_id, lines(1, 1))
            expect(done.last_seq, 2, "the seq after a first append")


async def bytes_come_back_as_they_were_given(make_store: StoreFactory) -> None:
    """A store gives back the very bytes of a record or an item, with what no reader knows yet (I2)."""
    odd = [
        b'{"seq":2,"at":1.5,"extension":"probe","kind":"noted","data":{"a": 1.0},"later":{"field":[1]}}',
        b'{"seq":3,"at":1.5,"extension":"probe","kind":"noted","data":"\\u0000\\ud83d\xe2\x80\xa8\\u00e9"}',
        b'{ "seq" : 4, "at": 1.50, "kind":"noted","extension":"probe","data":1e400, "data":2 }\r\n',
        b'{"seq":5,"at":1.5,"extension":"probe","kind":"noted","data":"nul \x00 and latin \xe9 \xff"}',
        b'{"seq":6,"at":1.5,"extension":"probe","kind":"noted","data":"' + b"x" * 1_000_000 + b'"}',
        b"",
    ]
    async with opened(make_store) as world:
        claim = await world.running("task")
        given = [Line(seq, data, "probe.noted") for seq, data in enumerate(odd, 2)]
        await world.append(claim, 1, world.ids.token(), given)
        found = await world.store.read("task", 1)
        expect([entry.seq for entry in found], [2, 3, 4, 5, 6, 7], "the seqs of records")
        for seq, data, wanted in zip(range(2, 8), texts(found), odd, strict=True):
            # Not by `expect`, which would print a megabyte.
            if bytes(data) != wanted:
                raise AssertionError(f"the record at seq {seq} did not come back byte for byte")
        await world.idle("other")
        body = b'\x00\xff "not JSON"' + b"y" * 1_000_000
        await world.store.post(mail("other", "k" * 512, "a kind of later", body))
        [item] = await world.store.inbox("other")
        expect((item.n, item.key, item.kind), (1, "k" * 512, "a kind of later"), "an item's names")
        if bytes(item.body) != body:
            raise AssertionError("the body of an item did not come back byte for byte")


async def read_gives_what_is_asked_for(make_store: StoreFactory) -> None:
    """Seqs are dense; `after`, `through`, `limit` and `only` choose among them, in order (I2)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        kinds = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("a", "x")]
        for seq, (extension, kind) in enumerate(kinds, 2):
            entry = line(seq, extension=extension, kind=kind)
            await world.append(claim, seq - 1, world.ids.token(), [entry])
        cases: list[tuple[dict[str, Any], list[int]]] = [
            ({}, [1, 2, 3, 4, 5, 6]),
            ({"after": 4}, [5, 6]),
            ({"after": 6}, []),
            ({"after": 99}, []),
            ({"through": 3}, [1, 2, 3]),
            ({"after": 1, "through": 3}, [2, 3]),
            ({"after": 4, "through": 2}, []),
            ({"after": 1, "limit": 2}, [2, 3]),
            ({"limit": 0}, []),
            ({"only": ["a"]}, [2, 4, 6]),
            ({"only": ["a.x"]}, [2, 6]),
            ({"only": {"a.y", "b"}}, [3, 4, 5]),
            ({"only": []}, []),
            ({"only": ["a"], "limit": 2}, [2, 4]),
            ({"only": ["a"], "after": 2, "through": 5}, [4]),
        ]
        for asked, wanted in cases:
            found = await world.store.read("task", **asked)
            expect([entry.seq for entry in found], wanted, f"the seqs read with {asked}")


async def messages_are_those_of_the_records(make_store: StoreFactory) -> None:
    """`messages` gives the lines that carry one, as they were written, and no others (I2)."""
    async with opened(make_store) as world:
        await world.write(await world.running("base"), 4)
        claim = await world.running("task", base="base", through=1)
        await world.append(claim, 2, world.ids.token(), written := lines(2, 40))
        carrying = [(entry.seq, entry.data) for entry in written if entry.message]
        cases: list[dict[str, Any]] = [
            {},
            {"after": 5},
            {"after": 4, "through": 10},
            {"through": 4},
            {"through": 3},
            {"after": 9, "through": 5},
            {"after": 9_999},
        ]
        for asked in cases:
            first, last = asked.get("after", 0), asked.get("through", 9_999)
            wanted = [(seq, data) for seq, data in carrying if first < seq <= last]
            found = await world.store.messages("task", **asked)
            expect(found, wanted, f"the messages read with {asked}")
        await refused(world.store.messages("nobody"), UnknownTask, "the messages of no task")


async def a_continued_task_counts_on(make_store: StoreFactory) -> None:
    """A task that continues another has its own records behind `through`, and only those (I2)."""
    async with opened(make_store) as world:
        await world.write(await world.running("base"), 4)
        claim = await world.running("fork", base="base", through=3)
        row = await world.store.task("fork")
        expect((row.base, row.through, row.last_seq), ("base", 3, 4), "the row of a continued task")
        await world.write(claim, 2)
        found = await world.store.read("fork")
        expect([entry.seq for entry in found], [4, 5, 6], "the seqs of a continued task")
        found = await world.store.read("fork", 4, through=5)
        expect([entry.seq for entry in found], [5], "seqs chosen from a continued task")
        found = await world.store.read("fork", through=3)
        expect(found, [], "the records of a base, read from the task that continues it")
        await refused(world.append(claim, 4, world.ids.token(), lines(4, 1)), Conflict, "a seq used twice")


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    an_append_lands_whole,
    a_refused_append_changes_nothing,
    messages_are_those_of_the_records,
    a_cancelled_append_lands_whole_or_not_at_all,
    an_append_repeated_is_done_once,
    an_append_with_no_id_before_it_is_new,
    bytes_come_back_as_they_were_given,
    read_gives_what_is_asked_for,
    a_continued_task_counts_on,
)
