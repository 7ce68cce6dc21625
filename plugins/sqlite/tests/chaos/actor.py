"""What the processes of the rig do: claim tasks, write to them in every way the port knows, and post.

Every choice comes from a seed. When they are made does not: the processes race each other and are killed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from journal import Journal, entries

from noeta.toolkit.store import (
    Append,
    Blob,
    Claim,
    Conflict,
    Duplicate,
    Fenced,
    InboxItem,
    Line,
    NewTask,
    Post,
    SnapshotPart,
    Store,
    TaskOver,
    TaskRow,
    Timer,
    Unavailable,
    UnknownTask,
)

LEASE = 1.0
ROOTS = 24
Opener = Callable[[Path], Store]


class Actor:
    """One coroutine of a process."""

    def __init__(self, store: Store, journal: Journal, seed: str) -> None:
        self.store, self.journal = store, journal
        self.rng = random.Random(seed)
        self.seed = seed
        self.names = [f"r{number}" for number in range(ROOTS)]
        self.keys: list[tuple[str, str, bytes]] = []
        self.held: list[tuple[Claim, TaskRow]] = []
        self.old: list[Claim] = []
        self._born()

    def _born(self) -> None:
        """Go on under a new name, holding nothing."""
        self.worker = f"w-{self.seed}-{self.rng.getrandbits(32):08x}"
        self.held.clear()

    def odds(self, share: float) -> bool:
        """Whether something happens that happens in this share of the cases."""
        return self.rng.random() < share

    # Posting and creating.

    async def post_something(self) -> None:
        """Post to a task, one time in three with a key that was posted before."""
        if self.keys and self.odds(0.33):
            task, key, body = self.rng.choice(self.keys)
        else:
            task, key = self.rng.choice(self.names), f"key{self.rng.randrange(400)}"
            body = self.rng.randbytes(self.rng.choice([8, 40, 3_000]))
            self.keys = [*self.keys[-50:], (task, key, body)]
        kind = "erase" if self.odds(0.1) else "message"
        post = Post(task=task, key=key, kind=kind, body=body)
        await self._told(self.store.post, "post", post)

    async def create_something(self, name: str) -> None:
        """Create a task that has a post to begin with."""
        line = _line(1, {"create": name})
        post = Post(task=name, key=f"first:{name}", kind="message", body=self.rng.randbytes(8))
        blob = _blob(self.rng)
        new = NewTask(task=name, agent="a", root=name, lines=[line], posts=[post], blobs=[blob])
        await self._told(self.store.create, "create", new)

    async def _told(self, call: Callable[[Any], Any], what: str, given: Any) -> None:
        asked = self.journal.asks(what, given=given)
        try:
            await call(given)
        except (Duplicate, TaskOver, UnknownTask, Unavailable) as refusal:
            self.journal.heard(asked, type(refusal).__name__)
        else:
            self.journal.heard(asked)

    async def look_around(self) -> None:
        """Learn the names of tasks that are alive."""
        status = self.rng.choice(["ready", "running", "waiting", "ended"])
        if rows := await self.store.tasks(status=status, limit=60):
            self.names = [row.task for row in rows]

    # Working.

    async def claim_something(self, limit: int = 2) -> int:
        """Claim up to `limit` tasks; how many there were."""
        asked = self.journal.asks("claim", worker=self.worker)
        try:
            claims = await self.store.claim(self.worker, lease=LEASE, limit=self.rng.randint(1, limit))
        except Fenced:
            self.journal.heard(asked, "Fenced")
            self._born()
            return 1
        self.journal.heard(asked, claims=claims)
        for claim in claims:
            self.held.append((claim, await self.store.task(claim.task)))
        return len(claims)

    async def release_something(self) -> None:
        """Give a claim up and, now and then, write with it all the same."""
        claim, _ = self.held.pop(self.rng.randrange(len(self.held)))
        await self.store.release(claim)
        self.old = [*self.old[-10:], claim]

    async def write_with_an_old_claim(self) -> None:
        """What a worker does that slept past its lease."""
        claim = self.rng.choice(self.old)
        row = await self.store.task(claim.task)
        append = Append(expected_seq=row.last_seq, id=self._id(), lines=[self._line(row.last_seq + 1, claim)])
        await self._append(claim, append, repeat=False)

    async def step(self, drain: bool = False) -> None:
        """Append to a task that is held."""
        place = self.rng.randrange(len(self.held))
        claim, row = self.held[place]
        items = await self.store.inbox(row.task, 1_000 if drain else self.rng.choice([1, 3, 100]))
        append = self._quiet(claim, row, items) if drain else self._any(claim, row, items)
        answer = await self._append(claim, append, repeat=self.odds(0.1))
        if answer == "ok" and not append.release:
            self.held[place] = (claim, await self.store.task(row.task))
        elif answer in {"ok", "Fenced"}:
            self.old = [*self.old[-10:], claim]
            del self.held[place]
        else:
            self.held[place] = (claim, await self.store.task(row.task))

    async def _append(self, claim: Claim, append: Append, *, repeat: bool) -> str:
        asked = self.journal.asks("append", claim=claim, append=append)
        for _ in range(2 if repeat else 1):
            answer = await self._try(asked, claim, append)
        while answer == "Unavailable":
            answer = await self._try(asked, claim, append)
        return answer

    async def _try(self, asked: int, claim: Claim, append: Append) -> str:
        try:
            done = await self.store.append(claim, append)
        except (Fenced, Conflict, Unavailable) as refusal:
            self.journal.heard(asked, type(refusal).__name__, reason=refusal.reason)
            return type(refusal).__name__
        self.journal.heard(asked, done=done)
        return "ok"

    async def finish_for(self, dead: Path) -> None:
        """Repeat what a process did not hear the answer of before it was killed."""
        lost = [e for e in entries(dead) if e["what"] == "append" and not e["answers"]]
        for entry in lost:
            claim = msgspec.convert(entry["claim"], Claim)
            append = msgspec.convert(entry["append"], Append)
            asked = self.journal.asks("append", claim=claim, append=append)
            await self._try(asked, claim, append)

    # Making appends.

    def _id(self) -> bytes:
        return self.rng.randbytes(16)

    def _line(self, seq: int, claim: Claim, items: Sequence[InboxItem] = (), id: bytes = b"") -> Line:
        consumes = [[item.n, item.key, hashlib.sha256(item.body).hexdigest()] for item in items]
        pad = "x" * self.rng.choice([0, 20, 20, 2_000])
        data = {"append": id.hex(), "fence": claim.fence, "at": time.time(), "consumes": consumes, "pad": pad}
        return _line(seq, data)

    def _quiet(self, claim: Claim, row: TaskRow, items: Sequence[InboxItem]) -> Append:
        """Consume everything and let go."""
        id = self._id()
        return Append(
            expected_seq=row.last_seq,
            id=id,
            lines=[self._line(row.last_seq + 1, claim, items, id)],
            consume=[item.n for item in items],
            status="running" if row.status == "ended" else "waiting",
            reason="idle",
            release=True,
            progress=True,
        )

    def _any(self, claim: Claim, row: TaskRow, items: Sequence[InboxItem]) -> Append:
        id, seq = self._id(), row.last_seq
        if self.odds(0.03):
            items = items[1:]
        odds = self.odds
        status = self.rng.choices(["running", "waiting", "ended"], [60, 35, 8 if row.parent else 1])[0]
        lines = [self._line(seq + 1, claim, items, id)]
        lines += [self._line(seq + 2 + i, claim, (), id) for i in range(self.rng.randrange(3))]
        posts = [self._post(f"{id.hex()}.{i}", row) for i in range(self.rng.choice([0, 0, 1, 2]))]
        if status == "ended" and row.parent:
            posts.append(Post(task=row.parent, key=f"child:{row.task}", kind="child_ended", body=b"{}"))
        names = [f"t{i}" for i in range(3)]
        timer = Timer(
            name=self.rng.choice(names),
            gen=seq + 1,
            at=time.time() + self.rng.random(),
            text=self.rng.choice(["", "up"]),
        )
        timers = [timer] if odds(0.2) else []
        part = f"part{self.rng.randrange(2)}"
        kept = SnapshotPart(name=part, fingerprint="f", seq=seq + 1, data=self.rng.randbytes(30))
        return Append(
            expected_seq=seq - 1 if odds(0.02) else seq,
            id=id,
            lines=lines,
            blobs=[_blob(self.rng)] if odds(0.1) else [],
            consume=[item.n for item in items],
            posts=posts,
            spawn=[self._child(id, row)] if odds(0.15) and not row.parent else [],
            set_timers=timers,
            clear_timers=[name for name in names if odds(0.05) and not timers],
            status=status,
            reason=self.rng.choice(["idle", "approval"]) if status != "running" else "",
            retry_at=time.time() + self.rng.random() if odds(0.3) else None,
            release=odds(0.1 if status == "running" else 0.6),
            progress=odds(0.5),
            snapshot=[kept] if odds(0.15) else [],
        )

    def _post(self, key: str, row: TaskRow) -> Post:
        task = row.task if self.odds(0.2) else self.rng.choice(self.names)
        return Post(task=task, key=f"p:{key}", kind="message", body=self.rng.randbytes(12))

    def _child(self, id: bytes, row: TaskRow) -> NewTask:
        """A child by one of six keys, so that most exist; now and then under another id."""
        key = f"k{self.rng.randrange(6)}"
        name = hashlib.sha256(f"{row.task}/{key}".encode()).hexdigest()[:16]
        task = f"other-{id.hex()[:8]}" if self.odds(0.2) else f"c{name}"
        post = Post(task=task, key=f"first:{id.hex()}", kind="message", body=self.rng.randbytes(8))
        line = _line(1, {"spawn": id.hex(), "key": key})
        return NewTask(
            task=task, agent="a", root=row.root, parent=row.task, key=key, lines=[line], posts=[post]
        )


def _line(seq: int, data: dict[str, Any]) -> Line:
    return Line(seq, json.dumps({"seq": seq, **data}).encode(), "core.step", bool(seq % 2))


def _blob(rng: random.Random) -> Blob:
    data = rng.randbytes(200)
    return Blob(hashlib.sha256(data).hexdigest(), data)


async def work(actor: Actor) -> None:
    """Do this and that until the process is killed."""
    steps: list[tuple[float, Callable[[], Any]]] = [
        (8, actor.step),
        (3, actor.claim_something),
        (0.5, actor.release_something),
        (0.5, actor.write_with_an_old_claim),
        (0.5, lambda: actor.store.renew(actor.worker, LEASE)),
        (0.5, lambda: actor.store.fire_timers(5)),
        (0.5, actor.look_around),
        (1, actor.post_something),
    ]
    weights = [weight for weight, _ in steps]
    while True:
        (_, do) = actor.rng.choices(steps, weights)[0]
        if do in (actor.step, actor.release_something) and not actor.held:
            do = actor.claim_something
        elif do == actor.write_with_an_old_claim and not actor.old:
            do = actor.post_something
        if do == actor.claim_something and len(actor.held) > 3:
            do = actor.step
        await do()
        await asyncio.sleep(actor.rng.expovariate(300))


async def post(actor: Actor) -> None:
    """Post and create until the process is killed."""
    while True:
        if actor.odds(0.03):
            await actor.create_something(f"r{ROOTS + actor.rng.randrange(200)}")
        if actor.odds(0.05):
            await actor.look_around()
        await actor.post_something()
        await asyncio.sleep(actor.rng.expovariate(200))


async def begin(actor: Actor) -> None:
    """Create the first tasks."""
    for name in list(actor.names):
        await actor.create_something(name)


async def drain(actor: Actor) -> None:
    """Work until nothing is left that any worker has to do."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 2 * LEASE:
        found = await actor.claim_something(8) + await actor.store.fire_timers()
        while actor.held:
            await actor.step(drain=True)
        if found or await actor.store.next_wake() is not None:
            quiet_since = time.monotonic()
        if not found:
            await asyncio.sleep(0.05)


ROLES = {"work": (work, 3), "post": (post, 2), "begin": (begin, 1), "drain": (drain, 1)}
"""What a process can do, and how many coroutines do it at once."""


async def act(opener: Opener, database: Path, name: str, role: str, seed: str, dead: Path | None) -> None:
    """Be one process of the rig."""
    journal = Journal(database.with_name(f"{name}.journal"))
    store = opener(database)
    try:
        do, count = ROLES[role]
        actors = [Actor(store, journal, f"{seed}-{name}-{number}") for number in range(count)]
        if dead is not None:
            await actors[0].finish_for(dead)
        async with asyncio.TaskGroup() as group:
            for actor in actors:
                group.create_task(do(actor))
    except BaseException as error:
        print(f"{name}: {error!r}", file=sys.stderr, flush=True)
        raise
    finally:
        await store.aclose()
