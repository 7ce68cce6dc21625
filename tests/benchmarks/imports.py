"""What `from noeta import Agent` costs: CPU time and modules, against the libraries that programs need."""

from __future__ import annotations

import resource
import subprocess
import sys

from measure import Value, exact, ratios, spread

STATEMENTS = {
    "python": "pass",
    "libraries": "import asyncio, sqlite3, msgspec, pluggy",
    "noeta": "from noeta import Agent",
}
COUNT = "import sys; print(len(sys.modules))"


def _cpu(statement: str) -> float:
    """CPU ms of a Python that runs the statement, start and end included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def _modules(statement: str) -> int:
    run = subprocess.run([sys.executable, "-c", f"{statement}\n{COUNT}"], stdout=subprocess.PIPE, check=True)
    return int(run.stdout)


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    taken: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(3 if quick else 15):
        for name, statement in STATEMENTS.items():
            taken[name].append(_cpu(statement))
    return [
        Value("modules", "modules after `from noeta import Agent`", exact(_modules(STATEMENTS["noeta"])), ""),
        Value("python", "CPU of a bare Python", spread(taken["python"]), "ms"),
        Value("libraries", "CPU with asyncio, sqlite3, msgspec and pluggy", spread(taken["libraries"]), "ms"),
        Value("noeta", "CPU with `from noeta import Agent`", spread(taken["noeta"]), "ms"),
        Value(
            "ratio",
            "noeta over the libraries",
            ratios(taken["noeta"], taken["libraries"]),
            "x",
        ),
    ]
