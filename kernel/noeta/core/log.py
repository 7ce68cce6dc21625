"""What the kernel asks of a store: one append carries all that a step makes durable.

The whole port, with everything that hosts and workers ask, is `noeta.toolkit.store.Store`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from noeta.core.codec import Blob, Line
from noeta.core.items import Post


class Claim(Struct, frozen=True, kw_only=True):
    """The right of one worker to write to a task.

    `fence` grows with every claim of the task; `token` is 16 random bytes, so that a fence number issued
    twice (after a failover that lost a claim) never lets two workers in. `attempts` counts claims since the
    task last made progress that were not given up, this one included. `unreleased`: so did the claim right
    before this one end, and its worker may have died.
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


class Log(Protocol):
    """The part of a store that the holder of a claim uses."""

    async def append(self, claim: Claim, append: Append) -> Appended:
        """Write one step of a claimed task, all of it or nothing.

        Repeating the task's last append, as after `Unavailable`, writes nothing and returns the same
        `last_seq`, also when the claim is gone by then. It may come while the first call is still under way,
        and need not tell `undelivered` and `existing` again.

        Raises `Fenced` when `claim` is not the newest, `Conflict` when the log is not at `expected_seq`, the
        lines leave a gap, a row to consume is not the oldest unconsumed one, or the inbox is not empty when
        it has to be. A task to spawn may raise what `create` raises, save for `Duplicate`.
        """

    async def inbox(self, task: str, limit: int = 100) -> list[InboxItem]:
        """The oldest unconsumed items.

        A limit, here and elsewhere, may be of any size; below 1 gives nothing.
        """
