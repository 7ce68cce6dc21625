"""Parked tasks through a host: what they cost a process that does nothing, and what waking one takes."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from measure import Value, exact, fresh, resident, spread
from sqlite_writes import Raw, place
from workload import AGENT, GOAL, Model, host

from noeta.core.records import TaskCreated
from noeta.host.birth import new_task
from noeta_sqlite import SqliteStore

COUNTS = (10_000, 100_000)
AT_ONCE = 2_000
WAKES = 40


def parked(counts: list[int]) -> list[dict[str, Any]]:
    """Park more and more tasks, and let a host in a process of its own look after each of these counts."""
    found = []
    with place(on_disk=True) as folder, asyncio.Runner() as runner:
        path = folder / "noeta.db"
        for before, number in zip([0, *counts], counts, strict=False):
            store = SqliteStore(path)
            runner.run(_park(store, range(before, number)))
            runner.run(store.aclose())
            kept = path.stat().st_size / number
            found.append(fresh("parked", "waking", str(path), number) | {"count": number, "bytes": kept})
    return found


async def _park(store: SqliteStore, numbers: range) -> None:
    """Create tasks that wait for their first message."""
    for first in range(numbers.start, numbers.stop, AT_ONCE):
        names = [_name(number) for number in range(first, min(first + AT_ONCE, numbers.stop))]
        made = [new_task(TaskCreated(task=name, agent=AGENT, root=name), at=time.time()) for name in names]
        await asyncio.gather(*(store.create(new) for new in made))


def _name(number: int) -> str:
    return f"task-{number:012}"


def waking(path: str, number: int) -> dict[str, Any]:
    """What a host takes that has so many parked tasks, and how soon one of them calls its model."""
    return asyncio.run(_waking(Path(path), number))


async def _waking(path: Path, number: int) -> dict[str, Any]:
    called: list[float] = []
    model = Model(0, called=lambda request: called.append(time.perf_counter()))
    taken: dict[str, list[float]] = {"wall": [], "cpu": [], "raw": []}
    store = SqliteStore(path)
    with place(on_disk=True) as aside:
        raw = Raw(aside)
        async with host(model, store=store) as working:
            for i in range(1 + WAKES):
                # Another one each time, all over the file.
                task = _name((i * 7_919 + number // 2) % number)
                begin = time.perf_counter()
                raw.commits(5)
                start, cpu = time.perf_counter(), time.process_time()
                await working.post(task, GOAL)
                await working.wait(task)
                taken["raw"].append((start - begin) / 5)
                taken["cpu"].append(time.process_time() - cpu)
                taken["wall"].append(called[-1] - start)
            resting = resident("VmRSS") or 0
    await store.aclose()
    # The first one also loads what nobody needed before.
    return {name: values[1:] for name, values in taken.items()} | {"resting": resting}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    few, most = fresh("parked", "parked", [1_000, 5_000] if quick else list(COUNTS))
    values = []
    for of in (few, most):
        words, over = f"{of['count']:,} parked tasks", []
        for wall, raw in zip(of["wall"], of["raw"], strict=True):
            over.append(wall - 2 * raw)
        bare = f"bare commit {spread(of['raw']).median * 1e3:.2g} ms"
        values += [
            Value(f"bytes.{of['count']}", f"{words}: bytes kept for each", exact(of["bytes"]), "B"),
            Value(f"memory.{of['count']}", f"{words}: memory of a host", exact(of["resting"] / 2**20), "MiB"),
            Value(
                f"wake.{of['count']}",
                f"{words}: from a post to the model's call",
                spread(of["wall"]).times(1e3),
                "ms",
                bare,
            ),
            Value(f"wake_over.{of['count']}", "beyond two bare commits", spread(over).times(1e3), "ms"),
            Value(f"cpu.{of['count']}", "CPU of the whole turn", spread(of["cpu"]).times(1e3), "ms"),
        ]
    grown = (most["resting"] - few["resting"]) / 2**20
    times = f"{most['count'] // few['count']} times as many"
    return [*values, Value("grown", f"memory of the host more with {times}", exact(grown), "MiB")]
