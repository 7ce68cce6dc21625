"""The store port: everything durable goes through `Store`.

A store keeps logs, inboxes, claims, timers, children, snapshots and blobs. It never looks into a record: it
keeps the bytes and gives the same bytes back. One `append` carries all that a step makes durable.

What must hold whatever crashes and whenever:

- Every call that writes is atomic. After a crash, a cancel or an error, either all of it happened or none.
  Calls made at the same time end as if they had been made one after the other.
- `Unavailable` is the one error after which it may have happened; repeating the call is then safe.
- Only the newest claim of a task writes to it. That is decided by fence and token alone, never by a clock.
- A task's seqs are dense. A record is never changed, but for `purge`.
- A dedupe key of a task is accepted once, for the life of the task.
- Names (ids, keys, queues, workers) are compared character by character, at any length the kernel lets pass.
- A post that commits before or while a task goes to wait is consumed or leaves the task ready: no wake-up is
  lost.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from msgspec import Struct

from noeta.core.codec import Blob as Blob
from noeta.core.codec import Line as Line
from noeta.core.errors import Conflict as Conflict
from noeta.core.errors import Fenced as Fenced
from noeta.core.errors import NotStorable as NotStorable
from noeta.core.errors import StoreError as StoreError
from noeta.core.errors import Unavailable as Unavailable
from noeta.core.items import Post as Post
from noeta.core.items import TimerFired, encode_body
from noeta.core.log import Append as Append
from noeta.core.log import Appended as Appended
from noeta.core.log import Claim as Claim
from noeta.core.log import InboxItem as InboxItem
from noeta.core.log import Log as Log
from noeta.core.log import NewTask as NewTask
from noeta.core.log import SnapshotPart as SnapshotPart
from noeta.core.log import Timer as Timer
from noeta.core.messages import user
from noeta.core.ports import Clock as Clock
from noeta.core.ports import Ids as Ids
from noeta.core.records import VERSION
from noeta.toolkit.errors import Corrupt as Corrupt
from noeta.toolkit.errors import Duplicate as Duplicate
from noeta.toolkit.errors import Full as Full
from noeta.toolkit.errors import ReadOnly as ReadOnly
from noeta.toolkit.errors import TaskOver as TaskOver
from noeta.toolkit.errors import UnknownTask as UnknownTask
from noeta.toolkit.history import history as history
from noeta.toolkit.history import spans as spans
from noeta.toolkit.history import tail as tail

Status = Literal["ready", "running", "waiting", "ended"]


class TaskRow(Struct, frozen=True, kw_only=True):
    """What a store knows of a task without reading its log. Times are epoch seconds.

    `reason` says what a waiting task waits for, or how an ended one ended, and is empty for others.
    `retry_at` is None unless the task waits. `attempts` counts claims since the task last made progress
    that were not given up.
    `version` is the newest record version in the log. `unread` counts the inbox items not consumed.
    `updated_at` is when the row last changed in any way.
    """

    task: str
    root: str
    parent: str
    key: str
    agent: str
    queue: str
    status: Status
    reason: str
    last_seq: int
    base: str
    through: int
    created_at: float
    updated_at: float
    retry_at: float | None
    unread: int
    fence: int
    worker: str
    attempts: int
    version: int


class Watch(Protocol):
    """A subscription to changes."""

    async def wait(self, timeout: float) -> bool:
        """Wait until something may have changed since the last call (True) or `timeout` seconds passed
        (False).

        A hint: it may come early or twice, but where nothing changes, a call after a few such hints lasts
        its whole time. A change between two calls is never lost.
        """


class Store(Log, Protocol):
    """Where tasks live.

    Every method raises only `UnknownTask`, `TaskOver` and the `StoreError` classes, and `NotStorable` for a
    text with a lone surrogate or a number of more than 64 bits, of which nothing is kept.
    """

    async def create(self, new: NewTask) -> None:
        """Create a task, ready to be claimed when it has a post, else waiting (``idle``).

        Raises `Duplicate` when the id or the spawn key exists, `UnknownTask` for an unknown base or parent,
        and `Conflict` when the lines leave a gap behind `through`, or `through` is not within the base.
        """

    async def post(self, post: Post) -> None:
        """Put an item into a task's inbox; a waiting task becomes ready.

        Raises `Duplicate` when the key was accepted before, whatever the body and also when the task has
        ended, and `TaskOver` when the task has ended and the item is no ``erase``. An ended task with an
        erasure in its inbox can be claimed.
        """

    async def claim(
        self,
        worker: str,
        *,
        lease: float = 30.0,
        limit: int = 1,
        queues: Collection[str] | None = None,
        agents: Collection[str] | None = None,
        task: str | None = None,
        version: int = VERSION,
    ) -> list[Claim]:
        """Take up to `limit` tasks that need a worker, those that wait longest first.

        A task needs one when it is ready and unclaimed, or when the lease of the worker that holds it ran
        out; one that has ended needs one only while an item is unread. Rows above `version`, of other queues
        or agents are passed over. Each claim's fence is higher than any before; a ready task is then running.

        The worker's lease, one for all it holds, ends `lease` seconds from now by the store's monotonic
        clock. Raises `Fenced` when it had run out already: the worker must drop all it holds and go on under
        a new name.
        """

    async def renew(self, worker: str, lease: float = 30.0) -> bool:
        """Extend the worker's lease to `lease` seconds from now.

        False when it had run out. It stays so, since others may hold the worker's tasks by now.
        """

    async def release(self, claim: Claim) -> None:
        """Give a claim up without writing: a running task is then ready.

        Idempotent.
        """

    async def read(
        self,
        task: str,
        after: int = 0,
        *,
        through: int | None = None,
        limit: int | None = None,
        only: Collection[str] | None = None,
    ) -> list[Line]:
        """The task's own lines with ``after < seq <= through``, in order, as they were written.

        `only` keeps the records of these extensions; a name ``extension.kind`` keeps one kind. Records of a
        base are not included. Raises `UnknownTask`.
        """

    async def messages(
        self, task: str, after: int = 0, *, through: int | None = None
    ) -> list[tuple[int, bytes]]:
        """The seq and the bytes of each line that `read` gives, of those alone that carry a message.

        A conversation is thousands of them, read at once before anything else can go on. Raises
        `UnknownTask`.
        """

    async def read_blob(self, sha256: str) -> bytes | None:
        """The bytes of a blob, None when there is no such blob."""

    async def snapshot(self, task: str) -> list[SnapshotPart]:
        """The parts kept for the task, in no order; empty when there are none."""

    async def fire_timers(self, limit: int = 100) -> int:
        """Wake what is due by the store's clock, earliest first; how many timers fired and retries came due.

        Firing deletes the timer and posts `timer_post` in one commit, so that a timer set once fires once.
        What is due is settled when the call begins: two due timers of an idle task both fire.
        """

    async def next_wake(self) -> float | None:
        """The epoch second of the earliest timer or retry that may fire as things stand, due or not."""

    async def task(self, task: str) -> TaskRow:
        """A task's row. Raises `UnknownTask`."""

    async def tasks(
        self,
        *,
        status: Status | None = None,
        agent: str | None = None,
        parent: str | None = None,
        root: str | None = None,
        base: str | None = None,
        after: TaskRow | None = None,
        limit: int = 100,
    ) -> list[TaskRow]:
        """Rows that match, oldest first, behind `after`."""

    async def timers(self, task: str) -> list[Timer]:
        """The timers set for the task, by name."""

    async def purge(self, claim: Claim, stones: Sequence[Line], blobs: Collection[str]) -> None:
        """Replace the lines of these seqs by tombstones, drop the task's snapshots and its hold on `blobs`.

        A blob goes when no task holds it, so `blobs` are those that no other record of the task needs.
        Idempotent. Raises `Fenced`, and `Conflict` for a seq that the task's own log does not have.
        """

    async def sweep(self, ended_before: float, limit: int = 100) -> list[str]:
        """Delete whole trees of tasks with all they hold, up to `limit` trees; the ids of the tasks deleted.

        A tree goes when each of its tasks ended before that epoch second, no worker with a lease that goes on
        holds one of them, and no task outside it continues one of them.
        """

    def watch(self, task: str | None = None, *, log: bool = True) -> AbstractAsyncContextManager[Watch]:
        """Watch one task's log, inbox and status, or (None) anything that a worker may have to act on.

        Without `log` a task is watched for its inbox and status alone: records that a running task adds need
        not end a wait. They do not give a worker anything to act on either.
        """

    async def aclose(self) -> None:
        """Close. Idempotent; nothing durable depends on it."""


