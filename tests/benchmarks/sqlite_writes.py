"""What writing to the SQLite store costs, of a bare one-row commit by sqlite3 at the same place and time."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import measure as measuring
import msgspec
from measure import Value, exact, fresh, ratios, spread
from records import step

from noeta.core.codec import Line, encode
from noeta.toolkit.store import Append, Claim, NewTask
from noeta_sqlite import SqliteStore

TMPFS = Path("/dev/shm")
CALLERS = (1, 16, 100)
PROCESSES = 8
LINES = [encode(r.seq, r.at, r.extension, r.kind, r.data, message=r.message).line for r in step()]
"""The three records of a trivial step."""


@contextmanager
def place(on_disk: bool) -> Iterator[Path]:
    """An empty folder on the disk or in memory."""
    with tempfile.TemporaryDirectory(dir=None if on_disk else TMPFS) as folder:
        yield Path(folder)


class Raw:
    """A bare commit: one row of 300 bytes, as durable as the store's own."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "raw.db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, data BLOB)")
        self._data = b"x" * 300

    def commits(self, times: int) -> None:
        """Commit so many times."""
        for _ in range(times):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT INTO row (data) VALUES (?)", (self._data,))
            self._db.execute("COMMIT")


class Tasks:
    """Some claimed tasks of a store, and the end of each one's log."""

    def __init__(self, store: SqliteStore, claims: list[Claim]) -> None:
        self._store = store
        self._ends = dict.fromkeys(range(len(claims)), 1)
        self._claims = claims
        self._ids = count(1)

    @classmethod
    async def made(cls, store: SqliteStore, number: int, name: str = "t") -> Tasks:
        """Create and claim `number` tasks."""
        made = [
            NewTask(task=f"{name}{i}", agent="a", root=f"{name}{i}", lines=LINES[:0]) for i in range(number)
        ]
        lines = [LINES[0]._replace(seq=1)]
        await asyncio.gather(*(store.create(msgspec.structs.replace(new, lines=lines)) for new in made))
        posts = [store.post(_post(new.task)) for new in made]
        await asyncio.gather(*posts)
        return cls(store, await store.claim(f"worker of {name}", limit=number, lease=3600.0))

    async def append(self, which: int) -> None:
        """Append the records of one step."""
        end = self._ends[which]
        lines = [Line(end + i, line.data, line.name, line.message) for i, line in enumerate(LINES, 1)]
        id = next(self._ids).to_bytes(16, "big")
        await self._store.append(self._claims[which], Append(expected_seq=end, id=id, lines=lines))
        self._ends[which] = end + len(lines)

    async def appends(self, times: int) -> None:
        """Append `times` steps to each task, all tasks at the same time."""

        async def one(which: int) -> None:
            for _ in range(times):
                await self.append(which)

        if len(self._claims) == 1:
            await one(0)
        else:
            await asyncio.gather(*(one(which) for which in range(len(self._claims))))


def _post(task: str) -> Any:
    from noeta.toolkit.store import Post

    return Post(task=task, key="k1", kind="message", body=b"{}")


