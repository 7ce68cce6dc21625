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

from noeta.toolkit.store import StoreError, TaskOver, UnknownTask
from noeta_sqlite.database import Database
from noeta_sqlite.opening import in_turn, translated

T = TypeVar("T")
MOST_AT_ONCE = 512
CHECKPOINT_PAGES = 1_000
REFUSALS = (StoreError, UnknownTask, TaskOver)


class Job:
    """One caller's work, and what came of it."""

    def __init__(self, work: Callable[[Database], Any]) -> None:
        self.work: Callable[[Database], Any] = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done: anyio.Event = anyio.Event()
        self.wake: Callable[..., object] = _waker()

    def tell(self) -> None:
        """Wake the caller, if its event loop still runs."""
        with suppress(RuntimeError):
            self.wake(self.done.set)


def _waker() -> Callable[..., object]:
    """How another thread calls something on the running event loop."""
    try:
        return asyncio.get_running_loop().call_soon_threadsafe
    except RuntimeError:
        import trio

        return trio.lowlevel.current_trio_token().run_sync_soon


class Writer:
    """Runs work on the database in one thread, several callers a transaction."""

    def __init__(self, db: Database, path: Path) -> None:
        self._db = db
        self._path = path
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"noeta writer of {path.name}", daemon=True)
        self._thread.start()
        self.commits: int = 0

    async def do(self, work: Callable[[Database], T]) -> T:
        """What `work` returns, once it is durable. An error undoes this work alone.

        When the caller is cancelled meanwhile, the work may be done all the same.
        """
        job = Job(work)
        self._queue.put(job)
        await job.done.wait()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Finish what waits, and end the thread. Blocks."""
        self._queue.put(None)
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

    def _commit(self, batch: list[Job]) -> None:
        try:
            with in_turn(self._path):
                self._db.run("BEGIN IMMEDIATE")
                try:
                    for job in batch:
                        self._try(job)
                    self._db.run("COMMIT")
                except BaseException:
                    self._db.forget()
                    self._db.connection.rollback()
                    raise
                self.commits += 1
                self._checkpoint()
        except Exception as error:
            told = translated(error, self._path) if isinstance(error, sqlite3.Error) else error
            for job in batch:
                job.error = told
        for job in batch:
            job.tell()

    def _try(self, job: Job) -> None:
        """Do one job, undoing it alone when it is refused."""
        self._db.run("SAVEPOINT job")
        try:
            job.result = job.work(self._db)
        except REFUSALS as refusal:
            self._db.run("ROLLBACK TO job")
            self._db.forget()
            job.error = refusal
        self._db.run("RELEASE job")

    def _checkpoint(self) -> None:
        """Move the write-ahead log into the file when it has grown long."""
        log = self._path.with_name(self._path.name + "-wal")
        if log.exists() and log.stat().st_size > CHECKPOINT_PAGES * 4096:
            self._db.run("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
