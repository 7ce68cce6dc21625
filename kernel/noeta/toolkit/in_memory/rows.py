"""What the in-memory store keeps of one task, and the blobs that tasks share."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import msgspec
from msgspec import structs

from noeta.core.codec import Blob, Line
from noeta.core.errors import NotStorable
from noeta.core.items import Post
from noeta.core.log import InboxItem, NewTask, SnapshotPart, Timer
from noeta.toolkit.store import Status, TaskRow

T = TypeVar("T")


def check_storable(value: object) -> None:
    """Raise `NotStorable` when a text or a number in `value` is none that a store on disk could keep."""
    try:
        msgspec.msgpack.encode(value, enc_hook=list)
    except (OverflowError, UnicodeEncodeError) as error:
        raise NotStorable("what the store was given", f"{error}") from None


def upto(limit: int | None, things: Iterable[T]) -> list[T]:
    """The first of `things`, as many as a limit of any size allows; None is no limit."""
    return list(islice(things, None if limit is None else min(max(limit, 0), sys.maxsize)))


class TaskData:
    """One task: its row, log, inbox, timers and snapshot."""

    def __init__(self, new: NewTask, now: float) -> None:
        # Only the names and numbers: all else has a life of its own, and may have to be erased.
        self.new: NewTask = structs.replace(new, lines=(), posts=(), blobs=())
        self.status: Status = "waiting"
        self.reason: str = "idle"
        self.created_at: float = now
        self.updated_at: float = now
        self.retry_at: float | None = None
        self.lines: list[Line] = []
        self.inbox: dict[int, InboxItem] = {}
        self.keys: set[str] = set()
        self.timers: dict[str, Timer] = {}
        self.parts: dict[str, SnapshotPart] = {}
        self.fence: int = 0
        self.token: bytes | None = None
        self.worker: str = ""
        self.attempts: int = 0
        self.version: int = new.version
        self.last_append: bytes | None = None

    @property
    def last_seq(self) -> int:
        """The seq of the newest record, or that of the base where there is none yet."""
        return self.new.through + len(self.lines)

    def move(self, status: Status, reason: str = "", retry_at: float | None = None) -> None:
        """Change the status. Only a waiting task has a retry, and only a waiting or ended one a reason."""
        self.status = status
        self.reason = reason if status in {"waiting", "ended"} else ""
        self.retry_at = retry_at if status == "waiting" else None

    def row(self) -> TaskRow:
        """The row that others see."""
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

    def read(self, after: int, through: int | None, only: Collection[str] | None = None) -> Iterator[Line]:
        """Its lines behind `after` up to `through`, those that `only` keeps."""
        start = max(after - self.new.through, 0)
        end = len(self.lines) if through is None else max(through - self.new.through, 0)
        names = None if only is None else set(only)
        for i in range(start, min(end, len(self.lines))):
            line = self.lines[i]
            if names is None or {line.name, line.name.partition(".")[0]} & names:
                yield line

    def accept(self, post: Post) -> None:
        """Put a post with a new key into the inbox. It wakes a waiting task."""
        self.keys.add(post.key)
        n = len(self.keys)
        self.inbox[n] = InboxItem(n=n, key=post.key, kind=post.kind, body=post.body)
        if self.status == "waiting":
            self.move("ready")

    def due_at(self) -> Iterator[tuple[float, Timer | None]]:
        """When this task wakes by itself, and by which timer (None: a retry), as far as its status allows."""
        if self.status != "waiting":
            return
        if self.retry_at is not None:
            yield self.retry_at, None
        for timer in self.timers.values():
            if not timer.text or self.reason == "idle":
                yield timer.at, timer


class Blobs:
    """Bytes by content, each kept as long as a task holds it."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}
        self._holders: dict[str, set[str]] = {}

    def read(self, sha256: str) -> bytes | None:
        """The bytes with this name, None when nobody holds them."""
        return self._data.get(sha256)

    def hold(self, task: str, blobs: Sequence[Blob]) -> None:
        """Keep these blobs for the task."""
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
