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

from noeta.core.codec import Blob, Line
from noeta.core.items import Post
from noeta.core.records import VERSION

Status = Literal["ready", "running", "waiting", "ended"]


class Claim(Struct, frozen=True, kw_only=True):
    """The right of one worker to write to a task.

    `fence` grows with every claim of the task; `token` is 16 random bytes, so that a fence number issued
    twice (after a failover that lost a claim) never lets two workers in. `attempts` counts claims since the
    task last made progress, this one included. `unreleased`: the claim before this one was not given up, so
    its worker may have died.
    """

    task: str
    fence: int
    token: bytes
    worker: str
    attempts: int = 1
    unreleased: bool = False


class NewTask(Struct, frozen=True, kw_only=True):
    """A task to create, with its first records and posts, all or nothing.

    `through` is the seq its own records follow: 0, or that of `base` where a continued task begins. `key` is
    the spawn key, unique under `parent` for ever.
    """

    task: str
    agent: str
    root: str
    lines: Sequence[Line]
    posts: Sequence[Post] = ()
    blobs: Sequence[Blob] = ()
    parent: str = ""
    key: str = ""
    queue: str = ""
    base: str = ""
    through: int = 0
    version: int = 1


class TaskRow(Struct, frozen=True, kw_only=True):
    """What a store knows of a task without reading its log. Times are epoch seconds.

    `reason` says what a waiting task waits for, or how an ended one ended, and is empty for others.
    `retry_at` is None unless the task waits. `attempts` counts claims since the task last made progress.
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


class InboxItem(Struct, frozen=True, kw_only=True):
    """One post not consumed yet. `n` counts the task's accepted posts from 1, in order."""

    n: int
    key: str
    kind: str
    body: bytes


class Timer(Struct, frozen=True, kw_only=True):
    """A timer of a task, due at `at` (epoch seconds by the store's clock). `gen` is the seq of the record
    that set it.

    One with `text` fires when the task waits idle, one without in any wait.
    """

    name: str
    gen: int
    at: float
    text: str = ""


class SnapshotPart(Struct, frozen=True, kw_only=True):
    """One part of a snapshot: a cache of what folding through `seq` gave.

    `fingerprint` says by which code.
    """

    name: str
    fingerprint: str
    seq: int
    data: bytes


class Append(Struct, frozen=True, kw_only=True):
    """All that one step of a claimed task makes durable.

    `expected_seq` is where the log is, and `lines` continue it at the next seq. `id` is 16 random bytes: a
    repeat with the same id writes nothing. `consume` are inbox numbers, the oldest unconsumed ones in order;
    their bodies are dropped, their keys stay. A post with a key that its task has accepted is passed over, as
    is a spawned task that exists (by id or by spawn key).

    With status ``waiting`` or ``ended`` nothing may be left in the inbox: then a post that came meanwhile is
    never slept over. A post of this very append to the task itself makes a waiting one ready. `reason` says
    why it waits or how it ended, `retry_at` (epoch seconds) makes a waiting task ready without a post. A task
    that has ended stays so and keeps no timers. `release` gives the claim up in the same commit; a running
    task is then ready.

    `progress` resets the count of attempts, `version` is the newest record version in `lines`. `snapshot`
    parts replace the parts of the same name and may be dropped at any time.
    """

    expected_seq: int
    id: bytes
    lines: Sequence[Line] = ()
    blobs: Sequence[Blob] = ()
    consume: Sequence[int] = ()
    posts: Sequence[Post] = ()
    spawn: Sequence[NewTask] = ()
    set_timers: Sequence[Timer] = ()
    clear_timers: Collection[str] = ()
    status: Literal["running", "waiting", "ended"] = "running"
    reason: str = ""
    retry_at: float | None = None
    release: bool = False
    progress: bool = False
    version: int = 1
    snapshot: Sequence[SnapshotPart] = ()


class Appended(Struct, frozen=True, kw_only=True):
    """What an append did.

    `undelivered` are the posts whose task is unknown or has ended; `existing` the ids of spawned tasks that
    were there already.
    """

    last_seq: int
    undelivered: Sequence[Post] = ()
    existing: Sequence[str] = ()


class Watch(Protocol):
    """A subscription to changes."""

    async def wait(self, timeout: float) -> bool:
        """Wait until something may have changed since the last call (True) or `timeout` seconds passed
        (False).

        A hint: it may come early or twice, but where nothing changes, a call after a few such hints lasts
        its whole time. A change between two calls is never lost.
        """


class Store(Protocol):
    """Where tasks live.

    Every method raises only `UnknownTask`, `TaskOver` and the `StoreError` classes, and `NotStorable` for a
    text with a lone surrogate or a number of more than 64 bits, of which nothing is kept.
    """

    async def create(self, new: NewTask) -> None:
        """Create a task, ready to be claimed when it has a post, else waiting (``idle``).

        Raises `Duplicate` when the id or the spawn key exists, `UnknownTask` for an unknown base or parent,
        and `Conflict` when the lines leave a gap behind `through`, or `through` is not within the base.
        """

    async def append(self, claim: Claim, append: Append) -> Appended:
        """Write one step of a claimed task, all of it or nothing.

        Repeating the task's last append, as after `Unavailable`, writes nothing and returns the same
        `last_seq`, also when the claim is gone by then. It may come while the first call is still under way,
        and need not tell `undelivered` and `existing` again.

        Raises `Fenced` when `claim` is not the newest, `Conflict` when the log is not at `expected_seq`, the
        lines leave a gap, a row to consume is not the oldest unconsumed one, or the inbox is not empty when
        it has to be. A task to spawn may raise what `create` raises, save for `Duplicate`.
        """

    async def post(self, post: Post) -> None:
        """Put an item into a task's inbox; a waiting task becomes ready.

        Raises `Duplicate` when the key was accepted before, whatever the body and also when the task has
        ended, and `TaskOver` when the task has ended and the item is no ``erase``. An ended task with an
        erasure in its inbox can be claimed.
        """

    async def inbox(self, task: str, limit: int = 100) -> list[InboxItem]:
        """The oldest unconsumed items.

        A limit, here and elsewhere, may be of any size; below 1 gives nothing.
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

    def watch(self, task: str | None = None) -> AbstractAsyncContextManager[Watch]:
        """Watch one task's log, inbox and status, or (None) anything that a worker may have to act on."""

    async def aclose(self) -> None:
        """Close. Idempotent; nothing durable depends on it."""
