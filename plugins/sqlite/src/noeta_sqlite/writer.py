"""The one thread of a process that writes: it commits whatever waits in its queue at once.

The flush of a commit costs far more than the statements before it, so callers that come together share one.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import anyio

from noeta_sqlite.checkpoints import Checkpoints
from noeta_sqlite.database import Database
from noeta_sqlite.faults import translated
from noeta_sqlite.turn import Turn

T = TypeVar("T")
MOST_AT_ONCE = 512


class Job:
    """One caller's work, and what came of it."""

    def __init__(self, work: Callable[[Database], Any]) -> None:
        self.work: Callable[[Database], Any] = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.begun: bool = False
        self.withdrawn: bool = False
        self._lock = threading.Lock()
        self.done: anyio.Event = anyio.Event()
        self.wake: Callable[..., object] = _waker()

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


def _tell(jobs: list[Job]) -> None:
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


def _waker() -> Callable[..., object]:
    """How another thread calls something on the running event loop."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        import trio

        return trio.lowlevel.current_trio_token().run_sync_soon


class Writer:
    """Runs work on the database in one thread, several callers a transaction."""

    def __init__(self, db: Database, path: Path, at_end: Callable[[], None]) -> None:
        self._db = db
        self._path = path
        self._at_end = at_end
        self._checkpoints = Checkpoints(db)
        self._turn = Turn(path)
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.commits: int = 0
        self._thread = threading.Thread(target=self._run, name=f"noeta writer of {path.name}", daemon=True)
        self._thread.start()

    async def do(self, work: Callable[[Database], T]) -> T:
        """What `work` returns, once it is durable. An error undoes this work alone.

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

    def close(self) -> None:
        """Finish what waits, call `at_end` and end the thread. Blocks, unless the thread itself calls."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        job = self._queue.get()
        while job is not None:
            batch = [job]
            while len(batch) < MOST_AT_ONCE and not self._queue.empty():
                job = self._queue.get()
                if job is None:
                    self._queue.put(None)
                    break
                batch.append(job)
            self._commit(batch)
            job = self._queue.get()
        self._turn.close()
        self._at_end()

    def _commit(self, batch: list[Job]) -> None:
        try:
            with self._turn:
                self._db.check_files()
                self._db.run("BEGIN IMMEDIATE")
                try:
                    for job in batch:
                        if job.begin():
                            self._try(job, alone=len(batch) == 1)
                    if self._db.connection.in_transaction:
                        self._db.run("COMMIT")
                except BaseException:
                    self._db.forget()
                    self._db.connection.rollback()
                    raise
                self.commits += 1
                self._checkpoints.after_commit()
        except Exception as error:
            for job in batch:
                job.error = self._told(error)
        _tell(batch)

    def _try(self, job: Job, *, alone: bool) -> None:
        """Do one job, undoing it and no other when it fails."""
        if not alone:
            self._db.run("SAVEPOINT job")
        try:
            job.result = job.work(self._db)
        except Exception as error:
            if not self._db.connection.in_transaction:
                raise
            if alone:
                self._db.connection.rollback()
            else:
                self._db.run("ROLLBACK TO job")
            self._db.forget()
            job.error = self._told(error)
        if not alone:
            self._db.run("RELEASE job")

    def _told(self, error: Exception) -> Exception:
        """What the caller is told."""
        if not isinstance(error, sqlite3.Error | OSError):
            return error
        told = translated(error, self._path)
        told.__cause__ = error
        return told
