"""What goes wrong while a store works comes out as an error of the port, and the store goes on."""

# ruff: noqa: ASYNC240 -- a look at files of the test.

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import sqlite3
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import anyio
import pytest

from noeta.toolkit.store import Append, Claim, Corrupt, Full, Line, Post, ReadOnly, StoreError, Unavailable
from noeta_sqlite import SqliteReader, SqliteStore
from noeta_sqlite.faults import translated
from noeta_sqlite.opening import in_turn

pytestmark = pytest.mark.anyio


def step(store: SqliteStore, claim: Claim, seq: int, size: int = 10) -> Coroutine[Any, Any, Any]:
    line = Line(seq + 1, b"{" + b" " * size + b"}", "probe.noted")
    return store.append(claim, Append(expected_seq=seq, id=os.urandom(16), lines=[line]))


async def claimed(store: SqliteStore, new_task: Any, name: str = "task") -> Claim:
    await store.create(new_task(name, posts=[Post(task=name, key="k", kind="message", body=b"{}")]))
    (claim,) = await store.claim("worker", task=name)
    return claim


async def limit_pages(store: SqliteStore, more: int) -> None:
    await store._writer.do(
        lambda db: db.one(f"PRAGMA max_page_count = {db.one('PRAGMA page_count')[0] + more}")
    )


