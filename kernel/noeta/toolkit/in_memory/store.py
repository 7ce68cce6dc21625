"""The store of one process: everything in dictionaries, nothing on disk.

For tests, for tools that need no durability, and as the shortest complete reading of the store port. It
belongs to one event loop. No method waits between looking and writing, so each is atomic.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from heapq import merge

import anyio
import anyio.lowlevel

from noeta.core.codec import Line
from noeta.core.errors import Conflict, Fenced
from noeta.core.items import Post
from noeta.core.log import Append, Appended, Claim, InboxItem, NewTask, SnapshotPart, Timer
from noeta.core.ports import Clock, Ids
from noeta.core.records import VERSION
from noeta.toolkit.errors import Duplicate, TaskOver, UnknownTask
from noeta.toolkit.in_memory.leases import Leases
from noeta.toolkit.in_memory.rows import Blobs, TaskData, check_storable, upto
from noeta.toolkit.in_memory.watches import Change, Signal, Watches
from noeta.toolkit.store import Status, Store, TaskRow, timer_post
from noeta.toolkit.system import RandomIds, SystemClock


class InMemoryStore(Store):
    """A `Store` without durability. `clock` and `ids` are the machine's when not given."""

    def __init__(self, clock: Clock | None = None, ids: Ids | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._ids: Ids = ids or RandomIds()
        self._tasks: dict[str, TaskData] = {}
        self._children: dict[tuple[str, str], str] = {}
        self._blobs = Blobs()
        # The tasks that have a timer or a retry to wait for.
        self._timed: dict[str, None] = {}
        # Unclaimed tasks that need a worker and since when, those that wait longest first.
        self._wanting: dict[str, float] = {}
        self._leases = Leases(self._clock)
        self._watches = Watches(self._clock)

    async def create(self, new: NewTask) -> None:
        await anyio.lowlevel.checkpoint()
        check_storable(new)
        self._check_new(new)
        if (there := self._existing(new)) is not None:
            raise Duplicate(f"there is a task {there!r} with this id or spawn key", reason="task")
        self._create(new)

    async def append(self, claim: Claim, append: Append) -> Appended:
        await anyio.lowlevel.checkpoint()
        check_storable(append)
        row = self._row(claim.task)
        if append.id == row.last_append:
            return Appended(last_seq=row.last_seq)
        self._check_claim(row, claim)
        if row.last_seq != append.expected_seq:
            raise Conflict(
                f"the log of {claim.task!r} is at seq {row.last_seq}, not {append.expected_seq}", reason="seq"
            )
        _check_dense(append.lines, append.expected_seq)
        if list(append.consume) != list(row.inbox)[: len(append.consume)]:
            raise Conflict("the inbox rows to consume are not the oldest ones left", reason="consume")
        if append.status != "running" and len(row.inbox) > len(append.consume):
            raise Conflict(f"the inbox of {claim.task!r} holds more items", reason="inbox")
        goes_on = row.status == append.status == "running" and not append.release
        for new in append.spawn:
            self._check_new(new)

        row.last_append = append.id
        row.lines += append.lines
        row.version = max(row.version, append.version)
        for n in append.consume:
            del row.inbox[n]
        self._blobs.hold(row.new.task, append.blobs)
        row.timers.update({timer.name: timer for timer in append.set_timers})
        for name in append.clear_timers:
            row.timers.pop(name, None)
        if row.status != "ended":
            row.move(append.status, append.reason, append.retry_at)
        if row.status == "ended":
            row.timers.clear()
        if append.progress:
            row.attempts = 0
        row.parts.update({part.name: part for part in append.snapshot})
        if append.release:
            self._release(row)
        existing: list[str] = []
        for new in append.spawn:
            if (there := self._existing(new)) is None:
                self._create(new)
            else:
                existing.append(there)
        undelivered = [post for post in append.posts if not self._delivered(post)]
        self._changed(row, "log" if goes_on else "work")
        return Appended(last_seq=row.last_seq, undelivered=undelivered, existing=existing)

    async def post(self, post: Post) -> None:
        await anyio.lowlevel.checkpoint()
        check_storable(post)
        row = self._row(post.task)
        if post.key in row.keys:
            raise Duplicate(f"task {post.task!r} has had a post with key {post.key!r}", reason="key")
        if not self._delivered(post):
            raise TaskOver(post.task)

    async def inbox(self, task: str, limit: int = 100) -> list[InboxItem]:
        await anyio.lowlevel.checkpoint()
        return upto(limit, self._row(task).inbox.values())

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
        await anyio.lowlevel.checkpoint()
        check_storable(worker)
        if self._leases.ran_out(worker):
            raise Fenced(f"the lease of worker {worker!r} ran out", reason="lease")
        fitting = (
            row
            for row in self._waiting(task)
            if (queues is None or row.new.queue in queues)
            and (agents is None or row.new.agent in agents)
            and row.version <= version
        )
        claims = [self._claim(row, worker) for row in upto(limit, fitting)]
        self._leases.extend(worker, lease)
        return claims

    async def renew(self, worker: str, lease: float = 30.0) -> bool:
        await anyio.lowlevel.checkpoint()
        if self._leases.ran_out(worker):
            return False
        self._leases.extend(worker, lease)
        return True

    async def release(self, claim: Claim) -> None:
        await anyio.lowlevel.checkpoint()
        row = self._tasks.get(claim.task)
        if row is not None and (row.fence, row.token) == (claim.fence, claim.token):
            self._release(row)
            self._changed(row)

    async def read(
        self,
        task: str,
        after: int = 0,
        *,
        through: int | None = None,
        limit: int | None = None,
        only: Collection[str] | None = None,
    ) -> list[Line]:
        await anyio.lowlevel.checkpoint()
        lines = self._row(task).read(after, through, only)
        return upto(limit, lines)

    async def messages(
        self, task: str, after: int = 0, *, through: int | None = None
    ) -> list[tuple[int, bytes]]:
        await anyio.lowlevel.checkpoint()
        return [(line.seq, line.data) for line in self._row(task).read(after, through) if line.message]

    async def read_blob(self, sha256: str) -> bytes | None:
        await anyio.lowlevel.checkpoint()
        return self._blobs.read(sha256)

    async def snapshot(self, task: str) -> list[SnapshotPart]:
        await anyio.lowlevel.checkpoint()
        return list(self._row(task).parts.values())

    async def fire_timers(self, limit: int = 100) -> int:
        await anyio.lowlevel.checkpoint()
        due = [wake for wake in self._wakes() if wake[0] <= self._clock.now()][: max(limit, 0)]
        for _, row, timer in due:
            if timer is None:
                row.move("ready")
            else:
                del row.timers[timer.name]
                self._delivered(timer_post(row.new.task, timer.name, timer.gen, timer.text))
            self._changed(row)
        return len(due)

    async def next_wake(self) -> float | None:
        await anyio.lowlevel.checkpoint()
        return next((at for at, _, _ in self._wakes()), None)

    async def task(self, task: str) -> TaskRow:
        await anyio.lowlevel.checkpoint()
        return self._row(task).row()

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
        await anyio.lowlevel.checkpoint()
        wanted = {"status": status, "agent": agent, "parent": parent, "root": root, "base": base}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        rows = sorted((row.row() for row in self._tasks.values()), key=_age)
        return [
            row
            for row in rows
            if all(getattr(row, name) == value for name, value in wanted.items())
            and (after is None or _age(row) > _age(after))
        ][: max(limit, 0)]

    async def timers(self, task: str) -> list[Timer]:
        await anyio.lowlevel.checkpoint()
        return sorted(self._row(task).timers.values(), key=lambda timer: timer.name)

    async def purge(self, claim: Claim, stones: Sequence[Line], blobs: Collection[str]) -> None:
        await anyio.lowlevel.checkpoint()
        row = self._row(claim.task)
        self._check_claim(row, claim)
        for stone in stones:
            if not row.new.through < stone.seq <= row.last_seq:
                raise Conflict(f"the log of {claim.task!r} has no seq {stone.seq} of its own", reason="seq")
        for stone in stones:
            row.lines[stone.seq - row.new.through - 1] = stone
        row.parts.clear()
        self._blobs.let_go(claim.task, blobs)

    async def sweep(self, ended_before: float, limit: int = 100) -> list[str]:
        await anyio.lowlevel.checkpoint()
        trees: dict[str, list[TaskData]] = {}
        needed: set[str] = set()
        for row in self._tasks.values():
            trees.setdefault(row.new.root, []).append(row)
            base = self._tasks[row.new.base].new.root if row.new.base else row.new.root
            if base != row.new.root:
                needed.add(base)
        gone: list[str] = []
        for root, rows in trees.items():
            over = all(row.status == "ended" and row.updated_at < ended_before for row in rows)
            held = any(self._leases.lives(row.worker) for row in rows)
            if over and not held and root not in needed and limit > 0:
                limit -= 1
                gone += [row.new.task for row in rows]
        for name in gone:
            row = self._tasks.pop(name)
            self._release(row)
            self._wanting.pop(name, None)
            self._timed.pop(name, None)
            self._children.pop((row.new.parent, row.new.key), None)
            self._blobs.let_go(name)
        return gone

    @asynccontextmanager
    async def watch(self, task: str | None = None, *, log: bool = True) -> AsyncIterator[Signal]:
        with self._watches.watch(task, log=log) as signal:
            yield signal

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()

    def _row(self, task: str) -> TaskData:
        row = self._tasks.get(task)
        if row is None:
            raise UnknownTask(task)
        return row

    def _check_claim(self, row: TaskData, claim: Claim) -> None:
        if (row.fence, row.token) != (claim.fence, claim.token):
            raise Fenced(f"task {claim.task!r} was claimed again or given up", reason="claim")

    def _check_new(self, new: NewTask) -> None:
        if new.parent:
            self._row(new.parent)
        if new.through > (self._row(new.base).last_seq if new.base else 0):
            raise Conflict(f"the base of {new.task!r} has no seq {new.through}", reason="through")
        _check_dense(new.lines, new.through)

    def _existing(self, new: NewTask) -> str | None:
        """The id of the task that `new` would double."""
        if new.task in self._tasks:
            return new.task
        return self._children.get((new.parent, new.key)) if new.key else None

    def _create(self, new: NewTask) -> None:
        row = TaskData(new, self._clock.now())
        self._tasks[new.task] = row
        if new.key:
            self._children[(new.parent, new.key)] = new.task
        row.lines += new.lines
        self._blobs.hold(new.task, new.blobs)
        for post in new.posts:
            self._delivered(post)
        self._changed(row)

    def _delivered(self, post: Post) -> bool:
        """Put `post` where it belongs; False when it cannot get there. A key seen before is passed over."""
        row = self._tasks.get(post.task)
        if row is None or (row.status == "ended" and post.kind != "erase"):
            return False
        if post.key not in row.keys:
            row.accept(post)
            self._changed(row)
        return True

    def _waiting(self, task: str | None) -> Iterator[TaskData]:
        """Those that need a worker, or that one if it does, those that wait longest first."""
        if task is None:
            wanting = ((since, name) for name, since in self._wanting.items())
            for _, name in merge(wanting, self._leases.lost(), key=_since):
                yield self._tasks[name]
        elif task in self._wanting or any(task == name for _, name in self._leases.lost()):
            yield self._tasks[task]

    def _claim(self, row: TaskData, worker: str) -> Claim:
        unreleased = row.token is not None
        if unreleased:
            self._leases.give_up(row.worker, row.new.task)
        row.fence += 1
        row.attempts += 1
        row.token, row.worker = self._ids.token(), worker
        if row.status == "ready":
            row.move("running")
        self._leases.take(worker, row.new.task)
        self._changed(row, "row")
        return Claim(
            task=row.new.task,
            fence=row.fence,
            token=row.token,
            worker=worker,
            attempts=row.attempts,
            unreleased=unreleased,
        )

    def _release(self, row: TaskData) -> None:
        if row.token is None:
            return
        self._leases.give_up(row.worker, row.new.task)
        row.token, row.worker = None, ""
        # Who gives a claim up lives, so this one was not lost for nothing.
        row.attempts = max(row.attempts - 1, 0)
        if row.status == "running":
            row.move("ready")

    def _wakes(self) -> list[tuple[float, TaskData, Timer | None]]:
        """Everything that wakes a waiting task, earliest first."""
        timed = [self._tasks[name] for name in self._timed]
        wakes = [(at, row, timer) for row in timed for at, timer in row.due_at()]
        return sorted(wakes, key=lambda wake: wake[0])

    def _changed(self, row: TaskData, change: Change = "work") -> None:
        """Note that a task moved, and tell those who watch it."""
        row.updated_at = self._clock.now()
        name = row.new.task
        if row.token is None and (row.status == "ready" or (row.status == "ended" and row.inbox)):
            self._wanting.setdefault(name, self._clock.monotonic())
        else:
            self._wanting.pop(name, None)
        if row.timers or row.retry_at is not None:
            self._timed[name] = None
        else:
            self._timed.pop(name, None)
        self._watches.mark(name, change)


def _check_dense(lines: Sequence[Line], after: int) -> None:
    if [line.seq for line in lines] != list(range(after + 1, after + 1 + len(lines))):
        raise Conflict(f"the lines do not follow seq {after} without a gap", reason="gap")


def _age(row: TaskRow) -> tuple[float, str]:
    return row.created_at, row.task


def _since(waiting: tuple[float, str]) -> float:
    return waiting[0]
