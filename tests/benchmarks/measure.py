"""How a benchmark measures: CPU time, several rounds, ratios within a round, and fresh processes.

Absolute times on a shared machine are off by half; the ratio of two things timed one right after the other is
what can be compared. Run as a program, this module calls one function of another module here and prints what
it returns, so that a measurement of memory or of import begins in a clean process.
"""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple


class Spread(NamedTuple):
    """The median of several values, the lowest and the highest."""

    median: float
    low: float
    high: float

    def times(self, factor: float) -> Spread:
        """The same in another unit."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)


class Value(NamedTuple):
    """One measured value. `key` joins it to its gate, `of` says in words what it is."""

    key: str
    of: str
    value: Spread
    unit: str
    note: str = ""


def spread(values: Sequence[float]) -> Spread:
    """The spread of `values`."""
    return Spread(median(values), min(values), max(values))


def exact(value: float) -> Spread:
    """A value that does not vary, such as a count."""
    return Spread(value, value, value)


def ratios(over: Sequence[float], under: Sequence[float]) -> Spread:
    """The ratios of two series, round by round."""
    return spread([a / b for a, b in zip(over, under, strict=True)])


def cpu(call: Callable[[], object], loops: int = 1) -> float:
    """CPU seconds of one call, as the mean of `loops` calls in a row."""
    gc.collect()
    start = time.process_time()
    for _ in range(loops):
        call()
    return (time.process_time() - start) / loops


def rounds(
    calls: dict[str, Callable[[], object]], count: int, loops: int = 1, *, warm: bool = True
) -> dict[str, list[float]]:
    """CPU seconds of each call in each of `count` rounds, with `warm` after a round that does not count.

    All calls take their turn in every round, so that what disturbs the machine disturbs all of them.
    """
    for call in calls.values() if warm else ():
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(count):
        for name, call in calls.items():
            taken[name].append(cpu(call, loops))
    return taken


def fresh(module: str, function: str, *arguments: Any) -> Any:
    """What the function of a module here returns in a process of its own. Both ways go through JSON."""
    command = [sys.executable, __file__, module, function, json.dumps(arguments)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def resident(field: str = "VmHWM") -> int | None:
    """Bytes of this process in memory: ``VmHWM`` is the most so far, ``VmRSS`` now. None where unknown.

    `getrusage` would not do: on Linux a child's peak begins at what its parent had before the exec.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return next((int(row.split()[1]) * 1024 for row in status.splitlines() if row.startswith(field)), None)


if __name__ == "__main__":
    found = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])
    print(json.dumps(found(*json.loads(sys.argv[3]))))