async def test_a_full_disk_writes_nothing_and_passes(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        claim = await claimed(store, new_task)
        await limit_pages(store, 2)
        with pytest.raises(Full, match="Free space") as caught:
            await step(store, claim, 1, size=100_000)
        assert caught.value.reason == "disk"
        assert (await store.task("task")).last_seq == 1
        await step(store, claim, 1)
        await limit_pages(store, 1000)
        await step(store, claim, 2, size=100_000)
        assert [line.seq for line in await store.read("task")] == [1, 2, 3]


async def test_a_page_that_is_damaged_spoils_only_what_is_on_it(
    path: Path, opened: Any, new_task: Any
) -> None:
    async with opened(path) as store:
        await store.create(new_task("bad", ["canary" * 5000]))
        await store.create(new_task("good"))
    data = bytearray(path.read_bytes())
    # The first page of the record that holds the canary: its header says what kind of page it is.
    page = data.index(b"canary") // 4096 * 4096
    data[page : page + 8] = b"\xff" * 8
    path.write_bytes(data)
    async with opened(path) as store:
        assert (await store.task("bad")).last_seq == 1
        for read in (store.read("bad"), anyio.to_thread.run_sync(SqliteReader(path).read, "bad")):
            with pytest.raises(Corrupt, match="Copy the file aside") as caught:
                await read
            assert caught.value.reason == "page"
        assert [task.task for task in await store.tasks()] == ["bad", "good"]
        await store.post(Post(task="good", key="k", kind="message", body=b"{}"))


async def test_a_record_whose_name_is_gone_is_damage(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        await store.create(new_task("task"))
        await store._writer.do(lambda db: db.run("DELETE FROM name"))
        with pytest.raises(Corrupt) as caught:
            await store.read("task")
        assert caught.value.reason == "row"


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
@pytest.mark.parametrize("what", ["gone", "replaced"])
async def test_a_file_deleted_or_replaced_under_the_store_is_noticed(
    path: Path, opened: Any, new_task: Any, ending: str, what: str
) -> None:
    async with opened(path) as store:
        claim = await claimed(store, new_task)
        file = path.with_name(path.name + ending)
        aside = path.with_name("aside")
        file.rename(aside)
        if what == "replaced":
            file.write_bytes(aside.read_bytes())
        for call in (step(store, claim, 1), store.task("task"), store.claim("other")):
            with pytest.raises(Unavailable, match="while it was open") as caught:
                await call
            assert caught.value.reason == what
        aside.replace(file)
        await step(store, claim, 1)


async def test_what_was_committed_before_the_end_of_a_cut_log_is_there(
    path: Path, opened: Any, new_task: Any
) -> None:
    copy = path.parent / "copy.db"
    log = path.with_name("noeta.db-wal")
    async with opened(path) as store:
        claim = await claimed(store, new_task)
        ends = []
        for seq in range(1, 8):
            await step(store, claim, seq)
            ends.append((log.stat().st_size, seq + 1))
        whole, main = log.read_bytes(), path.read_bytes()
    for size, seq in [*ends, *((end + 2000, seq) for end, seq in ends[:-1])]:
        copy.write_bytes(main)
        copy.with_name("copy.db-wal").write_bytes(whole[:size])
        async with opened(copy) as store:
            assert (await store.task("task")).last_seq == seq
    copy.write_bytes(main)
    async with opened(copy) as store:
        assert [task.last_seq for task in await store.tasks()] in ([], [1])


async def test_a_closed_store_says_so_and_closes_again(path: Path, opened: Any) -> None:
    async with opened(path) as store, store.watch() as watch:
        await store.aclose()
        await store.aclose()
        for call in (store.tasks(), store.claim("worker"), store.stats(), watch.wait(5.0)):
            with pytest.raises(Unavailable, match="closed") as caught:
                await call
            assert caught.value.reason == "closed"
    assert [file.name for file in path.parent.iterdir() if file.name != "noeta.db.lock"] == ["noeta.db"]


async def test_after_a_fork_the_store_is_not_used(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        claim = await claimed(store, new_task)
        pid, store._pid = store._pid, -1
        for call in (store.tasks(), step(store, claim, 1)):
            with pytest.raises(Unavailable, match="forked") as caught:
                await call
            assert caught.value.reason == "forked"
        store._pid = pid
        await step(store, claim, 1)


def test_a_process_forked_while_the_lock_is_held_does_not_keep_it(path: Path) -> None:
    lock = path.with_name("noeta.db.lock")
    with in_turn(path):
        inherited = os.dup(next(int(fd.name) for fd in Path("/proc/self/fd").iterdir() if _is(fd.name, lock)))
    handle = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)
        os.close(inherited)


def _is(fd: str, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(int(fd)), file.stat())
    except OSError:
        return False


def test_an_event_loop_that_ended_while_a_job_waited_harms_nobody(path: Path, new_task: Any) -> None:
    store = SqliteStore(path, synchronous="NORMAL")
    loop = asyncio.new_event_loop()
    with in_turn(store.path):
        waiting = loop.create_task(store.create(new_task("first")))
        loop.call_soon(loop.stop)
        loop.run_forever()
    # The writer is at it, and its caller's loop is gone.
    waiting.cancel()
    loop.run_until_complete(asyncio.wait([waiting]))
    loop.close()

    async def go_on() -> None:
        await store.create(new_task("second"))
        assert (await store.tasks())[-1].task == "second"
        await store.aclose()

    anyio.run(go_on)


async def test_a_cancelled_caller_in_the_queue_takes_the_work_back(
    path: Path, opened: Any, new_task: Any
) -> None:
    async with opened(path) as store:
        claim = await claimed(store, new_task)
        with in_turn(store.path):
            with anyio.move_on_after(0):
                await step(store, claim, 1)
        await store.release(claim)
        assert (await store.task("task")).last_seq == 1
        assert not store._writer._db.connection.in_transaction


async def test_an_error_in_one_callers_work_is_that_callers_alone(
    path: Path, opened: Any, new_task: Any
) -> None:
    async with opened(path) as store:
        errors: list[BaseException] = []

        async def fails(sql: str) -> None:
            with pytest.raises(StoreError) as caught:
                await store._writer.do(lambda db: db.run(sql))
            errors.append(caught.value)

        async with anyio.create_task_group() as group:
            with in_turn(store.path):
                for sql in ("SELECT nonsense", "INSERT INTO name VALUES (1, NULL, NULL)"):
                    group.start_soon(fails, sql)
                    group.start_soon(store.create, new_task(f"beside {sql}"))
                await anyio.wait_all_tasks_blocked()
        assert len(await store.tasks()) == len(errors) == 2


async def test_an_error_after_the_commit_is_no_error_of_the_commit(
    path: Path, opened: Any, new_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(connection: sqlite3.Connection) -> bool:
        raise sqlite3.OperationalError("disk I/O error")

    async with opened(path) as store:
        monkeypatch.setattr("noeta_sqlite.checkpoints.empty", fails)
        monkeypatch.setattr(store._writer._checkpoints, "_next", 0)
        await store.create(new_task("task"))
        assert (await store.task("task")).last_seq == 1


def _sqlite(code: int, says: str = "says SQLite") -> sqlite3.Error:
    error = sqlite3.OperationalError(says)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (_sqlite(sqlite3.SQLITE_FULL), Full, "disk"),
        (_sqlite(sqlite3.SQLITE_READONLY_ROLLBACK), ReadOnly, "file"),
        (_sqlite(sqlite3.SQLITE_READONLY_DBMOVED), Unavailable, "replaced"),
        (_sqlite(sqlite3.SQLITE_CORRUPT_VTAB), Corrupt, "page"),
        (_sqlite(sqlite3.SQLITE_NOTADB), Corrupt, "no-database"),
        (_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), Unavailable, "busy"),
        (_sqlite(sqlite3.SQLITE_IOERR_FSYNC), Unavailable, "io"),
        (_sqlite(sqlite3.SQLITE_CANTOPEN), Unavailable, "open"),
        (sqlite3.OperationalError("Could not decode to UTF-8 column 'task'"), Corrupt, "page"),
        (sqlite3.ProgrammingError("anything else"), Unavailable, "sqlite"),
        (OSError(errno.ENOSPC, "no space"), Full, "disk"),
        (OSError(errno.EMFILE, "too many"), Unavailable, "handles"),
        (OSError(errno.EIO, "broken"), Unavailable, "io"),
        (OSError(errno.EROFS, "read-only"), Unavailable, "folder"),
        (OSError("nothing more"), Unavailable, "folder"),
    ],
)
def test_every_error_below_has_one_of_the_port(
    error: sqlite3.Error | OSError, kind: type[StoreError], reason: str
) -> None:
    told = translated(error, Path("/no/such.db"))
    assert (type(told), told.reason) == (kind, reason)
    assert told.detail.startswith("/no/such.db")
    assert told.detail.endswith(".")
