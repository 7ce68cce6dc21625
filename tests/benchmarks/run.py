"""Measure noeta: `run.py [CASE ...] [--quick] [--json FILE]`. The exit status is 1 when a gate is not kept.

A gate is a limit with room for noise, a goal is what the design should reach. A gate that is not reached yet
has a bound besides, which keeps what was reached. Their numbers are those of the
table in `docs/explanation/performance.md`. Values without a gate are there to be looked at.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from measure import Spread, Value, fresh

CASES = {
    "fold": "fold_rate",
    "resume": "resume",
    "snapshots": "snapshots",
    "dispatch": "dispatch",
    "copy": "state_copy",
    "records": "records",
    "import": "imports",
    "command_line": "command_line",
    "compose": "compose",
    "sqlite": "sqlite_writes",
    "sqlite_size": "sqlite_size",
    "sqlite_resume": "sqlite_resume",
    "steps": "steps",
    "growth": "growth",
    "durable": "durable",
    "crowd": "crowd",
    "parked": "parked",
    "fanout": "fanout",
    "host_resume": "host_resume",
}
"""The cases and the module that measures each."""


class Gate(NamedTuple):
    """The limits of a value. `least` turns them round: the value has to be that large.

    One `of_floor` is measured only where there is a floor (`NOETA_FLOOR`). `bound` is for a limit that is not
    reached yet: nothing may get worse than that.
    """

    number: str
    limit: float
    goal: float
    least: bool = False
    of_floor: bool = False
    bound: float | None = None

    def verdict(self, value: float) -> str:
        """Where `value` lies."""
        sign = -1 if self.least else 1
        if sign * value <= sign * self.limit:
            return "goal" if sign * value <= sign * self.goal else "within"
        return "BEYOND" if self.bound is None or sign * value > sign * self.bound else "not reached"


GATES = {
    "fold.rate": Gate("9", 40, 50, least=True),
    "fold.linear_10000": Gate("4", 1.5, 1.2),
    "fold.linear_1000": Gate("4", 1.5, 1.2),
    # From memory there is nothing to read, so that this is the fold of no. 9 and the way to it.
    "resume.rebuild": Gate("10", 40, 50, least=True),
    "resume.memory": Gate("12", 2.0, 1.5),
    "snapshots.share.10000": Gate("13", 20, 10),
    "snapshots.share.10000_parallel": Gate("13", 20, 10),
    "snapshots.linear": Gate("4", 1.5, 1.2),
    "snapshots.linear_parallel": Gate("4", 1.5, 1.2),
    "dispatch.idle": Gate("19", 0.15, 0.08),
    # The table says 0.15 and 0.08 µs, on a machine where a bare call takes 0.05.
    "dispatch.busy_ratio": Gate("19", 3.0, 1.6),
    "import.modules": Gate("1", 260, 220),
    "import.ratio": Gate("1", 2.0, 1.5),
    "command_line.version": Gate("1", 2.5, 2.0),
    "command_line.tasks": Gate("1", 4.0, 3.0),
    "compose.first": Gate("2", 40, 20),
    "compose.further": Gate("2", 1.0, 0.5),
    # The hooks of a step, none of which any of 30 idle plugins has.
    "compose.idle": Gate("20", 1.0, 0.5),
    "compose.async_idle": Gate("20", 3.0, 1.5),
    "copy.ratio": Gate("4", 3.0, 1.5),
    "copy.ratio_step": Gate("4", 3.0, 1.5),
    # A step is two appends, and may cost two flushes: closing the log now and then is the rest.
    "sqlite.flushes": Gate("5", 1.05, 1.0),
    "sqlite.step": Gate("6", 0.5, 0.25, bound=1.5),
    "sqlite.many.flushes": Gate("15", 100, 50),
    "sqlite.many.wall": Gate("15", 3.0, 2.0),
    "sqlite_size.step.10000": Gate("8", 1_300, 1_100),
    "sqlite_size.payload.10000": Gate("8", 1.5, 1.2),
    "sqlite_size.flat": Gate("8", 1.1, 1.0),
    "sqlite_size.snapshots": Gate("13", 20, 10),
    "sqlite_size.parked.10000": Gate("16", 1_024, 614),
    "sqlite_size.parked.100000": Gate("16", 1_024, 614),
    "sqlite_size.grown": Gate("16", 1.0, 0.1),
    "sqlite_size.wake_over.100000": Gate("17", 10, 3),
    "sqlite_size.wake_flat": Gate("17", 3.0, 1.5),
    "sqlite_size.idle_flat": Gate("17", 3.0, 1.5),
    "sqlite_resume.rebuild": Gate("10", 50, 70, least=True),
    "sqlite_resume.clock.10000": Gate("11", 15, 6, bound=25),
    "sqlite_resume.clock.100000": Gate("11", 80, 40, bound=220),
    "sqlite_resume.clock.10000_compacted": Gate("11", 15, 6),
    "sqlite_resume.clock.100000_compacted": Gate("11", 80, 40),
    "steps.over_floor": Gate("3", 20, 10, of_floor=True, bound=42),
    "steps.linear": Gate("4", 1.5, 1.2),
    "steps.idle": Gate("20", 1.0, 0.5),
    "growth.cpu_flat": Gate("4", 1.5, 1.2),
    "growth.encoding_flat": Gate("4", 1.5, 1.2),
    "growth.log_flat": Gate("8", 1.1, 1.0),
    # As above, for moving the log into the file.
    "durable.flushes": Gate("5", 2.05, 2.0),
    "durable.flushes_reading": Gate("5", 1.05, 1.0),
    "durable.step": Gate("6", 0.5, 0.25, bound=2.0),
    "durable.over_floor.100": Gate("7", 3.0, 1.7, of_floor=True, bound=6.0),
    "durable.over_floor.1000": Gate("7", 3.0, 1.7, of_floor=True, bound=6.0),
    "crowd.memory": Gate("14", 1.5, 1.0, bound=9),
    "crowd.memory_peak": Gate("14", 60, 45, bound=140),
    "crowd.disk": Gate("15", 3.0, 2.0, bound=16),
    "crowd.disk_commits": Gate("15", 100, 50, bound=2000),
    "parked.bytes.10000": Gate("16", 1_024, 614),
    "parked.bytes.100000": Gate("16", 1_024, 614),
    "parked.grown": Gate("16", 1.0, 0.1),
    "parked.wake_over.100000": Gate("17", 10, 3),
    "fanout.memory": Gate("18", 18, 14, bound=75),
    "fanout.disk_over": Gate("18", 18, 15, bound=80),
    "fanout.commits": Gate("18", 2, 1),
    "host_resume.clock.10000": Gate("11", 15, 6, bound=55),
}


def number(value: float) -> str:
    """`value` with three figures that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: list[dict[str, object]]) -> str:
    """The rows as a Markdown table."""
    heads = ["case", "what", "value", "(min to max)", "gate", "goal", "verdict", "note"]
    cells = [[str(row[head]) for head in heads] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [heads, ["-" * width for width in widths], *cells]
    return "\n".join(
        "| " + " | ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def row(case: str, measured: Value) -> dict[str, object]:
    """One value beside its gate."""
    gate = GATES.get(f"{case}.{measured.key}")
    middle, low, high = measured.value
    sign = "≥" if gate and gate.least else "≤"
    return {
        "case": case,
        "what": measured.of,
        "value": f"{number(middle)} {measured.unit}".strip(),
        "(min to max)": f"{number(low)} to {number(high)}" if low != high else "",
        "gate": f"{sign} {number(gate.limit)} (no. {gate.number})" if gate else "",
        "goal": f"{sign} {number(gate.goal)}" if gate else "",
        "verdict": gate.verdict(middle) if gate else "",
        "note": measured.note,
    }


def main() -> int:
    """Run the cases asked for, print the table, and say whether every gate was kept."""
    parser = argparse.ArgumentParser(description="Measure noeta against its gates.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"one of {', '.join(CASES)}; without, all")
    parser.add_argument("--quick", action="store_true", help="small sizes: a look, not a verdict to quote")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the values there, too")
    given = parser.parse_args()
    if unknown := [case for case in given.cases if case not in CASES]:
        parser.error(f"there is no case {unknown[0]!r}")
    rows, found = [], {}
    for case in given.cases or CASES:
        start = time.perf_counter()
        for key, of, value, unit, note in fresh(CASES[case], "measure", given.quick):
            measured = Value(key, of, Spread(*value), unit, note)
            found[f"{case}.{key}"] = measured._asdict() | {"value": measured.value._asdict()}
            rows.append(row(case, measured))
        print(f"{case}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    print(table(rows))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1, ensure_ascii=False))
    # A gate whose value is no longer measured would be kept for ever.
    wanted = {
        key
        for key, gate in GATES.items()
        if key.split(".")[0] in (given.cases or CASES)
        and (os.environ.get("NOETA_FLOOR") or not gate.of_floor)
    }
    missing = sorted(wanted - set(found)) if not given.quick else []
    for key in missing:
        print(f"nothing measures {key}", file=sys.stderr)
    return 1 if missing or any(row["verdict"] == "BEYOND" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
