"""Picking a long task up through a host: from a post to the model's call, from a file and from memory."""

from __future__ import annotations

import asyncio
import time

from floor import floor
from measure import Value, fresh, spread
from workload import AGENT, GOAL, Model, host, stored

from noeta.core.ports import ModelRequest

SIZES = {"10000": (3_330, "10,000 records"), "messages": (5_000, "10,000 messages")}
"""Steps of the task that is picked up."""


def one(where: str, steps: int, rounds: int) -> dict[str, list[float]]:
    """Seconds from a post to the model's call, again and again, of a task that has taken so many steps."""
    return asyncio.run(_one(where, steps, rounds))


async def _one(where: str, steps: int, rounds: int) -> dict[str, list[float]]:
    called: list[tuple[float, float, int]] = []

    def note(request: ModelRequest) -> None:
        called.append((time.perf_counter(), time.process_time(), len(request.messages)))

    model = Model(steps, called=note)
    taken: dict[str, list[float]] = {"wall": [], "cpu": [], "messages": []}
    async with stored(where) as settings, host(model, **settings) as working:
        task = (await working.run(AGENT, GOAL)).task
        for _ in range(1 + rounds):
            called.clear()
            start, cpu = time.perf_counter(), time.process_time()
            await working.post(task, GOAL)
            await working.wait(task)
            taken["wall"].append(called[0][0] - start)
            taken["cpu"].append(called[0][1] - cpu)
            taken["messages"].append(called[0][2])
    return {name: values[1:] for name, values in taken.items()}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    rounds = 5 if quick else 9
    values = []
    for key, (steps, size) in SIZES.items():
        taken = fresh("host_resume", "one", "disk", 330 if quick else steps, rounds)
        words = f"from a post to the model's call, a task of {size}, disk"
        note = f"{taken['messages'][0]:,} messages"
        values += [
            Value(f"clock.{key}", f"{words}: time", spread(taken["wall"]).times(1e3), "ms", note),
            Value(f"cpu.{key}", f"{words}: CPU", spread(taken["cpu"]).times(1e3), "ms"),
        ]
    if not quick and floor("seed", records=10_000):
        theirs = [floor("resume", records=10_000, how="lazy") or {} for _ in range(rounds)]
        of = spread([each["ready_s"] for each in theirs]).times(1e3)
        values.append(Value("floor.10000", "the floor's state of 10,000 records, ready", of, "ms"))
    return values
