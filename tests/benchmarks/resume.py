"""What it costs to pick a task up: from the whole log, and from a snapshot and the log behind it."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import decoding
from floor import floor
from logs import log
from measure import Spread, Value, exact, fresh, ratios, resident, rounds, spread
from plugins import PLUGINS
from store import LogFile, along, in_memory, load

from noeta.core.codec import decode
from noeta.core.fold import fold
from noeta.toolkit.history import history
from noeta.toolkit.store import Store

SIZES = (1_000, 10_000, 25_000, 100_000)
QUICK = (1_000, 10_000)


async def _read_and_decode(store: Store) -> None:
    async for lines in history(store, "t"):
        decoding.full(lines)


def one(size: int, compacting: bool = False) -> dict[str, list[float]]:
    """CPU seconds of picking up a task of so many records, a value a round; and where its snapshot is."""
    lines = log(size, compacting=compacting)
    taken = along(lines)
    parts = list(taken.parts.values())
    with asyncio.Runner() as runner:
        bare = runner.run(in_memory(lines))
        kept = runner.run(in_memory(lines, parts))
        expected = fold(map(decode, lines), PLUGINS)
        # A resume that gives another state would be quick and wrong.
        if not expected == runner.run(load(kept)) == runner.run(load(bare)):
            raise ValueError("picking up the task gives another state than folding its log")
        calls = {
            "decode": lambda: runner.run(_read_and_decode(bare)),
            "rebuild": lambda: runner.run(load(bare)),
            "snapshot": lambda: runner.run(load(kept)),
        }
        measured = rounds(calls, 7, loops=max(1, 20_000 // size))
    return measured | {"tail": [size - max(part.seq for part in parts)], "live": [len(expected.conversation)]}


def prepare(folder: str, size: int) -> None:
    """Leave a log and its snapshot in the folder."""
    lines = log(size)
    LogFile.write(Path(folder), lines, along(lines).parts.values())


def memory(folder: str, traced: bool) -> dict[str, int]:
    """What a resumed state adds to memory, in this process, by the allocator's count or by the system's."""
    store = LogFile(Path(folder))
    with asyncio.Runner() as runner:
        runner.run(store.task("t"))
        gc.collect()
        if traced:
            tracemalloc.start()
        before, peak_before = resident("VmRSS") or 0, resident() or 0
        state = runner.run(load(store))
        gc.collect()
        if traced:
            held, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        else:
            held, peak = (resident("VmRSS") or 0) - before, (resident() or 0) - peak_before
    live = sum(len(item.data) for item in state.conversation)
    return {"held": held, "peak": peak, "live": live, "messages": len(state.conversation)}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    sizes = QUICK if quick else SIZES
    taken = {size: fresh("resume", "one", size) for size in sizes}
    last = sizes[-1]
    values = [value for size in sizes for value in _resume(f"{size}", f"{size:,} records", taken[size])]
    compacted = fresh("resume", "one", last, True)
    values += _resume(f"{last}_compacted", f"{last:,} records, compacted every 500 steps", compacted)
    rebuild = taken[last]["rebuild"]
    rate = spread([last / seconds / 1e3 for seconds in rebuild])
    share = ratios(taken[last]["decode"], rebuild).times(100)
    values += [
        Value("rebuild_rate", f"rebuild of {last:,} records, no snapshot", rate, "k rec/s"),
        Value("rebuild", "rate of that rebuild, of reading and decoding everything", share, "%"),
        *_memory(last),
    ]
    return [*values, *_floor(10_000, spread(taken[10_000]["snapshot"]))]


def _resume(key: str, log_: str, of: dict[str, list[float]]) -> list[Value]:
    whole, short = of["rebuild"], of["snapshot"]
    note = f"snapshot {of['tail'][0]:,} records back, {of['live'][0]:,} messages"
    return [
        Value(f"full.{key}", f"from the whole log, {log_}", spread(whole).times(1e3), "ms"),
        Value(f"snapshot.{key}", f"from snapshot and tail, {log_}", spread(short).times(1e3), "ms", note),
        Value(f"share.{key}", "the second over the first", ratios(short, whole), "x"),
    ]


def _memory(size: int) -> list[Value]:
    with tempfile.TemporaryDirectory() as folder:
        fresh("resume", "prepare", folder, size)
        traced = fresh("resume", "memory", folder, True)
        seen = fresh("resume", "memory", folder, False)
    of = f"{traced['messages']:,} messages of {traced['live'] / traced['messages']:.0f} bytes"
    named = [
        ("memory", "memory that the resumed state holds, of its live messages' bytes", traced["held"]),
        ("memory_peak", "the most while resuming, of the same", traced["peak"]),
        ("memory_rss", "what the process grew by, of the same", seen["held"]),
        ("memory_rss_peak", "the most it grew by meanwhile, of the same", seen["peak"]),
    ]
    # A system that does not tell what a process takes has no value for the last two.
    return [Value(key, words, exact(value / traced["live"]), "x", of) for key, words, value in named if value]


def _floor(size: int, ours: Spread) -> Iterator[Value]:
    """Our resume over that of a program without a framework, which reads its log from SQLite. Wall time."""
    if floor("seed", records=size):
        found = [floor("resume", records=size, how="lazy") or {} for _ in range(5)]
        theirs = median(each["ready_s"] for each in found)
        of = f"snapshot and tail, {size:,} records, of the floor's"
        yield Value("floor", of, ours.times(1 / theirs), "x")
