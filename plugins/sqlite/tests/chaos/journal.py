"""What each process of the rig writes down of its own accord: what it asks of the store, and what came back.

A line is written before the process goes on, so whatever the store has acknowledged is known when the process
is killed. A file belongs to one process, so only its last line can be torn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


class Journal:
    """The file of one process. Structs become objects, bytes become base64."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._count = 0

    def asks(self, what: str, **entry: Any) -> int:
        """Note what the process is about to ask; the number that `heard` joins the answer by."""
        self._count += 1
        self._write({"ask": self._count, "what": what, **entry})
        return self._count

    def heard(self, asked: int, answer: str = "ok", **entry: Any) -> None:
        """Note an answer."""
        self._write({"heard": asked, "answer": answer, **entry})

    def _write(self, entry: dict[str, Any]) -> None:
        os.write(self._file, _encode(entry) + b"\n")


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The asks of one file, each with all its ``answers``."""
    asked: dict[int, dict[str, Any]] = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if "ask" in entry:
            asked[entry["ask"]] = entry | {"answers": [], "file": path.name}
        else:
            asked[entry["heard"]]["answers"].append(entry)
    return iter(asked.values())


def all_entries(folder: Path) -> list[dict[str, Any]]:
    """The asks of every process, those of a process behind those of the ones that it replaced."""
    paths = sorted(folder.glob("*.journal"), key=lambda path: (len(path.name), path.name))
    return [entry for path in paths for entry in entries(path)]
