"""Doing the same to a store and to the model of one, and comparing all that can be seen after each step.

A step says in small numbers what to do; the driver makes calls of them that make sense in the present state,
or that are wrong in one chosen way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

import msgspec

from noeta.core.codec import Line, blob_of, decode
from noeta.core.errors import Fenced, NoetaError
from noeta.core.items import Post
from noeta.core.log import Claim, NewTask, SnapshotPart, Timer
from noeta.host.erasure import tombstone
from noeta.testing.store.model import ModelStore
from noeta.testing.store.observed import observe, same
from noeta.testing.store.world import World, expect, line, lines, mail, new, refused

BLOBS = [blob_of(data) for data in (b"one", b"two", b"three")]
FAULTS = ("fence", "token", "seq", "behind", "gap", "consume")


class Driver:
    """A store and the model, step by step."""

    def __init__(self, world: World) -> None:
        self.world: World = world
        self.model: ModelStore = ModelStore(world.clock)
        self._count = 0
        self._names: dict[int, str] = {}
        self._last: dict[str, tuple[Claim, int, bytes, list[Line], dict[str, Any]]] = {}

    def next(self) -> int:
        """A number never used before."""
        self._count += 1
        return self._count

    async def both(self, what: str, call: Awaitable[Any], model: Callable[[], Any]) -> Any:
        """The result, or the class of the error, of a call to the store, which has to be the model's too."""
        found = await _outcome(call)
        try:
            wanted = model()
        except NoetaError as error:
            wanted = type(error)
        expect(found, wanted, f"the outcome of {what}")
        await self.compare(what)
        return found

    async def compare(self, what: str) -> None:
        """Compare all that can be seen."""
        names = [blob.sha256 for blob in BLOBS]
        same(await observe(self.world.store, names), self.model.seen(), f"after {what}")

    def new_task(self, spec: dict[str, Any], parent: str) -> NewTask:
        """A task as `spec` says."""
        task, base = f"t{spec['task']}", f"t{spec['base']}" if spec["base"] is not None else ""
        rows = {row.task: row for row in self.model.rows}
        through = max(rows[base].last_seq - spec["back"], 0) if base in rows else 0
        root = rows[parent].root if parent in rows else task
        key = f"key{spec['key']}" if parent and spec["key"] else ""
        if task in rows and any((row.parent, row.key) == (parent, key) for row in self.model.rows):
            # Which of two tasks a new one doubles, by its id or by its key, is left to the store.
            key = ""
        return new(
            task,
            root=root,
            parent=parent,
            key=key,
            base=base,
            through=through,
            agent=spec["agent"],
            queue=spec["queue"],
            version=spec["version"],
            lines=lines(through + (spec["back"] == 2 and not base), 1),
            posts=[mail(task, f"k{key}") for key in spec["posts"]],
            blobs=BLOBS[: spec["blobs"]],
        )

    async def create(self, spec: dict[str, Any], parent: int | None) -> None:
        """Create a task."""
        made = self.new_task(spec, "" if parent is None else f"t{parent}")
        await self.both("create", self.world.store.create(made), lambda: self.model.create(made))

    async def post(self, task: int, key: int, kind: str) -> None:
        """Post an item, with a key that may have been used."""
        post = mail(f"t{task}", f"k{key}", kind, f"body {self.next()}".encode())
        await self.both("post", self.world.store.post(post), lambda: self.model.post(post))

    def worker(self, number: int) -> str:
        """The present name of a worker. It changes when the worker has given up all it held.

        Whether such a worker still has a lease is left to the store.
        """
        name = self._names.get(number, "")
        if not name or not (self.model.holds_any(name) or self.model.ran_out(name)):
            name = self._names[number] = f"w{number}.{self.next()}"
        return name

    async def claim(
        self,
        number: int,
        lease: float,
        limit: int,
        queues: Collection[str] | None,
        agents: Collection[str] | None,
        task: int | None,
        version: int,
    ) -> list[Claim]:
        """Claim. Which of the tasks it gets when there are more than its limit is left to the store."""
        worker, name = self.worker(number), None if task is None else f"t{task}"
        call = self.world.store.claim(
            worker, lease=lease, limit=limit, queues=queues, agents=agents, task=name, version=version
        )
        if self.model.ran_out(worker):
            await refused(call, Fenced, "a claim of a worker whose lease ran out")
            del self._names[number]
            await self.compare("a claim refused")
            return []
        claimable = self.model.claimable(queues, agents, name, version)
        found: list[Claim] = await _outcome(call)
        tasks = {claim.task for claim in found}
        if not tasks <= set(claimable) or not len(tasks) == len(found) == min(limit, len(claimable)):
            raise AssertionError(f"{limit} of {claimable} could be claimed, and {found} were")
        for claim in found:
            expect(claim, self.model.claimed(claim.task, worker, claim.fence, claim.token), "a claim")
        if not found and self.model.holds_any(worker):
            # Whether a claim that takes nothing extends the lease is left to the store.
            expect(await self.world.store.renew(worker, lease), True, "a renewal in time")
        if self.model.holds_any(worker):
            self.model.lease(worker, lease)
        await self.compare("claim")
        return found

    async def renew(self, number: int, lease: float) -> None:
        """Renew the lease of a worker that has one, or had."""
        worker = self.worker(number)
        if self.model.holds_any(worker) or self.model.ran_out(worker):
            in_time = not self.model.ran_out(worker)
            expect(await self.world.store.renew(worker, lease), in_time, "a renewal")
            if in_time:
                self.model.lease(worker, lease)
            await self.compare("renew")

    async def usable(self, claim: Claim, stale: bool) -> Claim:
        """This claim if it may be `stale`, else a valid one: of the same task, of another, or a new one."""
        if stale:
            return claim
        if not self.model.claims:
            await self.claim(0, 30.0, 3, None, None, None, 3)
        same_task = [other for other in self.model.claims if other.task == claim.task]
        return [*same_task, *self.model.claims, claim][0]

    async def release(self, claim: Claim, stale: bool) -> None:
        """Give a claim up, twice."""
        claim = await self.usable(claim, stale)
        await self.both("release", self.world.store.release(claim), lambda: self.model.release(claim))
        await self.both("release again", self.world.store.release(claim), lambda: None)

    async def append(self, claim: Claim, stale: bool, fault: str, spec: dict[str, Any]) -> None:
        """Append."""
        claim = await self.usable(claim, stale)
        rows = [row for row in self.model.rows if row.task == claim.task]
        seq, now = rows[0].last_seq if rows else 0, self.world.clock.now()
        written = lines(seq, spec["lines"])
        unread = [item.n for item in self.model.unread(claim.task)]
        consume = unread[: spec["consume"]]
        match fault:
            case "fence":
                claim = msgspec.structs.replace(claim, fence=claim.fence - 1)
            case "token":
                claim = msgspec.structs.replace(claim, token=bytes(16))
            case "seq":
                seq, written = seq + 1, lines(seq + 1, len(written))
            case "behind":
                seq, written = seq - 1, lines(seq - 1, len(written))
            case "gap":
                written = [*written, line(seq + len(written) + 2)]
            case "consume":
                consume = [*consume, (unread[-1] if unread else 0) + 1]
        spawn = [self.new_task(child, claim.task) for child in spec["spawn"]]
        fresh = {child.task for child in spawn}
        timers = {name: (offset, text) for name, offset, text in spec["timers"]}
        step = {
            "consume": consume,
            "spawn": spawn,
            # Whether a child of this append gets a post of this append is left to the store.
            "posts": [post for post in map(_post, spec["posts"]) if post.task not in fresh],
            "blobs": BLOBS[: spec["blobs"]],
            "set_timers": [
                Timer(name=name, gen=self.next(), at=now + offset + self.next() / 1024, text=text)
                for name, (offset, text) in timers.items()
            ],
            "clear_timers": [name for name in spec["clear"] if name not in timers],
            "status": spec["status"],
            "reason": spec["reason"],
            "retry_at": None if spec["retry"] is None else now + spec["retry"] + self.next() / 1024,
            "release": spec["release"],
            "progress": spec["progress"],
            "version": spec["version"],
            "snapshot": [
                SnapshotPart(name=name, fingerprint="f", seq=seq, data=b"%d" % self.next())
                for name in spec["parts"]
            ],
        }
        self._last[claim.task] = (claim, seq, b"append %d" % self.next(), written, step)
        await self.write("append", claim.task)

    async def retry(self, claim: Claim) -> None:
        """Repeat the last append that was tried for the claim's task, as after a lost answer."""
        if claim.task in self._last:
            await self.write("an append repeated", claim.task)

    async def write(self, what: str, task: str) -> None:
        """Append what was prepared last for the task."""
        claim, seq, append_id, written, step = self._last[task]
        done = (task, append_id) in self.model.appends
        call = self.world.append(claim, seq, append_id, written, **step)

        def model() -> Any:
            return _report(self.model.append(claim, seq, append_id, written, **step), done)

        async def store() -> Any:
            return _report(await call, done)

        await self.both(what, store(), model)

    async def purge(self, claim: Claim, stale: bool, back: Sequence[int], blobs: int) -> None:
        """Take out some of the newest records, or one that is not there."""
        claim = await self.usable(claim, stale)
        rows = [row for row in self.model.rows if row.task == claim.task]
        seqs = {rows[0].last_seq - steps for steps in back} if rows else set()
        stones = [tombstone(decode(line(seq)))[0] for seq in sorted(seqs)]
        names = [blob.sha256 for blob in BLOBS[:blobs]]
        call = self.world.store.purge(claim, stones, names)
        await self.both("purge", call, lambda: self.model.purge(claim, stones, names))

    async def pass_time(self, seconds: float, jump: float) -> None:
        """Let time pass, and set the wall clock."""
        self.world.clock.advance(seconds)
        self.world.clock.jump(jump)
        await self.compare("time passed")

    async def fire_timers(self, limit: int) -> None:
        """Fire what is due."""
        call = self.world.store.fire_timers(limit)
        await self.both("fire_timers", call, lambda: self.model.fire_timers(limit))

    async def sweep(self) -> None:
        """Delete all that has ended. What became free by a deletion may go with it or at the next call.

        Whether a tree goes while a worker holds one of its tasks is left to the store, so none does.
        """
        ended = {row.task for row in self.model.rows if row.status == "ended"}
        for claim in [claim for claim in self.model.claims if claim.task in ended]:
            await self.release(claim, stale=True)
        gone: list[str] = []
        while swept := await self.world.store.sweep(1e12):
            gone += swept
        await self.both("sweep", _given(sorted(gone)), lambda: sorted(self.model.sweep_ended()))

    async def read(
        self,
        task: int,
        after: int,
        through: int | None,
        limit: int | None,
        only: Collection[str] | None,
    ) -> None:
        """Read a part of a log, and its messages."""
        name, model = f"t{task}", self.model
        call = self.world.store.read(name, after, through=through, limit=limit, only=only)
        await self.both("read", call, lambda: model.read(name, after, through, limit, only))
        bare = self.world.store.messages(name, after, through=through)
        await self.both("messages", bare, lambda: model.messages(name, after, through))


def _post(spec: tuple[int, int, str]) -> Post:
    task, key, kind = spec
    return mail(f"t{task}", f"k{key}", kind)


def _report(done: Any, repeated: bool) -> tuple[object, ...]:
    """What an append reports; a repeated one need not know what its first call delivered."""
    return (done.last_seq,) if repeated else (done.last_seq, list(done.undelivered), list(done.existing))


async def _given(value: Any) -> Any:
    return value


async def _outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except NoetaError as error:
        return type(error)
