"""What it costs to pick a task up from a SQLite file, and to read all of its log."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import decoding
from logs import log
from measure import Value, fresh, ratios, rounds, spread
from plugins import PLUGINS
from sqlite_writes import place
from store import along, load

from noeta.core.codec import Line, decode
from noeta.core.fold import fold
from noeta.toolkit.store import Append, NewTask, Post
from noeta_sqlite import SqliteStore

SIZES = (10_000, 100_000)


async def _write(store: SqliteStore, lines: list[Line], parts: object, task: str) -> None:
    post = Post(task=task, key="k1", kind="message", body=b"{}")
    await store.create(NewTask(task=task, agent="coder", root="t", lines=lines[:10], posts=[post]))
    (claim,) = await store.claim("w1", task=task)
    for at in range(10, len(lines), 1_000):
        some = lines[at : at + 1_000]
        await store.append(claim, Append(expected_seq=at, id=at.to_bytes(16, "big"), lines=some))
    last = Append(expected_seq=len(lines), id=b"z" * 16, snapshot=parts, release=True)  # type: ignore[arg-type]
    await store.append(claim, last)


def _bare(path: Path) -> None:
    """Read and decode every record without the store."""
    db = sqlite3.connect(path)
    rows = db.execute("SELECT seq, line FROM record WHERE id >> 32 = 1 ORDER BY id")
    decoding.full(Line(seq, line) for seq, line in rows)
    db.close()


def one(size: int, compacting: bool, with_snapshot: bool) -> dict[str, list[float]]:
    """CPU and clock seconds of picking up a task of so many records; CPU of reading and decoding it."""
    lines = log(size, compacting=compacting)
    taken = along(lines)
    parts = list(taken.parts.values()) if with_snapshot else []
    with place(on_disk=True) as folder, asyncio.Runner() as runner:
        path = folder / "noeta.db"
        store = SqliteStore(path)
        runner.run(_write(store, lines, parts, "t"))
        if fold(map(decode, lines), PLUGINS) != runner.run(load(store)):
            raise ValueError("picking up the task gives another state than folding its log")
        clocked: list[float] = []

        def picked_up() -> None:
            start = time.perf_counter()
            runner.run(load(store))
            clocked.append(time.perf_counter() - start)

        calls: dict[str, Callable[[], object]] = {"bare": lambda: _bare(path), "load": picked_up}
        found = rounds(calls, 7)
        runner.run(store.aclose())
    return found | {"clock": clocked[1:], "tail": [size - max([0, *(part.seq for part in parts)])]}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    sizes = SIZES[:1] if quick else SIZES
    last = sizes[-1]
    whole = fresh("sqlite_resume", "one", last, False, False)
    rate = spread([last / seconds / 1e3 for seconds in whole["load"]])
    share = ratios(whole["bare"], whole["load"]).times(100)
    values = [
        Value("rebuild_rate", f"rebuild of {last:,} records, no snapshot", rate, "k rec/s"),
        Value("rebuild", "rate of that, of reading by sqlite3 and decoding", share, "%"),
    ]
    for size in sizes:
        for compacting in (False, True):
            of = fresh("sqlite_resume", "one", size, compacting, True)
            key = f"{size}_compacted" if compacting else f"{size}"
            words = f"from snapshot and tail, {size:,} records{', compacted' if compacting else ''}"
            note = f"snapshot {of['tail'][0]:,.0f} records back"
            values += [
                Value(f"clock.{key}", f"{words}: time", spread(of["clock"]).times(1e3), "ms", note),
                Value(f"cpu.{key}", f"{words}: CPU", spread(of["load"]).times(1e3), "ms"),
            ]
    return values
