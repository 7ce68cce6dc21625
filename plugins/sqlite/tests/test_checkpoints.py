"""The log moves into the file only while this process holds the lock, and stays short."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from noeta.toolkit.store import Append, Line, Post
from noeta_sqlite import checkpoints

pytestmark = pytest.mark.anyio

PROCESS = """
import gc, os, sqlite3, sys
from pathlib import Path
import anyio
from noeta.toolkit.store import Line, NewTask
from noeta_sqlite import SqliteReader, SqliteStore, checkpoints

path, name, path_of_locks = Path(sys.argv[1]), sys.argv[2], Path("/proc/locks")
seen = {"checkpoints": 0, "closings": 0, "commits": 0}
checkpoints.PAGES = 5
checkpoints.LONG = 40_000


def lock_is_ours():
    inode = str(path.with_name(path.name + ".lock").stat().st_ino)
    return any(
        fields[1] == "FLOCK" and fields[4] == str(os.getpid()) and fields[5].split(":")[2] == inode
        for fields in map(str.split, path_of_locks.read_text().splitlines()) if fields[1] != "->"
    )


class Watched(sqlite3.Connection):
    writes = False

    def execute(self, sql, *values):
        if sql.startswith("PRAGMA wal_autocheckpoint = 0"):
            self.writes = True
        if "wal_checkpoint" in sql or sql == "VACUUM":
            seen["checkpoints"] += 1
            assert lock_is_ours(), sql
        # Each of these may be the one that moves the log.
        if sql == "COMMIT" or (not self.in_transaction and sql.startswith(("DELETE", "INSERT", "UPDATE"))):
            seen["commits"] += 1
            assert lock_is_ours(), sql
        return super().execute(sql, *values)

    def close(self):
        if self.writes:
            seen["closings"] += 1
            assert lock_is_ours()
        super().close()


connect = sqlite3.connect
sqlite3.connect = lambda *args, **kw: connect(*args, factory=Watched, **kw)


async def main():
    for turn in range(3):
        store = SqliteStore(path, synchronous="NORMAL")
        for number in range(30):
            line = Line(1, b" " * 3000, "probe.noted")
            await store.create(NewTask(task=f"{name}-{turn}-{number}", agent="a", root="r", lines=[line]))
            SqliteReader(path).tasks(limit=1)
        if turn != 1:
            await store.aclose()
    # One that nobody closed.
    del store
    gc.collect()


anyio.run(main)
assert seen["checkpoints"] >= 6 and seen["closings"] >= 4 and seen["commits"] >= 90, seen
"""


def test_no_process_moves_the_log_without_the_lock(path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", PROCESS, str(path)]
    started = [
        subprocess.Popen([*command, f"process {number}"], stderr=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    for process in started:
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said
        assert not said
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM task").fetchone() == (270,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_the_log_stays_short_and_a_long_reader_breaks_nothing(
    path: Path, opened: Any, new_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "LONG", 100_000)
    monkeypatch.setattr(checkpoints, "PATIENCE", 1)
    log = path.with_name("noeta.db-wal")
    async with opened(path) as store:
        await store.create(new_task("task", posts=[Post(task="task", key="k", kind="message", body=b"{}")]))
        (claim,) = await store.claim("worker")
        seq, sizes = 1, []

        async def write(steps: int) -> None:
            nonlocal seq
            for _ in range(steps):
                line = Line(seq + 1, b" " * 2000, "probe.noted")
                await store.append(claim, Append(expected_seq=seq, id=seq.to_bytes(16, "big"), lines=[line]))
                seq += 1
                sizes.append(log.stat().st_size)

        await write(200)
        assert max(sizes) < 200_000
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT last_seq FROM task").fetchone() == (201,)
            sizes.clear()
            await write(100)
            assert sizes[-1] > 300_000
            assert reader.execute("SELECT max(seq) FROM record").fetchone() == (201,)
        sizes.clear()
        await write(30)
        assert min(sizes) < 200_000
        assert len(await store.read("task")) == seq


async def test_a_log_that_was_moved_into_the_file_is_written_over(
    path: Path, opened: Any, new_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "PAGES", 10)
    log = path.with_name("noeta.db-wal")
    async with opened(path) as store:
        sizes = []
        for number in range(100):
            await store.create(new_task(f"task {number}"))
            sizes.append(log.stat().st_size)
        assert sizes == sorted(sizes)
        assert sizes[-1] < 30 * checkpoints.PAGE


async def test_a_process_killed_with_a_long_log_leaves_it_to_the_next(path: Path, opened: Any) -> None:
    code = (
        "import os, anyio; from noeta_sqlite import SqliteStore; from noeta.toolkit.store import NewTask\n"
        "async def main():\n"
        f"    store = SqliteStore({str(path)!r})\n"
        "    await store.create(NewTask(task='task', agent='a', root='task', lines=[]))\n"
        "    os.kill(os.getpid(), 9)\n"
        "anyio.run(main)"
    )
    await anyio.run_process([sys.executable, "-c", code], check=False)
    log = path.with_name("noeta.db-wal")
    assert log.stat().st_size > 0
    async with opened(path) as store:
        assert log.stat().st_size == 0
        assert (await store.task("task")).agent == "a"
