"""The workload of a peer, and the clock around it. A peer's own Python runs this, so it imports no noeta.

A step is one model call and the trivial call that it asks for: an argument of 100 bytes, a result of 200, 100
bytes of text beside the call.
"""

from __future__ import annotations

import gc
import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Self

ARGUMENT = "x" * 100
RESULT = "y" * 200
TEXT = "z" * 100
PROMPT = "You are a benchmark agent."
GOAL = "Do the scripted work."
DESCRIPTION = "Gives back a text."
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
MEMORY_DISK = Path("/dev/shm")


def refuse_network() -> None:
    """Let nothing of this process reach beyond the machine."""

    def refuse(*args: object) -> NoReturn:
        raise OSError("a benchmark uses no network")

    socket.socket.connect = refuse  # type: ignore[method-assign]
    socket.getaddrinfo = refuse


def folder() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory, so that a durable step costs what its software costs."""
    return tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None)


class Taken:
    """Seconds of CPU and by the clock that a block took, and the most memory the process has had."""

    def __enter__(self) -> Self:
        gc.collect()
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu

    def shown(self) -> dict[str, float]:
        """Both, and the memory in bytes, as what a case gives."""
        status = Path("/proc/self/status").read_text()
        peak = next(int(row.split()[1]) * 1024 for row in status.splitlines() if row.startswith("VmHWM"))
        return {"wall": self.wall, "cpu": self.cpu, "peak": peak}


def main(cases: dict[str, Callable[..., dict[str, float]]]) -> None:
    """Run the case that the command line names, with its arguments in JSON, and print what it gives."""
    refuse_network()
    given: dict[str, Any] = json.loads(sys.argv[2])
    print(json.dumps(cases[sys.argv[1]](**given)))
