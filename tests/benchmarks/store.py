"""Logs in a store: in memory with its snapshot, and in a file, for measurements of memory."""

from __future__ import annotations

import time
from array import array
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec
from plugins import PLUGINS

from noeta.core.codec import Line, decode
from noeta.core.fold import Folder
from noeta.core.items import Post, encode_body
from noeta.core.log import Append, NewTask, SnapshotPart
from noeta.core.state import TaskState
from noeta.host.snapshot import Snapshots
from noeta.toolkit.in_memory import InMemoryStore


class Taken(msgspec.Struct):
    """What a run of the snapshot policy along a log left and cost.

    `parts` are the newest of each name, `sizes` the bytes that each snapshot wrote, `seconds` the CPU time
    each took.
    """

    parts: dict[str, SnapshotPart] = {}
    sizes: list[int] = []
    seconds: list[float] = []
    state: Any = None


def along(lines: Sequence[Line]) -> Taken:
    """Fold `lines` record by record and take a snapshot whenever one is due."""
    folder = Folder(PLUGINS)
    # Taking a snapshot needs no store.
    snapshots = Snapshots(None, "t", folder)  # type: ignore[arg-type]
    state, taken = folder.start(), Taken()
    for line in lines:
        folder.apply(state, decode(line))
        snapshots.grown((line,))
        if snapshots.due:
            start = time.process_time()
            parts = snapshots.take(state)
            taken.seconds.append(time.process_time() - start)
            taken.sizes.append(sum(len(part.data) for part in parts))
            taken.parts.update((part.name, part) for part in parts)
    taken.state = state
    return taken


async def in_memory(lines: Sequence[Line], parts: Sequence[SnapshotPart] = ()) -> InMemoryStore:
    """A store with the task ``t`` of this log and snapshot."""
    store = InMemoryStore()
    post = Post(task="t", key="k1", kind="message", body=encode_body())
    await store.create(NewTask(task="t", agent="coder", root="t", lines=lines, posts=[post]))
    (claim,) = await store.claim("w1")
    append = Append(expected_seq=len(lines), id=b"a" * 16, consume=[1], snapshot=parts, release=True)
    await store.append(claim, append)
    return store


class LogFile:
    """The reading half of a store over one file of lines, so that no line stays in memory."""

    def __init__(self, folder: Path) -> None:
        self._lines = (folder / "lines").open("rb")
        self._ends = array("q", (folder / "ends").read_bytes())
        self._messages = (folder / "messages").read_bytes()
        self._parts = folder / "parts"

    @staticmethod
    def write(folder: Path, lines: Sequence[Line], parts: Collection[SnapshotPart]) -> None:
        """Put a log and its snapshot into the folder."""
        ends, end = array("q", [0]), 0
        with (folder / "lines").open("wb") as file:
            for line in lines:
                end += file.write(line.data)
                ends.append(end)
        (folder / "ends").write_bytes(ends.tobytes())
        (folder / "messages").write_bytes(bytes(line.message for line in lines))
        (folder / "parts").write_bytes(msgspec.msgpack.encode(list(parts)))

    async def task(self, task: str) -> Any:
        """The fields of a row that readers of a log look at."""
        return msgspec.defstruct("Row", [("task", str, task), ("base", str, ""), ("through", int, 0)])()

    async def read(
        self,
        task: str,
        after: int = 0,
        *,
        through: int | None = None,
        limit: int | None = None,
        only: Collection[str] | None = None,
    ) -> list[Line]:
        """As `Store.read`."""
        last = len(self._ends) - 1 if through is None else min(through, len(self._ends) - 1)
        if limit is not None:
            last = min(last, after + limit)
        seqs = range(after + 1, last + 1) if only is None else ()
        return [Line(seq, self._line(seq), "", self._messages[seq - 1] == 1) for seq in seqs]

    async def messages(
        self, task: str, after: int = 0, *, through: int | None = None
    ) -> list[tuple[int, bytes]]:
        """As `Store.messages`."""
        last = len(self._ends) - 1 if through is None else min(through, len(self._ends) - 1)
        return [(seq, self._line(seq)) for seq in range(after + 1, last + 1) if self._messages[seq - 1]]

    def _line(self, seq: int) -> bytes:
        self._lines.seek(self._ends[seq - 1])
        return self._lines.read(self._ends[seq] - self._ends[seq - 1])

    async def snapshot(self, task: str) -> list[SnapshotPart]:
        """As `Store.snapshot`."""
        return msgspec.msgpack.decode(self._parts.read_bytes(), type=list[SnapshotPart])


async def load(store: Any) -> TaskState:
    """The state of the task ``t``, by whatever the store holds of it."""
    return await Snapshots(store, "t", Folder(PLUGINS)).load()
