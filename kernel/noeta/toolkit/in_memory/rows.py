"""What the in-memory store keeps of one task, and how it tells those who wait for changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import anyio

from noeta.core.codec import Blob, Line
from noeta.core.log import InboxItem, NewTask, SnapshotPart, Status, TaskRow, Timer


class TaskData:
    """One task: its row, log, inbox, timers and snapshot."""

    def __init__(self, new: NewTask, now: float) -> None:
        self.new = new
        self.status: Status = "waiting"
        self.reason = "idle"
        self.created_at = self.updated_at = now
        self.retry_at: float | None = None
        self.lines: list[Line] = []
        self.inbox: dict[int, InboxItem] = {}
        self.keys: set[str] = set()
        self.timers: dict[str, Timer] = {}
        self.parts: dict[str, SnapshotPart] = {}
        self.fence = 0
        self.token: bytes | None = None
        self.worker = ""
        self.attempts = 0
        self.version = new.version
        self.last_append = b""

    @property
    def last_seq(self) -> int:
        return self.new.through + len(self.lines)

    def row(self) -> TaskRow:
        new = self.new
        return TaskRow(
            task=new.task,
            root=new.root,
            parent=new.parent,
            key=new.key,
            agent=new.agent,
            queue=new.queue,
            status=self.status,
            reason=self.reason,
            last_seq=self.last_seq,
            base=new.base,
            through=new.through,
            created_at=self.created_at,
            updated_at=self.updated_at,
            retry_at=self.retry_at,
            unread=len(self.inbox),
            fence=self.fence,
            worker=self.worker,
            attempts=self.attempts,
            version=self.version,
        )

    def due_at(self) -> Iterator[tuple[float, Timer | None]]:
        """When this task wakes by itself, and by which timer (None: a retry), as far as its status allows."""
        if self.status != "waiting":
            return
        if self.retry_at is not None:
            yield self.retry_at, None
        for timer in self.timers.values():
            if not timer.text or self.reason == "idle":
                yield timer.at, timer


class Signal:
    """Remembers a change until it is waited for."""

    def __init__(self) -> None:
        self._changed = anyio.Event()

    def mark(self) -> None:
        self._changed.set()

    async def wait(self, timeout: float) -> bool:
        with anyio.move_on_after(timeout):
            await self._changed.wait()
        if not self._changed.is_set():
            return False
        self._changed = anyio.Event()
        return True


class Blobs:
    """Bytes by content, each kept as long as a task holds it."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}
        self._holders: dict[str, set[str]] = {}

    def read(self, sha256: str) -> bytes | None:
        return self._data.get(sha256)

    def hold(self, task: str, blobs: Sequence[Blob]) -> None:
        for blob in blobs:
            self._data.setdefault(blob.sha256, blob.data)
            self._holders.setdefault(blob.sha256, set()).add(task)

    def let_go(self, task: str, names: Collection[str] | None = None) -> None:
        """End the task's hold on these blobs (None: on all)."""
        for sha256 in list(self._holders if names is None else names):
            holders = self._holders.get(sha256, set())
            holders.discard(task)
            if not holders and sha256 in self._holders:
                del self._holders[sha256], self._data[sha256]
