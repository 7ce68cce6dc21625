"""A thousand agents of one process at once, in memory and on the disk."""

from __future__ import annotations

import asyncio

from floor import floor
from measure import Value, exact, fresh, resident
from sqlite_writes import Raw
from workload import AGENT, GOAL, Model, Took, host, stored, turn

STEPS = 5


def one(where: str, count: int) -> dict[str, float]:
    """So many agents take a few steps each: seconds, the most memory, commits."""
    return asyncio.run(_one(where, count))


async def _one(where: str, count: int) -> dict[str, float]:
    model = Model(STEPS)
    async with stored(where) as settings, host(model, capacity=count, **settings) as working:
        await turn(working, model, STEPS)
        store, raw = settings.get("store"), 0.0
        if store:
            with Took() as bare:
                Raw(store.path.parent).commits(100)
            raw = bare.wall / 100
        before = store._writer.commits if store else 0
        with Took() as took:
            outcomes = await asyncio.gather(*(working.run(AGENT, GOAL) for _ in range(count)))
        if any(outcome.text != "done" for outcome in outcomes):
            raise ValueError("some turn was not what it should be")
        commits = (store._writer.commits if store else 0) - before
    return {"wall": took.wall, "cpu": took.cpu, "peak": resident() or 0, "commits": commits, "raw": raw}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    count = 100 if quick else 1_000
    words = f"{count:,} agents, {STEPS} steps each"
    memory, disk = (fresh("crowd", "one", where, count) for where in ("memory", "disk"))
    values = [
        Value("memory", f"{words}, memory: time", exact(memory["wall"]), "s"),
        Value("memory_peak", "the most memory of the process", exact(memory["peak"] / 2**20), "MiB"),
        Value(
            "disk",
            f"{words}, disk: time",
            exact(disk["wall"]),
            "s",
            f"bare commit {disk['raw'] * 1e3:.2g} ms",
        ),
        Value("disk_commits", "commits in all", exact(disk["commits"]), ""),
        Value("disk_peak", "the most memory of the process", exact(disk["peak"] / 2**20), "MiB"),
    ]
    for name, mode in (("memory", "memory"), ("disk", "sqlite")):
        if (of := floor("agents", count=count, steps=STEPS, mode=mode)) is not None:
            values.append(
                Value(f"floor_{name}", f"{words}, {name}: the floor's time", exact(of["wall_s"]), "s")
            )
    return values
