"""Runs a stage of a check in a process of its own, so that a plugin that hangs or ends it hurts nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec import Struct

from noeta_cli.output import one_line
from noeta_cli.plugins.results import Result
from noeta_cli.plugins.source import Source

MODULE = "noeta_cli.plugins.stages"


class Order(Struct, frozen=True, kw_only=True):
    """What the process is to do: a stage, of a plugin, with settings."""

    stage: str
    limit: float
    plugin: str
    path: str
    folder: str
    point: str
    distribution: str
    version: str
    settings: dict[str, Any]
    samples: list[str]


class Told(Struct, frozen=True, kw_only=True):
    """A line of the process: what it is at, or the results at its end."""

    at: str = ""
    results: list[Result] | None = None


def run_stage(
    source: Source, plugin: str, stage: str, settings: dict[str, Any], limit: float
) -> list[Result]:
    """Run it; the results, or one that says how the process ended without any."""
    order = Order(
        stage=stage,
        limit=limit,
        plugin=plugin,
        path=str(source.path),
        folder=str(source.folder or ""),
        point=source.points[plugin],
        distribution=str(source.project.get("name", "")),
        version=str(source.project.get("version", "")),
        settings=settings,
        samples=source.samples(),
    )
    with tempfile.TemporaryDirectory(prefix="noeta-check-") as home, tempfile.TemporaryFile() as answers:
        written = Path(home) / "output"
        status = _process(order, Path(home), written, answers.fileno(), limit)
        answers.seek(0)
        at, results = _read(answers)
        if results is not None:
            return results
        way_out = "Let it come to an end by itself" if status is None else "Let it return instead"
        how = f"did not end within {limit:g} s and was stopped" if status is None else _ended(status)
        last = written.read_text(errors="replace").strip().rpartition("\n")[2]
        said = f" It wrote last: {one_line(last, 200)}" if last else ""
        text = f"The process {how}, at: {at or 'its start'}. {way_out}.{said}"
    return [Result(stage, plugin, "fail", text)]


def _process(order: Order, home: Path, written: Path, answers: int, limit: float) -> int | None:
    """Run the process; its status, None when it was stopped at the limit."""
    # What it does to the folder of a person, and to the one that the command stands in, it does elsewhere.
    environ = {**os.environ, "NOETA_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    with written.open("wb") as output, tempfile.TemporaryFile() as told:
        told.write(msgspec.json.encode(order))
        told.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(answers)],
            stdin=told,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=home,
            env=environ,
            pass_fds=[answers],
            start_new_session=True,
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also what it started and left behind.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _read(answers: BinaryIO) -> tuple[str, list[Result] | None]:
    """The last thing that the process was at, and the results if it came so far."""
    at, results = "", None
    for line in answers.read().splitlines():
        try:
            told = msgspec.json.decode(line, type=Told)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # A line that was cut off, or written by the plugin.
            continue
        at, results = told.at or at, told.results or results
    return at, results


def _ended(status: int) -> str:
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with the status {status} and said nothing"
