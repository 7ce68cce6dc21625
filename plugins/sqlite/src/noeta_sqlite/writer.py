"""The one thread of a process that writes: it commits whatever waits in its queue at once.

The flush of a commit costs far more than the statements before it, so callers that come together share one.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from noeta_sqlite.checkpoints import Checkpoints
from noeta_sqlite.database import Database, in_snapshot
from noeta_sqlite.faults import FAULTS, translated
from noeta_sqlite.jobs import Job, JobThread, loop, tell
from noeta_sqlite.turn import Turn

MOST_AT_ONCE = 512
POLL = 0.1
"""Seconds between two looks for what other processes wrote."""


class Writer(JobThread):
    """Runs work on the database in one thread, several callers a transaction.

    What a caller is told is durable; an error undoes that caller's work alone. `at_end` is called in the
    thread when it ends. While somebody is `told`, it looks for what other processes wrote: that takes no
    lock, and one thread does it for all who watch.
    """

    def __init__(self, db: Database, path: Path, at_end: Callable[[], None]) -> None:
        super().__init__(f"noeta writer of {path.name}", MOST_AT_ONCE)
        self._db = db
        self._path = path
        self._at_end = at_end
        self._checkpoints = Checkpoints(db)
        self._turn = Turn(path)
        self.commits: int = 0
        self._watchers = 0
        self._looked, self._version = 0.0, 0
        self._tell: Callable[[], object] = lambda: None
        self.start()

    @contextmanager
    def told(self, changed: Callable[[], None]) -> Iterator[None]:
        """Inside, `changed` is called on this event loop when another process has written."""
        wake, _ = loop()
        self._tell = partial(wake, changed)
        self._watchers += 1
        if self._watchers == 1:
            # The thread may wait for jobs alone.
            self.nudge()
        try:
            yield
        finally:
            self._watchers -= 1

    def patience(self) -> float | None:
        """A look in time, when somebody wants to be told."""
        return POLL if self._watchers else None

    def between(self) -> None:
        """Look whether others have written, no more often than `POLL`."""
        if not self._watchers or time.monotonic() - self._looked < POLL:
            return
        self._looked = time.monotonic()
        # What is wrong with the file is told to who uses it; a loop that has ended has nobody to tell.
        with suppress(sqlite3.Error, RuntimeError):
            (version,) = self._db.one("PRAGMA data_version")
            if version != self._version:
                self._version = version
                self._tell()

    def ended(self) -> None:
        """Give up the lock's file, and call `at_end`."""
        self._turn.close()
        self._at_end()

    def serve(self, jobs: list[Job]) -> None:
        """Do the work of `jobs` in one transaction."""
        self._commit(jobs)
        tell(jobs)

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
        if not isinstance(error, FAULTS):
            return error
        told = translated(error, self._path)
        told.__cause__ = error
        return told


class Reader(JobThread):
    """Looks at the database in one thread, each caller at one moment of it."""

    def __init__(self, db: Database) -> None:
        super().__init__(f"noeta reader of {db.path.name}")
        self._db = db
        self.start()

    def serve(self, jobs: list[Job]) -> None:
        """Do the work of `jobs`, one after the other."""
        for job in jobs:
            try:
                if job.begin():
                    with in_snapshot(self._db):
                        job.result = job.work(self._db)
            except Exception as error:
                job.error = error
        tell(jobs)
