"""The store port as a reference: flat lists, searched from the front, and no care for speed.

It is written to be compared with a store, so it shares no idea with one. It issues no claims: it says which
tasks may be claimed and takes over what the store chose.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from noeta.core.codec import Blob, Line
from noeta.core.errors import Conflict, Fenced
from noeta.core.items import Post
from noeta.core.log import Appended, Claim, InboxItem, NewTask, SnapshotPart, Timer
from noeta.core.ports import Clock
from noeta.testing.store.observed import Seen, SeenTask
from noeta.toolkit.errors import Duplicate, TaskOver, UnknownTask
from noeta.toolkit.store import TaskRow, timer_post


class Accepted(Struct):
    """A post that a task accepted, for ever."""

    post: Post
    n: int
    consumed: bool = False


class ModelStore:
    """What a store has to look like after the same calls."""

    def __init__(self, clock: Clock) -> None:
        self.clock: Clock = clock
        self.rows: list[TaskRow] = []
        self.records: list[tuple[str, Line]] = []
        self.accepted: list[Accepted] = []
        self.timers: list[tuple[str, Timer]] = []
        self.parts: list[tuple[str, SnapshotPart]] = []
        self.holds: list[tuple[str, Blob]] = []
        self.appends: list[tuple[str, bytes]] = []
        # The claims neither given up nor replaced, and when each worker's lease ends.
        self.claims: list[Claim] = []
        self.leases: list[tuple[str, float]] = []

    def row(self, task: str) -> TaskRow:
        """The row of a task."""
        for row in self.rows:
            if row.task == task:
                return row
        raise UnknownTask(task)

    def change(self, task: str, **fields: Any) -> None:
        """Change fields of a row. A retry belongs to a wait, a reason to a wait or an end."""
        place = self.rows.index(self.row(task))
        row = msgspec.structs.replace(self.rows[place], **fields)
        if row.status != "waiting":
            row = msgspec.structs.replace(row, retry_at=None)
        if row.status in {"ready", "running"}:
            row = msgspec.structs.replace(row, reason="")
        self.rows[place] = row

    def unread(self, task: str) -> list[Accepted]:
        """The posts that a task has not consumed."""
        return [item for item in self.accepted if item.post.task == task and not item.consumed]

    def check_lines(self, lines: Sequence[Line], after: int) -> None:
        """Raise `Conflict` when the lines do not follow a seq one by one."""
        for line in lines:
            after += 1
            if line.seq != after:
                raise Conflict("gap")

    def check_new(self, new: NewTask) -> None:
        """Raise what stands against a new task, but for its being there already."""
        for other in (new.parent, new.base):
            if other:
                self.row(other)
        if new.through and (not new.base or self.row(new.base).last_seq < new.through):
            raise Conflict("through")
        self.check_lines(new.lines, new.through)

    def existing(self, new: NewTask) -> list[str]:
        """The tasks that are this one already, by its id or by its spawn key."""
        return [
            row.task
            for row in self.rows
            if row.task == new.task or (new.key and (row.parent, row.key) == (new.parent, new.key))
        ]

    def create(self, new: NewTask) -> None:
        """As `Store.create`."""
        self.check_new(new)
        if self.existing(new):
            raise Duplicate("task")
        now = self.clock.now()
        names = {
            name: getattr(new, name)
            for name in "task root parent key agent queue base through version".split()
        }
        self.rows.append(
            TaskRow(
                **names,
                status="waiting",
                reason="idle",
                last_seq=new.through + len(new.lines),
                created_at=now,
                updated_at=0.0,
                retry_at=None,
                unread=0,
                fence=0,
                worker="",
                attempts=0,
            )
        )
        self.records += [(new.task, line) for line in new.lines]
        self.holds += [(new.task, blob) for blob in new.blobs]
        for post in new.posts:
            self.deliver(post)

    def deliver(self, post: Post) -> bool:
        """Whether a post is, or was, accepted by its task."""
        rows = [row for row in self.rows if row.task == post.task]
        if not rows or (rows[0].status == "ended" and post.kind != "erase"):
            return False
        mine = [item for item in self.accepted if item.post.task == post.task]
        if all(item.post.key != post.key for item in mine):
            self.accepted.append(Accepted(post, len(mine) + 1))
            if rows[0].status == "waiting":
                self.change(post.task, status="ready")
        return True

    def post(self, post: Post) -> None:
        """As `Store.post`."""
        self.row(post.task)
        if any((item.post.task, item.post.key) == (post.task, post.key) for item in self.accepted):
            raise Duplicate("key")
        if not self.deliver(post):
            raise TaskOver(post.task)

    def check_claim(self, claim: Claim) -> None:
        """Raise `Fenced` unless this is the task's newest claim, not given up."""
        if not any(
            (held.task, held.fence, held.token) == (claim.task, claim.fence, claim.token)
            for held in self.claims
        ):
            raise Fenced("claim")

    def append(
        self, claim: Claim, expected_seq: int, append_id: bytes, lines: Sequence[Line], **step: Any
    ) -> Appended:
        """As `Store.append`."""
        row = self.row(claim.task)
        if [append for append in self.appends if append[0] == claim.task][-1:] == [(claim.task, append_id)]:
            return Appended(last_seq=row.last_seq)
        self.check_claim(claim)
        if row.last_seq != expected_seq:
            raise Conflict("seq")
        self.check_lines(lines, expected_seq)
        unread, consume = self.unread(claim.task), step.get("consume", [])
        if [item.n for item in unread][: len(consume)] != list(consume):
            raise Conflict("consume")
        status = step.get("status", "running")
        if status != "running" and len(consume) < len(unread):
            raise Conflict("inbox")
        for new in step.get("spawn", []):
            self.check_new(new)

        self.appends.append((claim.task, append_id))
        self.records += [(claim.task, line) for line in lines]
        self.holds += [(claim.task, blob) for blob in step.get("blobs", [])]
        for item in unread[: len(consume)]:
            item.consumed = True
        for timer in step.get("set_timers", []):
            self.drop_timer(claim.task, timer.name)
            self.timers.append((claim.task, timer))
        for name in step.get("clear_timers", []):
            self.drop_timer(claim.task, name)
        changed = {"last_seq": expected_seq + len(lines), "version": max(row.version, step.get("version", 1))}
        if row.status != "ended":
            waits = {"reason": step.get("reason", ""), "retry_at": step.get("retry_at")}
            changed |= {"status": status} | (waits if status != "running" else {})
        if step.get("progress"):
            changed["attempts"] = 0
        self.change(claim.task, **changed)
        if self.row(claim.task).status == "ended":
            self.timers = [(task, timer) for task, timer in self.timers if task != claim.task]
        for part in step.get("snapshot", []):
            self.parts = [
                (task, old) for task, old in self.parts if (task, old.name) != (claim.task, part.name)
            ]
            self.parts.append((claim.task, part))
        if step.get("release"):
            self.release(claim)
        existing: list[str] = []
        for new in step.get("spawn", []):
            existing += self.existing(new)[:1]
            if not self.existing(new):
                self.create(new)
        undelivered = [post for post in step.get("posts", []) if not self.deliver(post)]
        return Appended(last_seq=changed["last_seq"], undelivered=undelivered, existing=existing)

    def drop_timer(self, task: str, name: str) -> None:
        """Forget a timer, if there is one of that name."""
        self.timers = [entry for entry in self.timers if (entry[0], entry[1].name) != (task, name)]

    def ran_out(self, worker: str) -> bool:
        """Whether the worker's lease ran out."""
        return any(name == worker and end < self.clock.monotonic() for name, end in self.leases)

    def holds_any(self, worker: str) -> bool:
        """Whether the worker has a claim that was neither given up nor replaced."""
        return any(claim.worker == worker for claim in self.claims)

    def claimable(
        self,
        queues: Collection[str] | None,
        agents: Collection[str] | None,
        task: str | None,
        version: int,
    ) -> list[str]:
        """The tasks that need a worker and match."""
        found: list[str] = []
        for row in self.rows:
            holders = [claim.worker for claim in self.claims if claim.task == row.task]
            wants = row.status == "ready" or (row.status == "ended" and bool(self.unread(row.task)))
            needs = self.ran_out(holders[0]) if holders else wants
            right = (queues is None or row.queue in queues) and (agents is None or row.agent in agents)
            if needs and right and task in {None, row.task} and row.version <= version:
                found.append(row.task)
        return found

    def claimed(self, task: str, worker: str, fence: int, token: bytes) -> Claim:
        """Take over a claim that the store made: what else it has to say."""
        row = self.row(task)
        if fence <= row.fence:
            raise AssertionError(f"the fence {fence} of {task!r} is not above {row.fence}")
        before = [claim for claim in self.claims if claim.task == task]
        claim = Claim(
            task=task,
            fence=fence,
            token=token,
            worker=worker,
            attempts=row.attempts + 1,
            unreleased=bool(before),
        )
        self.claims = [other for other in self.claims if other.task != task] + [claim]
        status = "running" if row.status == "ready" else row.status
        self.change(task, fence=fence, worker=worker, attempts=claim.attempts, status=status)
        return claim

    def lease(self, worker: str, seconds: float) -> None:
        """The worker's lease, if it holds anything, ends that many seconds from now."""
        self.leases = [entry for entry in self.leases if entry[0] != worker]
        self.leases.append((worker, self.clock.monotonic() + seconds))

    def release(self, claim: Claim) -> None:
        """As `Store.release`."""
        try:
            self.check_claim(claim)
        except Fenced:
            return
        self.claims = [other for other in self.claims if other.task != claim.task]
        self.change(claim.task, worker="", attempts=max(self.row(claim.task).attempts - 1, 0))
        if self.row(claim.task).status == "running":
            self.change(claim.task, status="ready")
        self.forget_idle()

    def forget_idle(self) -> None:
        """A worker that holds nothing has no lease, but for one that ran out: that stays so."""
        self.leases = [entry for entry in self.leases if self.holds_any(entry[0]) or self.ran_out(entry[0])]

    def wakes(self) -> list[tuple[float, str, Timer | None]]:
        """What wakes a waiting task and when, earliest first."""
        found: list[tuple[float, str, Timer | None]] = [
            (row.retry_at, row.task, None)
            for row in self.rows
            if row.status == "waiting" and row.retry_at is not None
        ]
        for task, timer in self.timers:
            row = self.row(task)
            if row.status == "waiting" and (row.reason == "idle" or not timer.text):
                found.append((timer.at, task, timer))
        return sorted(found, key=lambda wake: wake[0])

    def fire_timers(self, limit: int) -> int:
        """As `Store.fire_timers`."""
        due = [wake for wake in self.wakes() if wake[0] <= self.clock.now()][:limit]
        for _, task, timer in due:
            if timer is None:
                self.change(task, status="ready")
            else:
                self.drop_timer(task, timer.name)
                self.deliver(timer_post(task, timer.name, timer.gen, timer.text))
        return len(due)

    def purge(self, claim: Claim, stones: Sequence[Line], blobs: Collection[str]) -> None:
        """As `Store.purge`."""
        self.row(claim.task)
        self.check_claim(claim)
        seqs = [line.seq for task, line in self.records if task == claim.task]
        for stone in stones:
            if stone.seq not in seqs:
                raise Conflict("seq")
        new = {stone.seq: stone for stone in stones}
        self.records = [
            (task, new.get(line.seq, line) if task == claim.task else line) for task, line in self.records
        ]
        self.parts = [(task, part) for task, part in self.parts if task != claim.task]
        self.holds = [
            (task, blob) for task, blob in self.holds if task != claim.task or blob.sha256 not in blobs
        ]

    def sweep_ended(self) -> list[str]:
        """Delete every tree that has ended and is no base, again and again: the tasks deleted."""
        gone: list[str] = []
        for root in {row.root for row in self.rows}:
            tree = [row.task for row in self.rows if row.root == root]
            over = all(self.row(task).status == "ended" for task in tree)
            if over and not any(row.base in tree and row.root != root for row in self.rows):
                gone += tree
        if not gone:
            return []
        self.rows = [row for row in self.rows if row.task not in gone]
        self.records = [entry for entry in self.records if entry[0] not in gone]
        self.accepted = [item for item in self.accepted if item.post.task not in gone]
        self.parts = [entry for entry in self.parts if entry[0] not in gone]
        self.holds = [entry for entry in self.holds if entry[0] not in gone]
        self.claims = [claim for claim in self.claims if claim.task not in gone]
        self.appends = [entry for entry in self.appends if entry[0] not in gone]
        self.forget_idle()
        return gone + self.sweep_ended()

    def read(
        self,
        task: str,
        after: int,
        through: int | None,
        limit: int | None,
        only: Collection[str] | None,
    ) -> list[Line]:
        """As `Store.read`."""
        self.row(task)
        found: list[Line] = []
        for owner, line in self.records:
            names = (line.name.split(".")[0], line.name)
            if owner != task or line.seq <= after or (through is not None and line.seq > through):
                continue
            if only is None or any(name in only for name in names):
                found.append(line)
        return found if limit is None else found[:limit]

    def messages(self, task: str, after: int, through: int | None) -> list[tuple[int, bytes]]:
        """As `Store.messages`."""
        found = self.read(task, after, through, None, None)
        return [(line.seq, line.data) for line in found if line.message]

    def seen(self) -> Seen:
        """All that can be seen of it."""
        tasks: dict[str, SeenTask] = {}
        for row in self.rows:
            unread = self.unread(row.task)
            tasks[row.task] = SeenTask(
                row=msgspec.structs.replace(row, unread=len(unread)),
                lines=[line for task, line in self.records if task == row.task],
                inbox=[
                    InboxItem(n=item.n, key=item.post.key, kind=item.post.kind, body=item.post.body)
                    for item in unread
                ],
                timers=sorted((t for task, t in self.timers if task == row.task), key=lambda t: t.name),
                parts={part.name: part for task, part in self.parts if task == row.task},
            )
        wakes = self.wakes()
        return Seen(
            tasks=tasks,
            blobs={blob.sha256: blob.data for _, blob in self.holds},
            next_wake=wakes[0][0] if wakes else None,
        )
