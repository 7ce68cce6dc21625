"""What a step costs in memory, of what the same work costs without a framework, and whether it grows."""

from __future__ import annotations

import asyncio

from floor import floor
from measure import Value, fresh, ratios, spread
from workload import IDLE, Model, host, turn

WARM = 50
MANY = 30
"""Idle plugins."""


def one(steps: int, plugins: int, turns: int) -> list[float]:
    """CPU seconds of a step, in each of several turns in one process."""
    return asyncio.run(_one(steps, plugins, turns))


async def _one(steps: int, plugins: int, turns: int) -> list[float]:
    model = Model(WARM)
    async with host(model, plugins=plugins) as working:
        await turn(working, model, WARM)
        return [(await turn(working, model, steps)).cpu / steps for _ in range(turns)]


def growing(short: int, long: int, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of a step of short turns and of a long one, taken in turns."""
    return asyncio.run(_growing(short, long, rounds))


async def _growing(short: int, long: int, rounds: int) -> dict[str, list[float]]:
    model = Model(WARM)
    taken: dict[str, list[float]] = {"short": [], "long": []}
    async with host(model) as working:
        await turn(working, model, WARM)
        for _ in range(rounds):
            some = [(await turn(working, model, short)).cpu / short for _ in range(10)]
            taken["short"].append(sum(some) / len(some))
            taken["long"].append((await turn(working, model, long)).cpu / long)
    return taken


def idle(steps: int, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of a step without idle plugins and with many, taken in turns: the best of three turns."""
    return asyncio.run(_idle_steps(steps, rounds))


async def _idle_steps(steps: int, rounds: int) -> dict[str, list[float]]:
    model = Model(WARM)
    taken: dict[str, list[float]] = {"none": [], "many": []}
    async with host(model, plugins=0) as none, host(model, plugins=MANY) as many:
        for _ in range(1 + rounds):
            for name, working in (("none", none), ("many", many)):
                taken[name].append(min([(await turn(working, model, steps)).cpu for _ in range(3)]) / steps)
    return {name: values[1:] for name, values in taken.items()}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    rounds = 3 if quick else 9
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        ours += fresh("steps", "one", 100, IDLE, 1)
        if (of := floor("turn", n=100, mode="memory")) is not None:
            theirs.append(of["cpu_per_step_us"] / 1e6)
    words = "a step in memory, turns of 100 steps"
    values = [Value("cpu.100", words, spread(ours).times(1e6), "µs")]
    if theirs:
        values += [
            Value("floor.100", "the floor's", spread(theirs).times(1e6), "µs"),
            Value("over_floor", f"{words}, of the floor's", ratios(ours, theirs), "x"),
        ]
    long = 1_000 if quick else 10_000
    taken = fresh("steps", "growing", 100, long, 2)
    values += [
        Value(
            f"cpu.{long}",
            f"a step in memory, a turn of {long:,} steps",
            spread(taken["long"]).times(1e6),
            "µs",
        ),
        Value("linear", "the same, of one in turns of 100", ratios(taken["long"], taken["short"]), "x"),
    ]
    return [*values, *_idle(rounds)]


def _idle(rounds: int) -> list[Value]:
    """What 30 idle plugins add to a step."""
    taken = fresh("steps", "idle", 200, rounds)
    added = [(b - a) * 1e6 / MANY for a, b in zip(taken["none"], taken["many"], strict=True)]
    return [Value("idle", f"what an idle plugin adds to a step, by adding {MANY}", spread(added), "µs")]
