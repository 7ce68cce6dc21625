"""Fifty calls of one reply, each of a tool that only reads and waits for ten milliseconds."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import anyio
from floor import floor
from measure import Value, fresh, spread
from sqlite_writes import Raw
from workload import Echo, Model, host, stored, turn

from noeta.core.ports import ModelRequest

WIDE, SECONDS = 50, 0.010


def one(where: str, rounds: int) -> dict[str, list[float]]:
    """Seconds from the model's call that gives such a reply to its next, commits meanwhile, bare commits."""
    return asyncio.run(_one(where, rounds))


async def _one(where: str, rounds: int) -> dict[str, list[float]]:
    called: list[tuple[float, int]] = []
    store: Any = None

    def note(request: ModelRequest) -> None:
        called.append((time.perf_counter(), store._writer.commits if store else 0))

    tool = Echo(read_only=True, wait=lambda: anyio.sleep(SECONDS))
    model = Model(0, wide=WIDE, called=note)
    taken: dict[str, list[float]] = {"wall": [], "commits": [], "raw": []}
    async with stored(where) as settings, host(model, tool=tool, **settings) as working:
        store = settings.get("store")
        raw = Raw(store.path.parent) if store else None
        for _ in range(1 + rounds):
            start = time.perf_counter()
            if raw:
                raw.commits(5)
            taken["raw"].append((time.perf_counter() - start) / 5)
            await turn(working, model, 1)
            (begin, before), (end, after) = called[-2:]
            taken["commits"].append(after - before)
            taken["wall"].append(end - begin)
    return {name: values[1:] for name, values in taken.items()}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    rounds = 3 if quick else 15
    words = f"{WIDE} calls of {SECONDS * 1e3:.0f} ms each"
    memory, disk = fresh("fanout", "one", "memory", rounds), fresh("fanout", "one", "disk", rounds)
    over = [wall - 2 * raw for wall, raw in zip(disk["wall"], disk["raw"], strict=True)]
    values = [
        Value("memory", f"{words}, memory", spread(memory["wall"]).times(1e3), "ms"),
        Value("disk", f"{words}, disk", spread(disk["wall"]).times(1e3), "ms"),
        Value("disk_over", "beyond two bare commits", spread(over).times(1e3), "ms"),
        Value("commits", "commits meanwhile", spread(disk["commits"]), ""),
    ]
    if floor("fanout", width=WIDE, sleep_ms=SECONDS * 1e3):
        theirs = [floor("fanout", width=WIDE, sleep_ms=SECONDS * 1e3) or {} for _ in range(rounds)]
        of = spread([each["wall_s"] for each in theirs]).times(1e3)
        values.append(Value("floor", f"{words}, memory: the floor's turn", of, "ms"))
    return values
