"""Moving the write-ahead log into the file, and erased bytes out of it. Only the holder of the lock may.

SQLite overwrites what is deleted with zeros, but not the copies it left in unused parts of pages when it
moved rows about before. Only a rewrite of the whole file is sure to take them out.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress

from noeta_sqlite.database import Database
from noeta_sqlite.looking import beside

PAGE = 8192
"""Bytes of a page. Records are some hundred bytes to some thousand: in a page of half the size, one byte in
ten stays unused behind the last record that fits, and large ones spill over into pages of their own."""
PAGES = 500
"""Pages after which the log is moved into the file and begins anew. It keeps its length: to write over it
takes half the time that it takes to make it longer."""
LONG = 4 * PAGES * PAGE
"""Bytes at which a log is cut: readers kept it from beginning anew, or one commit was very large."""
PATIENCE = 100
"""Milliseconds to wait for those who still read from the log. New readers do not add to them."""
REWRITTEN = 64 * 2**20
"""The largest file, in bytes, that an erasure rewrites unasked: that takes a fraction of a second."""
RETRY = 1.0
"""Seconds between two tries to get erased bytes out of the log."""


class Checkpoints:
    """Keeps the log short and the file free of what was erased.

    A reader that takes long holds the log back. Then it grows by as much again before the next try, so that
    waiting for the reader stays rare.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._log = str(beside(db.path, "-wal"))
        self._next = LONG
        self._tried = 0.0
        # A commit that reaches this many pages moves the log by itself, with the lock held as for the commit.
        db.run(f"PRAGMA wal_autocheckpoint = {PAGES}")
        # The newest erasure that is out of the file once the log is empty.
        self._erasure: int | None = None
        # A process that died may have left it to us.
        db.erased = has_leftovers(db.connection)

    def after_commit(self) -> None:
        """Empty the log if it is too long, or may hold what was erased. Call it with the lock held.

        Never raises: the commit is durable, and an error here must not say otherwise.
        """
        with suppress(sqlite3.Error, OSError):
            size = os.stat(self._log).st_size  # noqa: PTH116 -- see `Database.check_files`
            if self._db.erased or self._erasure is not None:
                if time.monotonic() - self._tried >= RETRY:
                    self._tried = time.monotonic()
                    self._scrub()
            elif size >= self._next:
                self._next = LONG if empty(self._db.connection) else size + LONG

    def _scrub(self) -> None:
        if self._db.erased:
            self._erasure = 0
            if self._db.path.stat().st_size <= REWRITTEN:
                self._erasure = rewrite(self._db.connection)
            self._db.erased = False
        if empty(self._db.connection):
            self._db.run("DELETE FROM leftover WHERE id <= ?", self._erasure)
            self._erasure, self._tried = None, 0.0


def rewrite(connection: sqlite3.Connection) -> int:
    """Rewrite the file, and return the newest erasure it no longer shows. Call it with the lock held."""
    connection.execute("VACUUM")
    (newest,) = connection.execute("SELECT coalesce(max(id), 0) FROM leftover").fetchone()
    return int(newest)


def empty(connection: sqlite3.Connection) -> bool:
    """Move all of the log into the file and cut the log to nothing; False when a reader still needs it.

    Call it with the lock held.
    """
    (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute(f"PRAGMA busy_timeout = {PATIENCE}")
    try:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {patience}")
    return not busy


def has_leftovers(connection: sqlite3.Connection) -> bool:
    """Whether erased bytes may be left in the file."""
    return connection.execute("SELECT 1 FROM leftover").fetchone() is not None
