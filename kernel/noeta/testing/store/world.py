"""A fresh store for one check, with a clock that stands still and short ways to say what happens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import anyio

from noeta.core.codec import Line, encode
from noeta.core.items import Post
from noeta.core.log import Append, Appended, Claim, NewTask
from noeta.core.messages import user
from noeta.core.ports import Clock, Ids
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.toolkit.store import Log, Store, Watch

StoreFactory = Callable[[Clock, Ids], AbstractAsyncContextManager[Store]]
"""Opens a fresh, empty store that takes time and randomness from these two, and closes it at exit."""

PORT = {**vars(Log), **vars(Store)}
METHODS = sorted(name for name, value in PORT.items() if callable(value) and not name.startswith("_"))
E = TypeVar("E", bound=Exception)


def expect(found: object, wanted: object, promise: str) -> None:
    """Raise AssertionError with the promise when the two differ."""
    if found != wanted:
        raise AssertionError(f"{promise}: wanted {wanted!r}, found {found!r}")


async def refused(call: Awaitable[object], error: type[E], promise: str) -> E:
    """The error that the call raises; AssertionError when it raises another one or none."""
    try:
        await call
    except error as raised:
        return raised
    except Exception as other:
        raise AssertionError(f"{promise}: wanted {error.__name__}, not {other!r}") from other
    raise AssertionError(f"{promise}: wanted {error.__name__}, and nothing was raised")


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """What these calls return or raise when they run at the same time."""
    results: list[Any] = [None] * len(calls)

    async def run(place: int, call: Awaitable[Any]) -> None:
        try:
            results[place] = await call
        except Exception as error:
            results[place] = error

    async with anyio.create_task_group() as group:
        for place, call in enumerate(calls):
            group.start_soon(run, place, call)
    return results


def line(seq: int, text: str = "", extension: str = "probe", kind: str = "noted") -> Line:
    """One record. Every third one carries a message."""
    message = user(f"message {seq}") if seq % 3 == 0 else None
    return encode(seq, 1.5, extension, kind, {"text": text or f"record {seq}"}, message=message).line


def lines(after: int, count: int) -> list[Line]:
    """The next records behind a seq."""
    return [line(after + i) for i in range(1, count + 1)]


def new(task: str, **fields: Any) -> NewTask:
    """A task with one record and, if `fields` say nothing else, no post."""
    return NewTask(
        **{"task": task, "agent": "agent", "root": task, "lines": lines(fields.get("through", 0), 1)} | fields
    )


def mail(task: str, key: str, kind: str = "message", body: bytes = b"{}") -> Post:
    """A post to a task."""
    return Post(task=task, key=key, kind=kind, body=body)


class World:
    """A store with its clock, and the tasks that a check makes in it."""

    def __init__(self, store: Store, clock: FrozenClock, ids: SeededIds) -> None:
        self.store: Store = store
        self.clock: FrozenClock = clock
        self.ids: SeededIds = ids

    async def idle(self, task: str, **fields: Any) -> None:
        """Create a task that waits."""
        await self.store.create(new(task, **fields))

    async def ready(self, task: str, **fields: Any) -> None:
        """Create a task that has one post."""
        await self.store.create(new(task, **{"posts": [mail(task, "start")]} | fields))

    async def claim(self, task: str, worker: str = "worker", **filters: Any) -> Claim:
        """Claim the task, which has to be possible."""
        claims = await self.store.claim(worker, task=task, **filters)
        expect([claim.task for claim in claims], [task], f"a worker could not claim {task!r}")
        return claims[0]

    async def running(self, task: str, worker: str = "worker", **fields: Any) -> Claim:
        """Create a task with one post, not consumed yet, and claim it."""
        await self.ready(task, **fields)
        return await self.claim(task, worker)

    async def append(
        self, claim: Claim, expected_seq: int, append_id: bytes, lines: Sequence[Line] = (), **step: Any
    ) -> Appended:
        """Append these records, with all else that `step` says."""
        append = Append(expected_seq=expected_seq, id=append_id, lines=lines, **step)
        return await self.store.append(claim, append)

    async def write(self, claim: Claim, count: int = 0, **step: Any) -> Appended:
        """Append that many records where the log is, with all else that `step` says."""
        seq = (await self.store.task(claim.task)).last_seq
        return await self.append(claim, seq, self.ids.token(), lines(seq, count), **step)

    async def drain(self, claim: Claim, **step: Any) -> Appended:
        """Append one record that consumes the whole inbox, with all else that `step` says."""
        items = await self.store.inbox(claim.task)
        return await self.write(claim, 1, consume=[item.n for item in items], **step)

    async def park(self, claim: Claim, reason: str = "idle", **step: Any) -> Appended:
        """Let the task wait and, if `step` says nothing else, give the claim up."""
        return await self.drain(claim, **{"status": "waiting", "reason": reason, "release": True} | step)

    async def end(self, claim: Claim, **step: Any) -> Appended:
        """End the task and, if `step` says nothing else, give the claim up."""
        return await self.drain(claim, **{"status": "ended", "reason": "done", "release": True} | step)

    async def ended(self, task: str, **fields: Any) -> None:
        """Create a task that has ended."""
        await self.end(await self.running(task, **fields))

    async def keys(self, task: str) -> list[str]:
        """The dedupe keys of the inbox, in order."""
        return [item.key for item in await self.store.inbox(task)]

    async def status(self, task: str) -> tuple[str, str]:
        """Status and reason."""
        row = await self.store.task(task)
        return row.status, row.reason

    async def claimable(self, worker: str, **filters: Any) -> list[str]:
        """The tasks that a worker gets when it takes all it can, by name."""
        return sorted(claim.task for claim in await self.store.claim(worker, limit=100, **filters))

    async def wait(self, watch: Watch, change: Callable[[], Awaitable[object]] | None = None) -> bool:
        """Whether a wait, begun before `change` happens, ends with a change."""
        return await self._answer(watch, 60.0, change) is True

    async def times_out(self, watch: Watch) -> bool:
        """Whether a short wait ends without a change. A few hints may come early, but not for ever."""
        for _ in range(10):
            if (answer := await self._answer(watch, 0.05, None)) is not True:
                return answer is False
        return False

    async def _answer(
        self, watch: Watch, timeout: float, change: Callable[[], Awaitable[object]] | None
    ) -> bool | None:
        """What a wait says within ten seconds of the store's clock, None when it goes on."""
        answers: list[bool] = []

        async def listen() -> None:
            answers.append(await watch.wait(timeout))

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            if change is not None:
                await anyio.wait_all_tasks_blocked()
                await change()
            # A store may look for changes now and then by its clock, or have a thread that does.
            for _ in range(1000):
                await anyio.sleep(0.001)
                if answers:
                    break
                self.clock.advance(0.01)
            group.cancel_scope.cancel()
        return answers[0] if answers else None


@asynccontextmanager
async def opened(make_store: StoreFactory) -> AsyncIterator[World]:
    """A world around a fresh store."""
    clock, ids = FrozenClock(), SeededIds(1)
    async with make_store(clock, ids) as store:
        lacking = [
            name for name in METHODS if getattr(type(store), name, None) in {None, getattr(Store, name)}
        ]
        if lacking:
            raise AssertionError(f"{type(store).__name__} does not write: {', '.join(lacking)}")
        yield World(store, clock, ids)


def texts(found: Sequence[Line]) -> list[bytes]:
    """The bytes of these records."""
    return [entry.data for entry in found]