def _timed(call: Callable[[], object], times: int) -> tuple[float, float]:
    """Seconds by the clock and of CPU that each of `times` took."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - wall) / times, (time.process_time() - cpu) / times


def callers(on_disk: bool, number: int, rounds: int, times: int) -> dict[str, list[float]]:
    """What an append costs with so many callers, and a bare commit, in turns."""
    taken: dict[str, list[float]] = {"raw": [], "raw_cpu": [], "append": [], "append_cpu": [], "grouped": []}
    with place(on_disk) as folder, asyncio.Runner() as runner:
        raw, store = Raw(folder), SqliteStore(folder / "noeta.db")
        tasks = runner.run(Tasks.made(store, number))
        raw.commits(5)
        runner.run(tasks.appends(5))
        each = max(1, times // number)
        for _ in range(rounds):
            wall, cpu = _timed(lambda: raw.commits(times), times)
            taken["raw"].append(wall)
            taken["raw_cpu"].append(cpu)
            before = store._writer.commits
            wall, cpu = _timed(lambda: runner.run(tasks.appends(each)), each * number)
            taken["append"].append(wall)
            taken["append_cpu"].append(cpu)
            taken["grouped"].append(each * number / (store._writer.commits - before))
        runner.run(store.aclose())
    return taken


def flushed(times: int) -> None:
    """Append so many times, for somebody who counts the flushes meanwhile."""
    with place(on_disk=True) as folder, asyncio.Runner() as runner:
        store = SqliteStore(folder / "noeta.db")
        tasks = runner.run(Tasks.made(store, 1))
        runner.run(tasks.appends(times))
        # The process ends without closing, since closing moves the log into the file, which flushes.
        os._exit(0)


def flushes() -> float:
    """Flushes of the disk for each append, as the system counts them."""
    few, many = 50, 250
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        for times in (few, many):
            trace = Path(folder) / "trace"
            ours = [sys.executable, measuring.__file__, "sqlite_writes", "flushed", json.dumps([times])]
            traced = [
                "strace",
                "-f",
                "-qq",
                "-e",
                "trace=fsync,fdatasync,sync_file_range",
                "-o",
                str(trace),
                *ours,
            ]
            subprocess.run(traced, check=True, stdout=subprocess.DEVNULL)
            seen.append(sum("sync" in line and "resumed" not in line for line in trace.open()))
    return (seen[1] - seen[0]) / (many - few)


def process(folder: str, number: int, seconds: float) -> list[float]:
    """Append to a task of its own for so long: how long each append took."""
    return asyncio.run(_process(Path(folder) / "noeta.db", number, seconds))


async def _process(path: Path, number: int, seconds: float) -> list[float]:
    store = SqliteStore(path)
    tasks = await Tasks.made(store, 1, f"process {number} ")
    until, taken = time.perf_counter() + seconds, []
    while time.perf_counter() < until:
        start = time.perf_counter()
        await tasks.append(0)
        taken.append(time.perf_counter() - start)
    await store.aclose()
    return taken


def crowd(number: int, seconds: float) -> dict[str, Any]:
    """So many processes append to one file at once."""
    with place(on_disk=True) as folder:
        raw = Raw(folder)
        before, _ = _timed(lambda: raw.commits(300), 300)
        asked = [json.dumps([str(folder), i, seconds]) for i in range(number)]
        command = [sys.executable, measuring.__file__, "sqlite_writes", "process"]
        running = [subprocess.Popen([*command, each], stdout=subprocess.PIPE, text=True) for each in asked]
        taken = [json.loads(each.communicate()[0]) for each in running]
        after, _ = _timed(lambda: raw.commits(300), 300)
    waits = sorted(wait for each in taken for wait in each)
    counts = [len(each) for each in taken]
    return {
        "raw": (before + after) / 2,
        "worst": waits[-1],
        "median": median(waits),
        "rate": len(waits) / seconds,
        "fair": min(counts) / max(counts),
    }


def many(number: int, steps: int) -> dict[str, float]:
    """So many tasks take so many steps of two appends each, all at once."""
    with place(on_disk=True) as folder, asyncio.Runner() as runner:
        raw, store = Raw(folder), SqliteStore(folder / "noeta.db")
        bare, _ = _timed(lambda: raw.commits(100), 100)
        start = time.perf_counter()
        tasks = runner.run(Tasks.made(store, number))
        runner.run(tasks.appends(2 * steps))
        wall = time.perf_counter() - start
        commits = store._writer.commits
        runner.run(store.aclose())
    return {"wall": wall, "commits": commits, "raw": bare}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    rounds, times = (3, 50) if quick else (9, 200)
    values = []
    for on_disk in (True, False) if TMPFS.is_dir() else (True,):
        where = "disk" if on_disk else "tmpfs"
        for number in CALLERS:
            taken = fresh(
                "sqlite_writes", "callers", on_disk, number, rounds, times * (1 if number == 1 else 5)
            )
            values += list(_callers(where, number, taken))
    if shutil.which("strace"):
        values.append(Value("flushes", "flushes for an append of 3 records, counted", exact(flushes()), ""))
    seen = fresh("sqlite_writes", "crowd", PROCESSES, 1.0 if quick else 5.0)
    words = f"{PROCESSES} processes on one file"
    note = f"median {seen['median'] * 1e3:.2g} ms, bare commit {seen['raw'] * 1e3:.2g} ms"
    values += [
        Value(
            "crowd.worst", f"{words}: the worst wait for an append", exact(seen["worst"] * 1e3), "ms", note
        ),
        Value("crowd.rate", f"{words}: appends a second", exact(seen["rate"]), "/s"),
        Value("crowd.over_raw", "of what bare commits alone reach", exact(seen["rate"] * seen["raw"]), "x"),
        Value("crowd.fair", "the process with fewest appends, of that with most", exact(seen["fair"]), "x"),
    ]
    number, steps = (100, 5) if quick else (1_000, 5)
    of = fresh("sqlite_writes", "many", number, steps)
    words = f"{number:,} tasks, {steps} steps of two appends each"
    values += [
        Value("many.flushes", f"{words}: commits in all", exact(of["commits"]), ""),
        Value("many.wall", f"{words}: time", exact(of["wall"]), "s", f"bare commit {of['raw'] * 1e3:.2g} ms"),
    ]
    return values


def _callers(where: str, number: int, taken: dict[str, list[float]]) -> Iterator[Value]:
    who = "one caller" if number == 1 else f"{number} callers"
    key = f"{where}.{number}"
    bare = f"bare commit {median(taken['raw']) * 1e6:.0f} µs, {median(taken['raw_cpu']) * 1e6:.0f} µs of CPU"
    words = f"an append of 3 records, {who}, {where}"
    yield Value(f"wall.{key}", f"{words}: time", spread(taken["append"]).times(1e6), "µs", bare)
    yield Value(f"cpu.{key}", f"{words}: CPU", spread(taken["append_cpu"]).times(1e6), "µs")
    yield Value(f"ratio.{key}", f"{words}: of a bare commit", ratios(taken["append"], taken["raw"]), "x")
    if number > 1:
        yield Value(f"grouped.{key}", f"{words}: appends a commit", spread(taken["grouped"]), "")
    elif where == "disk":
        over = [2 * ours - 2.5 * raw for ours, raw in zip(taken["append"], taken["raw"], strict=True)]
        yield Value("step", "a step of two appends, beyond 2.5 bare commits", spread(over).times(1e3), "ms")
