"""What the SQLite store keeps for a step and for a parked task, and what waking one of many costs."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any

from logs import log, log_of_steps
from measure import Value, exact, fresh, resident, spread
from plugins import PLUGINS
from records import step
from sqlite_writes import Raw, place
from store import along

from noeta.core.codec import Line, decode, encode
from noeta.core.fold import Folder
from noeta.host.snapshot import Snapshots
from noeta.toolkit.store import Append, NewTask, Post
from noeta_sqlite import SqliteStore, checkpoints

STEPS = (1_000, 10_000)
PARKED = (10_000, 100_000)
AT_ONCE = 2_000
WAKES = 40
CREATED = log(1)[0]
"""The one record of a parked task: how it was created, with five plugins."""


def _lines(steps: int) -> list[Line]:
    lines = []
    for _ in range(steps):
        for record in step():
            made = encode(
                len(lines) + 1, record.at, record.extension, record.kind, record.data, message=record.message
            )
            lines.append(made.line)
    return lines


def bytes_kept(steps: int) -> dict[str, float]:
    """Bytes of the file for each step of a log, its indexes and snapshots included."""
    lines = _lines(steps)
    parts = list(along(lines).parts.values())
    with place(on_disk=True) as folder, asyncio.Runner() as runner:
        store = SqliteStore(folder / "noeta.db")
        runner.run(_write(store, lines, parts))
        runner.run(store.aclose())
        size = (folder / "noeta.db").stat().st_size
    return {"size": size / steps, "payload": sum(len(line.data) for line in lines) / steps}


async def _write(store: SqliteStore, lines: list[Line], parts: Any) -> None:
    post = Post(task="t", key="k1", kind="message", body=b"{}")
    await store.create(NewTask(task="t", agent="coder", root="t", lines=lines[:3], posts=[post]))
    (claim,) = await store.claim("w1")
    for at in range(3, len(lines), 300):
        some = lines[at : at + 300]
        await store.append(
            claim, Append(expected_seq=at, id=at.to_bytes(16, "big"), lines=some, consume=[1] * (at == 3))
        )
    await store.append(claim, Append(expected_seq=len(lines), id=b"z" * 16, snapshot=parts))


def snapshots(steps: int) -> dict[str, float]:
    """Bytes that snapshots add to what is written while a turn of so many steps goes on, and the log's."""
    lines = log_of_steps(steps, growing=True)
    # So that nothing is written over, and the length of the write-ahead log is what was written.
    checkpoints.PAGES, checkpoints.LONG = 2**30, 2**40
    written = []
    for taking in (False, True):
        with place(on_disk=True) as folder, asyncio.Runner() as runner:
            store = SqliteStore(folder / "noeta.db", synchronous="NORMAL")
            runner.run(_go_on(store, lines, taking))
            written.append((folder / "noeta.db-wal").stat().st_size)
            runner.run(store.aclose())
    return {"snapshots": written[1] - written[0], "log": sum(len(line.data) for line in lines)}


async def _go_on(store: SqliteStore, lines: list[Line], taking: bool) -> None:
    """Append a log bit by bit, with a snapshot whenever one is due."""
    post = Post(task="t", key="k1", kind="message", body=b"{}")
    await store.create(NewTask(task="t", agent="coder", root="t", lines=lines[:3], posts=[post]))
    (claim,) = await store.claim("w1", lease=3600.0)
    folder = Folder(PLUGINS)
    taken, state = Snapshots(store, "t", folder), folder.start()
    for line in lines[:3]:
        folder.apply(state, decode(line))
    for at in range(3, len(lines), 3):
        some = lines[at : at + 3]
        for line in some if taking else ():
            folder.apply(state, decode(line))
        taken.grown(some)
        parts = taken.take(state) if taking and taken.due else []
        await store.append(
            claim, Append(expected_seq=at, id=at.to_bytes(16, "big"), lines=some, snapshot=parts)
        )


async def _park(store: SqliteStore, first: int, last: int) -> None:
    for at in range(first, last, AT_ONCE):
        new = [
            NewTask(task=f"task-{i:012}", agent="coder", root=f"task-{i:012}", lines=[CREATED])
            for i in range(at, min(at + AT_ONCE, last))
        ]
        await asyncio.gather(*(store.create(each) for each in new))


async def _wake(store: SqliteStore, number: int, which: int) -> None:
    """Post to a parked task, and claim it."""
    name = f"task-{which:012}"
    await store.post(Post(task=name, key=f"k{number}", kind="message", body=b"{}"))
    (claim,) = await store.claim("w1")
    if claim.task != name:
        raise ValueError("another task was claimed")
    await store.append(
        claim,
        Append(
            expected_seq=1,
            id=number.to_bytes(16, "big"),
            consume=[1],
            status="waiting",
            reason="idle",
            retry_at=4e9,
            release=True,
        ),
    )


