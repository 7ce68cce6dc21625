"""What snapshots cost over a long turn: bytes written, and time."""

from __future__ import annotations

from logs import log_of_steps
from measure import Value, exact, fresh
from store import along

STEPS = (10_000, 100_000)
QUICK = (1_000, 10_000)


def one(steps: int, parallel: bool) -> dict[str, float]:
    """Run the policy along a turn of so many steps, in which the plugins' states grow."""
    lines = log_of_steps(steps, growing=True, parallel=parallel)
    taken = along(lines)
    written, logged = sum(taken.sizes), sum(len(line.data) for line in lines)
    return {
        "share": written / logged * 100,
        "us": sum(taken.seconds) / len(lines) * 1e6,
        "longest": max(taken.seconds) * 1e3,
        "count": len(taken.sizes),
        "last": taken.sizes[-1] / 1e3,
    }


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    values = []
    for parallel, words in ((False, ""), (True, ", every fourth step with results out of order")):
        found = {}
        for steps in QUICK if quick else STEPS:
            of = found[steps] = fresh("snapshots", "one", steps, parallel)
            key = f"{steps}_parallel" if parallel else f"{steps}"
            note = f"{of['count']:.0f} snapshots, the last of {of['last']:.0f} kB"
            turn = f"a turn of {steps:,} steps{words}"
            values += [
                Value(f"share.{key}", f"bytes written, of the log: {turn}", exact(of["share"]), "%", note),
                Value(f"time.{key}", f"time of taking them: {turn}", exact(of["us"]), "µs/record"),
                Value(f"longest.{key}", f"the longest: {turn}", exact(of["longest"]), "ms"),
            ]
        small, large = found.values()
        ratio = exact(large["us"] / small["us"])
        of_ = f"time per record, ten times the steps over that{words}"
        values.append(Value("linear_parallel" if parallel else "linear", of_, ratio, "x"))
    return values
