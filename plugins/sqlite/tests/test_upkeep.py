"""Backups are whole and of one moment; the numbers are right."""

# ruff: noqa: ASYNC240 -- a look at files of the test.

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from noeta.testing.clock import FrozenClock
from noeta.toolkit.store import Append, Blob, Full, Line, Post, Unavailable
from noeta_sqlite import SqliteReader, upkeep

pytestmark = pytest.mark.anyio


async def test_a_backup_is_one_moment_while_writers_go_on(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        await store.create(new_task("task", posts=[Post(task="task", key="k", kind="message", body=b"{}")]))
        (claim,) = await store.claim("worker")
        seq, copies = 1, []

        stop = anyio.Event()

        async def write() -> None:
            nonlocal seq
            while not stop.is_set():
                lines = [Line(seq + more, b" " * 500, "probe.noted") for more in (1, 2)]
                await store.append(claim, Append(expected_seq=seq, id=seq.to_bytes(16, "big"), lines=lines))
                seq += 2

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            for number in range(5):
                copies.append((path.parent / f"{number}.db", seq))
                await store.backup(copies[-1][0])
            stop.set()
        assert seq > copies[-1][1] > 1
    for copy, least in copies:
        reader = SqliteReader(copy)
        last = reader.task("task").last_seq
        assert least <= last <= seq
        assert last % 2 == 1
        assert [line.seq for line in reader.read("task")] == list(range(1, last + 1))
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    async with opened(copies[0][0]) as store:
        assert (await store.stats()).tasks == {"running": 1}
        await store.create(new_task("goes on"))


async def test_a_backup_never_goes_over_a_file(path: Path, opened: Any, disk: Any) -> None:
    target = path.parent / "copy.db"
    async with opened(path) as store:
        for there in (target, target.with_name("copy.db-wal")):
            there.write_bytes(b"precious")
            for backup in (store.backup, lambda to: anyio.to_thread.run_sync(SqliteReader(path).backup, to)):
                with pytest.raises(FileExistsError, match="is there already"):
                    await backup(target)
            assert there.read_bytes() == b"precious"
            there.unlink()
        with pytest.raises(FileExistsError):
            await store.backup(path)


async def test_a_backup_that_fails_leaves_nothing(
    path: Path, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> None:
        raise OSError(28, "no space left on device")

    async with opened(path) as store:
        before = {file.name for file in path.parent.iterdir()}
        with pytest.raises(Unavailable):
            await store.backup(path.parent / "no folder" / "copy.db")
        monkeypatch.setattr(upkeep, "_flush", full)
        with pytest.raises(Full):
            await store.backup(path.parent / "copy.db")
        assert {file.name for file in path.parent.iterdir()} == before


async def test_stats_count(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path, synchronous="FULL") as store:
        await store.create(new_task("one", ["a", "b"], blobs=[Blob("x", b"12345"), Blob("y", b"67")]))
        await store.create(new_task("two", posts=[Post(task="two", key="k", kind="message", body=b"{}")]))
        stats = await store.stats()
        assert stats.tasks == {"ready": 1, "waiting": 1}
        assert (stats.records, stats.blobs, stats.free, stats.leftovers) == (3, 7, 0, False)
        assert stats.file == path.stat().st_size
        assert stats.log == path.with_name("noeta.db-wal").stat().st_size > 0
        assert (stats.sqlite, stats.synchronous) == (sqlite3.sqlite_version, "FULL")
        assert SqliteReader(path).stats().synchronous == ""
    async with opened(path) as store:
        assert (await store.stats()).synchronous == "NORMAL"


async def test_old_tasks_can_go_until_the_file_is_small(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        for number in range(6):
            name = f"task {number}"
            mail = [Post(task=name, key="k", kind="message", body=b"{}")]
            await store.create(new_task(name, ["x" * 200_000], posts=mail))
            (claim,) = await store.claim("worker", task=name)
            end = Append(expected_seq=1, id=name.encode(), status="ended", release=True, consume=[1])
            await store.append(claim, end)
        await store.compact()
        before = await store.stats()
        assert len(await store.sweep(2e9, limit=4)) == 4
        stats = await store.stats()
        assert stats.free > 700_000
        await store.compact()
        assert (await store.stats()).file < before.file * 0.6
        assert len(await store.tasks()) == 2


async def test_trees_go_by_size_those_that_ended_first_before_others(
    path: Path, opened: Any, new_task: Any
) -> None:
    clock = FrozenClock()
    async with opened(path, clock=clock) as store:

        async def end(name: str, **appended: Any) -> None:
            (claim,) = await store.claim("worker", task=name)
            append = Append(expected_seq=1, id=name.encode(), status="ended", release=True, consume=[1])
            await store.append(claim, msgspec.structs.replace(append, **appended))
            clock.advance(10)

        for name, size in (("small", 100), ("large", 5_000), ("live", 9_000), ("blob", 100)):
            mail = [Post(task=name, key="k", kind="message", body=b"{}")]
            await store.create(new_task(name, ["x" * size], posts=mail))
        mail = [Post(task="child", key="k", kind="message", body=b"{}")]
        await store.create(new_task("child", parent="blob", root="blob", posts=mail))
        for name in ("large", "blob", "small"):
            await end(name, blobs=[Blob("b", b"x" * 3_000)] * (name == "blob"))
        # The tree of "blob" ends with its child, so as the last.
        await end("child")
        assert await store.ended_beyond(9_000) == 0.0
        before = await store.ended_beyond(8_000)
        assert await store.sweep(before) == ["large"]
        assert await store.ended_beyond(8_000) == 0.0
        assert await store.sweep(await store.ended_beyond(3_300)) == ["small"]
        assert sorted(await store.sweep(await store.ended_beyond(3_000))) == ["blob", "child"]
        assert [row.task for row in await store.tasks()] == ["live"]
        assert await store.ended_beyond(0) == 0.0


@pytest.mark.parametrize(
    ("version", "bug"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((4, 0, 0), False),
    ],
)
def test_the_versions_with_the_bug_are_known(version: tuple[int, int, int], bug: bool) -> None:
    assert upkeep.has_reset_bug(version) is bug
