"""How a long turn grows: time, memory, bytes of its log, and the body of the request."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import msgspec
from measure import Value, cpu, exact, fresh, resident
from workload import AGENT, GOAL, Model, host, stored

from noeta.core.ports import ModelRequest

STEPS, PART = 5_000, 1_000


class Body:
    """A provider's request body that grows with the conversation: what is new is encoded, the rest is kept.

    `encoding` are the CPU seconds that took so far.
    """

    def __init__(self) -> None:
        self.encoding = 0.0
        self._data = bytearray(b"[")
        self._messages = 0

    def grow(self, request: ModelRequest) -> None:
        """Go on to a request that begins like the last one."""
        start = time.process_time()
        for at in range(self._messages, len(request.messages)):
            self._data += msgspec.json.encode(request.messages[at])
            self._data += b","
        self._messages = len(request.messages)
        self.encoding += time.process_time() - start

    def copying(self) -> float:
        """CPU seconds of the one copy of it that a call sends."""
        return cpu(lambda: bytes(self._data), loops=20)


class Mark(msgspec.Struct):
    """What a turn has taken so far."""

    cpu: float
    encoding: float
    memory: int


def parts(steps: int, part: int) -> dict[str, list[float]]:
    """What a step took in each part of a turn: CPU seconds, and bytes of memory and of the log."""
    return asyncio.run(_parts(steps, part))


async def _parts(steps: int, part: int) -> dict[str, list[float]]:
    body, marks, copies, measuring = Body(), list[Mark](), list[float](), 0.0

    def called(request: ModelRequest) -> None:
        nonlocal measuring
        body.grow(request)
        if len(request.messages) // 2 % part == 0:
            start = time.process_time()
            marks.append(Mark(start - measuring, body.encoding, resident("VmRSS") or 0))
            copies.append(body.copying())
            measuring += time.process_time() - start

    async with stored("tmpfs") as settings, host(Model(steps, called=called), **settings) as working:
        outcome = await working.run(AGENT, GOAL)
        lines = await settings["store"].read(outcome.task)
    ends = [at for at, line in enumerate(lines) if line.name == "core.model_replied"][::part]
    found = {
        name: [(getattr(b, name) - getattr(a, name)) / part for a, b in pairwise(marks)]
        for name in Mark.__struct_fields__
    }
    return found | {
        "copying": copies[1:],
        "log": [sum(len(line.data) for line in lines[a:b]) / part for a, b in pairwise(ends)],
    }


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    steps, part = (1_000, 200) if quick else (STEPS, PART)
    taken = fresh("growth", "parts", steps, part)
    words = {
        "cpu": ("CPU, durable on tmpfs", 1e6, "µs"),
        "encoding": ("of that for what is new in the request's body", 1e6, "µs"),
        "copying": ("CPU to copy the body at its end", 1e6, "µs"),
        "memory": ("memory the process grew by", 1, "B"),
        "log": ("bytes of the log", 1, "B"),
    }
    values = []
    for at in range(len(taken["cpu"])):
        which = f"steps {at * part + 1:,} to {(at + 1) * part:,}, each"
        values += [
            Value(f"{name}.{at + 1}", f"{which}: {of}", exact(taken[name][at] * factor), unit)
            for name, (of, factor, unit) in words.items()
        ]
    for name in ("cpu", "encoding", "log"):
        ratio = taken[name][-1] / taken[name][0]
        values.append(
            Value(f"{name}_flat", f"the last of these over the first: {words[name][0]}", exact(ratio), "x")
        )
    return values
