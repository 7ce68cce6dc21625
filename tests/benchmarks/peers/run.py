"""Measure other frameworks at the same work, beside noeta: `run.py [--envs DIR] [--quick] [--json FILE]`.

Each framework gets an environment of its own in DIR, made when it is not there: that takes the network.
Nothing else does, and a peer that reaches for it fails. It is run by hand, since it takes ten minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from measure import fresh, ratios, spread  # noqa: E402 -- it lies beside this folder

IDLE = 10

PEERS = {
    "noeta-sdk": ("noeta_sdk.py", ["noeta-sdk==0.6.42"]),
    "langgraph": (
        "langgraph_agent.py",
        ["langgraph==1.2.24", "langgraph-checkpoint-sqlite==3.1.2", "langchain==1.5.2"],
    ),
}
"""For each peer its script here, and what its environment holds."""
QUIET = {"LANGSMITH_TRACING": "false", "PYTHONWARNINGS": "ignore"}


class Figure(NamedTuple):
    """One of the figures that a work item gives, and by what it is told in `unit`."""

    words: str
    key: str
    unit: str
    factor: float


class Work(NamedTuple):
    """One work item: what noeta takes for it, and the case and arguments with which a peer does the same.

    Peers in `without` have no such case.
    """

    ours: Callable[[], dict[str, float]]
    case: str
    given: dict[str, Any]
    figures: list[Figure]
    rounds: int
    without: frozenset[str] = frozenset()


def works(quick: bool) -> list[Work]:
    """The work items."""
    rounds, long, count, messages = (1, 100, 50, 1_000) if quick else (3, 1_000, 1_000, 10_000)
    found = []
    for steps in (10, 100) if quick else (10, 100, long):
        figure = Figure(f"a step in memory, turns of {steps:,}: CPU", "cpu", "ms", 1e3 / steps)
        found.append(
            Work(
                lambda steps=steps: {"cpu": fresh("steps", "one", steps, IDLE, 1)[0] * steps},
                "turn",
                {"steps": steps, "durable": False},
                [figure],
                1 if steps == long else rounds,
            )
        )
    agents = f"{count:,} agents, 5 steps each, memory"
    ready = f"going on after {messages:,} messages, up to the model's call"
    return [
        *found,
        Work(
            lambda: {"cpu": fresh("durable", "one", "tmpfs", 100)["cpu"] * 100},
            "turn",
            {"steps": 100, "durable": True},
            [Figure("a durable step, tmpfs, turns of 100: CPU", "cpu", "ms", 10)],
            rounds,
        ),
        Work(
            lambda: dict(fresh("crowd", "one", "memory", count)),
            "agents",
            {"count": count, "steps": 5},
            [
                Figure(f"{agents}: CPU", "cpu", "s", 1),
                Figure(f"{agents}: the most memory", "peak", "MiB", 2**-20),
            ],
            1,
        ),
        Work(
            lambda: {"ready": median(fresh("host_resume", "one", "tmpfs", messages // 2, 3)["wall"])},
            "resume",
            {"messages": messages},
            [Figure(ready, "ready", "ms", 1e3)],
            rounds,
            frozenset({"noeta-sdk"}),
        ),
    ]


def environment(folder: Path, peer: str) -> Path:
    """The Python of a peer's environment, which is made when it is not there."""
    _, wanted = PEERS[peer]
    place, mark = folder / peer, folder / peer / "holds"
    if not mark.exists() or mark.read_text().split() != wanted:
        print(f"making {place}", file=sys.stderr, flush=True)
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([place / "bin" / "python", "-m", "pip", "install", "--quiet", *wanted], check=True)
        mark.write_text("\n".join(wanted))
    return place / "bin" / "python"


def theirs(python: Path, script: str, work: Work) -> dict[str, float]:
    """What a peer takes for a work item."""
    # Its environment has to be all it sees: noeta-sdk is imported as `noeta`, too.
    around = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | QUIET
    command = [python, HERE / script, work.case, json.dumps(work.given)]
    run = subprocess.run(command, env=around, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{script} {work.case} failed:\n{run.stderr[-2_000:]}")
    return dict(json.loads(run.stdout.splitlines()[-1]))


def shown(values: Sequence[float], unit: str) -> str:
    """The median with three figures, and the reach if there is one."""
    middle, *ends = (f"{each:,.0f}" if each >= 100 else f"{each:.3g}" for each in spread(values))
    return f"{middle} {unit}" + (f" ({ends[0]} to {ends[1]})" if len(values) > 1 else "")


def main() -> None:
    """Run everything, and print a table."""
    parser = argparse.ArgumentParser(description="Measure other frameworks beside noeta.")
    default = Path(tempfile.gettempdir()) / "noeta-peers"
    parser.add_argument("--envs", type=Path, default=default, metavar="DIR", help="the environments' folder")
    parser.add_argument("--quick", action="store_true", help="small sizes: a look, not a verdict to quote")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the values there, too")
    given = parser.parse_args()
    pythons = {peer: environment(given.envs, peer) for peer in PEERS}
    rows, kept = [], []
    for work in works(given.quick):
        who = [peer for peer in PEERS if peer not in work.without]
        taken: dict[str, list[dict[str, float]]] = {name: [] for name in ("noeta", *who)}
        for _ in range(work.rounds):
            taken["noeta"].append(work.ours())
            for peer in who:
                taken[peer].append(theirs(pythons[peer], PEERS[peer][0], work))
        for figure in work.figures:
            values = {
                name: [each[figure.key] * figure.factor for each in all_] for name, all_ in taken.items()
            }
            row = [figure.words, shown(values["noeta"], figure.unit)]
            for peer in PEERS:
                value = ""
                if peer in values:
                    times = ratios(values[peer], values["noeta"]).median
                    value = f"{shown(values[peer], figure.unit)}: {times:,.{0 if times >= 10 else 1}f} x"
                row.append(value)
            rows.append(row)
            kept.append({"what": figure.words, "unit": figure.unit} | values)
            print(row, file=sys.stderr, flush=True)
    versions = [wanted[0].replace("==", " ") for _, wanted in PEERS.values()]
    print("| " + " | ".join(["what", "noeta", *versions]) + " |")
    print("|---" * (2 + len(PEERS)) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if given.json:
        given.json.write_text(json.dumps(kept, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
