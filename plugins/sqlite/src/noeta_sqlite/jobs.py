"""Work that one thread does for callers on an event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import anyio

from noeta_sqlite.database import Database

T = TypeVar("T")
NUDGE = "nudge"
"""What is put into a thread's queue so that it looks up. None ends the thread."""


class Event(Protocol):
    """What the events of both loops have in common."""

    def set(self) -> object:
        """Let those who wait go on."""

    async def wait(self) -> object:
        """Wait until it is set."""


def loop() -> tuple[Callable[..., object], Callable[[], Event]]:
    """What lets a thread call something on the event loop that runs here, and that loop's events."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe, asyncio.Event
    except RuntimeError:
        import trio

        return trio.lowlevel.current_trio_token().run_sync_soon, trio.Event


class Job:
    """One caller's work, and what came of it."""

    def __init__(self, work: Callable[[Database], Any]) -> None:
        self.work: Callable[[Database], Any] = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.begun: bool = False
        self.withdrawn: bool = False
        self._lock = threading.Lock()
        # Those of the loops themselves: anyio's take as long again as the way to the thread and back.
        self.wake, event = loop()
        self.done: Event = event()

    def begin(self) -> bool:
        """Whether the caller still wants the work. From now on it cannot be withdrawn."""
        with self._lock:
            self.begun = not self.withdrawn
            return self.begun

    def withdraw(self) -> bool:
        """Take the work back unless it has begun."""
        with self._lock:
            self.withdrawn = not self.begun
            return self.withdrawn


def tell(jobs: list[Job]) -> None:
    """Wake the callers, those of one event loop together: waking a loop takes a call of the system."""
    loops: dict[Callable[..., object], list[Job]] = {}
    for job in jobs:
        loops.setdefault(job.wake, []).append(job)
    for wake, told in loops.items():
        # A loop that has ended has nobody left to wake.
        with suppress(RuntimeError):
            wake(_done, told)


def _done(jobs: list[Job]) -> None:
    for job in jobs:
        job.done.set()


class JobThread:
    """A thread that takes jobs from a queue, up to `most` of those that wait at once."""

    def __init__(self, name: str, most: int = 1) -> None:
        self._most = most
        self._queue: queue.SimpleQueue[Job | str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def serve(self, jobs: list[Job]) -> None:
        """Do `jobs`, put down what came of each, and tell the callers. Never raises."""
        raise NotImplementedError

    def patience(self) -> float | None:
        """How many seconds to wait for a job before `between` is called; None for ever."""
        return None

    def between(self) -> None:
        """Called in the thread after jobs, and when none came. Never raises."""

    def ended(self) -> None:
        """Called in the thread when it ends."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    async def do(self, work: Callable[[Database], T]) -> T:
        """What `work` returns, or raises.

        A caller that is cancelled takes the work back. If it has begun, the caller waits for its end, so
        that whoever looks next sees all of it or nothing.
        """
        job = Job(work)
        self._queue.put(job)
        try:
            await job.done.wait()
        except BaseException:
            if not job.withdraw():
                with anyio.CancelScope(shield=True):
                    await job.done.wait()
            raise
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def nudge(self) -> None:
        """Let the thread ask for its `patience` again."""
        self._queue.put(NUDGE)

    def close(self) -> None:
        """Finish what waits, and end the thread. Blocks, unless the thread itself calls."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            waiting: list[Job | str | None] = []
            with suppress(queue.Empty):
                waiting.append(self._queue.get(timeout=self.patience()))
            while waiting and len(waiting) < self._most and not self._queue.empty():
                waiting.append(self._queue.get())
            jobs = [job for job in waiting if isinstance(job, Job)]
            going = None not in waiting
            if jobs:
                self.serve(jobs)
            self.between()
            # Who waits for the next job must not keep what came of the last.
            del waiting, jobs
        self.ended()
