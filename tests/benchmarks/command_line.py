"""What a command that prints a little costs: CPU time of its process, against one that imports click."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from measure import Value, ratios, spread

from noeta import Agent, Host
from noeta.testing import ScriptedProvider

TASKS = 30
NOETA = str(Path(sys.executable).with_name("noeta"))


def _cpu(line: list[str], home: str) -> float:
    """CPU ms of a process, start and end included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Its own home, so that no settings of a person count.
    env = {**os.environ, "NOETA_HOME": home}
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


async def _fill(home: str) -> None:
    """A store with more tasks than a list shows."""
    given: dict[str, Any] = {"providers": {"test": ScriptedProvider(respond=lambda request: "Done.")}}
    async with Host([Agent("clerk", model="test:m")], store=f"sqlite:{home}/noeta.db", **given) as host:
        for number in range(TASKS):
            await host.run("clerk", f"Look at page {number}.")


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    with TemporaryDirectory() as home:
        anyio.run(_fill, home)
        lines = {
            "click": [sys.executable, "-c", "import click"],
            "version": [NOETA, "--version"],
            "tasks": [NOETA, "tasks", "--store", f"sqlite:{home}/noeta.db"],
        }
        taken: dict[str, list[float]] = {name: [] for name in lines}
        for line in lines.values():
            # Once so that all is compiled.
            _cpu(line, home)
        for _ in range(3 if quick else 15):
            for name, line in lines.items():
                taken[name].append(_cpu(line, home))
    return [
        Value("click", "CPU of a process that imports click", spread(taken["click"]), "ms"),
        Value("version", "`noeta --version` over that", ratios(taken["version"], taken["click"]), "x"),
        Value("tasks", f"`noeta tasks` of {TASKS}, over that", ratios(taken["tasks"], taken["click"]), "x"),
    ]
