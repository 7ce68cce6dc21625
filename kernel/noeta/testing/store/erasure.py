"""What erasure and caches promise: what was purged is nowhere, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import to_builtins

from noeta.core.codec import Line, blob_of, decode
from noeta.core.errors import Conflict
from noeta.core.log import SnapshotPart
from noeta.host.erasure import tombstone
from noeta.testing.store.observed import observe, same
from noeta.testing.store.world import StoreFactory, expect, line, mail, new, opened, refused, texts
from noeta.toolkit.store import Store

CANARY = "canary-7f3e9a"


def stone(of: Line) -> Line:
    """What stays of a record after an erasure."""
    return tombstone(decode(of))[0]


async def everything(store: Store, blobs: list[str]) -> str:
    """All that the store gives out, as one text."""
    seen = await observe(store, blobs)
    rows = [to_builtins(task.row) for task in seen.tasks.values()]
    kept = [(task.lines, task.inbox, task.timers, task.parts) for task in seen.tasks.values()]
    return f"{rows} {kept} {seen.blobs}"


async def a_purge_leaves_no_trace(make_store: StoreFactory) -> None:
    """After a purge, no row, log, inbox, snapshot or blob holds anything of what was erased (I22)."""
    async with opened(make_store) as world:
        picture, other = blob_of(f"{CANARY} picture".encode()), blob_of(b"other picture")
        secret = mail("task", "secret", body=CANARY.encode())
        claim = await world.running("task", posts=[secret])
        names = [picture.sha256, other.sha256]
        part = SnapshotPart(name="part", fingerprint="code", seq=2, data=CANARY.encode())
        record = line(2, CANARY)
        await world.append(
            *(claim, 1, world.ids.token(), [record, line(3)]),
            consume=[1],
            blobs=[picture, other],
            snapshot=[part],
        )
        expect(CANARY in await everything(world.store, names), True, "the canary is there before the purge")
        await world.store.purge(claim, [stone(record)], [picture.sha256])
        expect(CANARY in await everything(world.store, names), False, "the canary is there after the purge")
        found = await world.store.read("task")
        expect(texts(found), texts([line(1), stone(record), line(3)]), "the log after a purge")
        expect(await world.store.snapshot("task"), [], "the snapshot after a purge")
        expect(await world.store.read_blob(other.sha256), b"other picture", "a blob not named in the purge")


async def a_consumed_body_is_dropped(make_store: StoreFactory) -> None:
    """Consumption leaves the key of an item and nothing else of it (I22)."""
    async with opened(make_store) as world:
        claim = await world.running("task", posts=[mail("task", "key", body=CANARY.encode())])
        await world.drain(claim)
        await world.store.post(mail("task", "other"))
        expect(CANARY in await everything(world.store, []), False, "a consumed body is still there")


async def a_purge_is_all_or_nothing_and_may_be_repeated(make_store: StoreFactory) -> None:
    """A purge of a seq that the own log has not changes nothing; done twice it is done once (I1, I22)."""
    async with opened(make_store) as world:
        blob = blob_of(b"picture")
        await world.write(await world.running("base"), 3)
        claim = await world.running("task", base="base", through=2, blobs=[blob])
        part = SnapshotPart(name="part", fingerprint="code", seq=4, data=b"1")
        await world.write(claim, 1, snapshot=[part])
        before = await observe(world.store, [blob.sha256])
        for seq in (2, 5):
            call = world.store.purge(claim, [stone(line(4)), stone(line(seq))], [blob.sha256])
            await refused(call, Conflict, f"a purge of seq {seq}, in a log that has 3 and 4")
            same(await observe(world.store, [blob.sha256]), before, "after a refused purge")
        await world.store.purge(claim, [stone(line(4))], [blob.sha256])
        once = await observe(world.store, [blob.sha256])
        await world.store.purge(claim, [stone(line(4))], [blob.sha256, "0" * 64])
        same(await observe(world.store, [blob.sha256]), once, "after a purge was repeated")
        found = await world.store.read("task")
        expect(texts(found), texts([line(3), stone(line(4))]), "the log after a purge")
        await world.write(claim, 1)


async def a_blob_lives_as_long_as_a_task_holds_it(make_store: StoreFactory) -> None:
    """A blob is kept once for all tasks that hold it, and goes with the last hold (I22)."""
    async with opened(make_store) as world:
        blob = blob_of(b"picture")
        await world.store.create(new("one", blobs=[blob], posts=[mail("one", "start")]))
        two = await world.running("two")
        await world.write(two, 1, blobs=[blob, blob], spawn=[new("child", parent="two", blobs=[blob])])
        one = await world.claim("one")
        await world.store.purge(one, [], [blob.sha256])
        expect(await world.store.read_blob(blob.sha256), b"picture", "a blob that two tasks hold")
        await world.store.purge(two, [], [blob.sha256])
        expect(await world.store.read_blob(blob.sha256), b"picture", "a blob that a child holds")
        await world.store.post(mail("child", "wake"))
        await world.store.purge(await world.claim("child"), [], [blob.sha256])
        expect(await world.store.read_blob(blob.sha256), None, "a blob that nobody holds")
        await world.write(one, 1, blobs=[blob])
        expect(await world.store.read_blob(blob.sha256), b"picture", "a blob that came back")


async def snapshot_parts_are_replaced_by_name(make_store: StoreFactory) -> None:
    """Of each name the newest part is kept, or none: a snapshot is a cache that may go (I31)."""
    async with opened(make_store) as world:
        claim = await world.running("task")
        written: dict[str, SnapshotPart] = {}
        other = await world.running("other")
        own = SnapshotPart(name="b", fingerprint="code", seq=1, data=b"of another task")
        await world.write(other, 1, snapshot=[own])
        for seq, names in ((2, "ab"), (3, "b"), (4, "bc")):
            parts = [SnapshotPart(name=name, fingerprint=f"code {seq}", seq=seq, data=b"1") for name in names]
            await world.write(claim, 1, snapshot=parts)
            written |= {part.name: part for part in parts}
            found = await world.store.snapshot("task")
            expect(len({part.name for part in found}), len(found), "the number of names among the parts")
            for part in found:
                expect(part, written[part.name], "a part of a snapshot")
        for part in await world.store.snapshot("other"):
            expect(part, own, "a part of the snapshot of another task")
        await world.idle("third")
        expect(await world.store.snapshot("third"), [], "the snapshot of a task that has none")


CHECKS: tuple[Callable[[StoreFactory], Any], ...] = (
    a_purge_leaves_no_trace,
    a_consumed_body_is_dropped,
    a_purge_is_all_or_nothing_and_may_be_repeated,
    a_blob_lives_as_long_as_a_task_holds_it,
    snapshot_parts_are_replaced_by_name,
)