class Reader(Protocol):
    """Looks at a store without an event loop. An entry of ``noeta.readers`` makes one from a URL.

    Its methods have the names, meanings and errors of the port's, without the ``await``. It may look while
    workers write, never writes, and needs no closing. The factory raises `Unavailable` with the reason
    ``missing`` when there is no store yet.

    A reader may have ``stats()``, which gives a struct of sizes and counts, and ``backup(target)``, which
    writes all that is durable to a new file, whole or not at all.
    """

    def task(self, task: str) -> TaskRow:
        """As `Store.task`."""

    def tasks(
        self,
        *,
        status: Status | None = None,
        agent: str | None = None,
        parent: str | None = None,
        root: str | None = None,
        base: str | None = None,
        after: TaskRow | None = None,
        limit: int = 100,
    ) -> list[TaskRow]:
        """As `Store.tasks`."""

    def read(
        self,
        task: str,
        after: int = 0,
        *,
        through: int | None = None,
        limit: int | None = None,
        only: Collection[str] | None = None,
    ) -> list[Line]:
        """As `Store.read`."""

    def messages(self, task: str, after: int = 0, *, through: int | None = None) -> list[tuple[int, bytes]]:
        """As `Store.messages`."""

    def inbox(self, task: str, limit: int = 100) -> list[InboxItem]:
        """As `Store.inbox`."""

    def timers(self, task: str) -> list[Timer]:
        """As `Store.timers`."""

    def snapshot(self, task: str) -> list[SnapshotPart]:
        """As `Store.snapshot`."""

    def read_blob(self, sha256: str) -> bytes | None:
        """As `Store.read_blob`."""


def timer_post(task: str, name: str, gen: int, text: str) -> Post:
    """The post that a store makes, in the same commit, when it fires the timer `name` set at seq `gen`.

    A blank text wakes the task without a message: no model takes one that is blank.
    """
    message = user(text) if text.strip() else None
    return Post(
        task=task,
        key=f"timer:{name}:{gen}",
        kind="timer",
        body=encode_body(TimerFired(name=name, gen=gen), message),
    )
