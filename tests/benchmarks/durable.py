"""What a durable step costs through a host: flushes, time on a disk, CPU without one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import measure as measuring
from floor import floor
from measure import Value, exact, fresh, ratios, spread
from sqlite_writes import TMPFS, Raw, place
from workload import Echo, Model, host, stored, turn

from noeta_sqlite import SqliteStore

WARM = 50


def one(where: str, steps: int) -> dict[str, float]:
    """Seconds of a step in one turn, by the clock and of CPU, and a bare commit before and after it."""
    return asyncio.run(_one(where, steps))


async def _one(where: str, steps: int) -> dict[str, float]:
    model = Model(WARM)
    async with stored(where) as settings, host(model, **settings) as working:
        raw = Raw(settings["store"].path.parent)
        await turn(working, model, WARM)
        before = _bare(raw)
        took = await turn(working, model, steps)
        bare = (before + _bare(raw)) / 2
    return {"wall": took.wall / steps, "cpu": took.cpu / steps, "raw": bare}


def _bare(raw: Raw, times: int = 60) -> float:
    start = time.perf_counter()
    raw.commits(times)
    return (time.perf_counter() - start) / times


def flushed(steps: int, read_only: bool) -> None:
    """Run a turn of so many steps, for somebody who counts the flushes meanwhile."""
    asyncio.run(_flushed(steps, read_only))


async def _flushed(steps: int, read_only: bool) -> None:
    model = Model(steps)
    with place(on_disk=True) as folder:
        store = SqliteStore(folder / "noeta.db")
        async with host(model, tool=Echo(read_only=read_only), store=store) as working:
            await turn(working, model, steps)
        # The process ends without closing, since closing moves the log into the file, which flushes.
        os._exit(0)


def flushes(read_only: bool, few: int = 20, many: int = 120) -> float:
    """Flushes of the disk for each step, as the system counts them."""
    seen = []
    with tempfile.TemporaryDirectory() as folder:
        for steps in (few, many):
            trace = Path(folder) / "trace"
            ours = [sys.executable, measuring.__file__, "durable", "flushed", json.dumps([steps, read_only])]
            kinds = "trace=fsync,fdatasync,sync_file_range"
            traced = ["strace", "-f", "-qq", "-e", kinds, "-o", str(trace), *ours]
            subprocess.run(traced, check=True, stdout=subprocess.DEVNULL)
            seen.append(sum("sync" in line and "resumed" not in line for line in trace.open()))
    return (seen[1] - seen[0]) / (many - few)


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    rounds = 3 if quick else 7
    values = []
    if shutil.which("strace"):
        acting, reading = flushes(False), flushes(True)
        values += [
            Value("flushes", "flushes for a durable step, counted", exact(acting), ""),
            Value("flushes_reading", "the same, of a tool that only reads", exact(reading), ""),
        ]
    taken = [fresh("durable", "one", "disk", 100) for _ in range(rounds)]
    over = [each["wall"] - 2.5 * each["raw"] for each in taken]
    raw = spread([each["raw"] for each in taken]).times(1e3)
    words = "a durable step, disk"
    values += [
        Value(
            "wall",
            f"{words}: time",
            spread([each["wall"] for each in taken]).times(1e3),
            "ms",
            f"bare commit {raw.median:.2g} ms ({raw.low:.2g} to {raw.high:.2g})",
        ),
        Value("step", "beyond 2.5 bare commits", spread(over).times(1e3), "ms"),
    ]
    for steps in (100, 1_000) if TMPFS.is_dir() else ():
        values += _on_tmpfs(steps, rounds if steps == 100 else 3)
    return values


def _on_tmpfs(steps: int, rounds: int) -> list[Value]:
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        ours.append(fresh("durable", "one", "tmpfs", steps)["cpu"])
        if (of := floor("turn", n=steps, mode="shm", store="writer")) is not None:
            theirs.append(of["cpu_per_step_us"] / 1e6)
    words = f"a durable step, tmpfs, {steps:,} steps: CPU"
    values = [Value(f"cpu.{steps}", words, spread(ours).times(1e6), "µs")]
    if theirs:
        values += [
            Value(
                f"floor.{steps}", "the floor's, with a thread that writes", spread(theirs).times(1e6), "µs"
            ),
            Value(f"over_floor.{steps}", f"{words}, of the floor's", ratios(ours, theirs), "x"),
        ]
    return values