def parked(counts: list[int]) -> list[dict[str, Any]]:
    """Park more and more tasks, and look at each of these counts."""
    found = []
    with place(on_disk=True) as folder, asyncio.Runner() as runner:
        raw = Raw(folder)
        path = folder / "noeta.db"
        for before, number in zip([0, *counts], counts, strict=False):
            store = SqliteStore(path)
            runner.run(_park(store, before, number))
            runner.run(store.aclose())
            size = path.stat().st_size
            _set_timers(path, before, number)
            found.append(
                {"bytes": size / number, "count": number} | fresh("sqlite_size", "waking", str(path), number)
            )
            start = time.perf_counter()
            raw.commits(100)
            found[-1]["raw"] = (time.perf_counter() - start) / 100
            _drop_timers(path)
    return found


def _set_timers(path: Path, first: int, last: int) -> None:
    """Give every parked task a timer that is far away."""
    with sqlite3.connect(path) as db:
        db.execute("INSERT OR REPLACE INTO timer SELECT id, 'later', 1, 4e9 + id, '' FROM task")
    db.close()


def _drop_timers(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM timer")
    db.close()


def waking(path: str, number: int) -> dict[str, Any]:
    """What waking one of the tasks takes, and the other things that workers ask all the time."""
    taken: dict[str, list[float]] = {"wake": [], "wake_cpu": [], "idle_cpu": []}
    with asyncio.Runner() as runner:
        store = SqliteStore(path)
        runner.run(store.next_wake())
        begin = resident("VmRSS") or 0
        for i in range(WAKES):
            # Another one each time, all over the file.
            which = (i * 7_919 + number // 2) % number
            start, cpu = time.perf_counter(), time.process_time()
            runner.run(_wake(store, number + i, which))
            taken["wake"].append(time.perf_counter() - start)
            taken["wake_cpu"].append(time.process_time() - cpu)
            cpu = time.process_time()
            runner.run(store.next_wake())
            runner.run(store.fire_timers())
            runner.run(store.claim("w1"))
            taken["idle_cpu"].append(time.process_time() - cpu)
        grown = (resident("VmRSS") or 0) - begin
        rss = resident("VmRSS") or 0
        runner.run(store.aclose())
    return taken | {"grown": grown, "rss": rss}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    values = []
    sizes = {}
    for steps in STEPS[:1] if quick else STEPS:
        of = fresh("sqlite_size", "bytes_kept", steps)
        sizes[steps] = of["size"]
        note = f"{of['payload']:.0f} B of records"
        words = f"bytes kept for a step, {steps:,} steps"
        values += [
            Value(f"step.{steps}", words, exact(of["size"]), "B", note),
            Value(
                f"payload.{steps}", f"{words}, of the records' bytes", exact(of["size"] / of["payload"]), "x"
            ),
        ]
    if len(sizes) > 1:
        values.append(Value("flat", "the second over the first", exact(sizes[10_000] / sizes[1_000]), "x"))
    steps = 1_000 if quick else 10_000
    of = fresh("sqlite_size", "snapshots", steps)
    words = f"bytes written for snapshots, of the log: a turn of {steps:,} steps"
    note = f"{of['snapshots'] / 1e6:.1f} MB"
    values.append(Value("snapshots", words, exact(of["snapshots"] / of["log"] * 100), "%", note))
    counts = [1_000, 5_000] if quick else list(PARKED)
    few, most = fresh("sqlite_size", "parked", counts)
    for of in (few, most):
        words = f"{of['count']:,} parked tasks"
        raw = of["raw"]
        wake, cpu = spread(of["wake"]), spread(of["wake_cpu"])
        over = spread([each - 3 * raw for each in of["wake"]])
        values += [
            Value(f"parked.{of['count']}", f"{words}: bytes kept for each", exact(of["bytes"]), "B"),
            Value(f"wake.{of['count']}", f"{words}: post, claim and park one", wake.times(1e3), "ms"),
            Value(f"wake_over.{of['count']}", "beyond three bare commits", over.times(1e3), "ms"),
            Value(f"wake_cpu.{of['count']}", f"{words}: CPU of that", cpu.times(1e6), "µs"),
            Value(
                f"idle_cpu.{of['count']}",
                f"{words}: CPU of finding nothing to do",
                spread(of["idle_cpu"]).times(1e6),
                "µs",
            ),
        ]
    ratio = spread(most["wake_cpu"]).median / spread(few["wake_cpu"]).median
    idle = spread(most["idle_cpu"]).median / spread(few["idle_cpu"]).median
    times = f"{most['count'] // few['count']} times as many"
    values += [
        Value("wake_flat", f"waking one, {times}", exact(ratio), "x"),
        Value("idle_flat", f"finding nothing to do, {times}", exact(idle), "x"),
        Value("grown", f"memory more with {times}", exact((most["rss"] - few["rss"]) / 2**20), "MiB"),
    ]
    return values
