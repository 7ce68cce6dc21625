"""Opening a database file: the lock, what must be true of the place, and the settings of a connection."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from noeta.toolkit.store import Unavailable
from noeta_sqlite.checkpoints import PAGE, empty
from noeta_sqlite.looking import beside, check_owner, identify, port_errors
from noeta_sqlite.mounts import refuse_network
from noeta_sqlite.schema import VERSION, upgrade

BUSY_SECONDS = 30.0
"""How long SQLite itself waits for a lock. Writers queue for `in_turn` first, so it hardly ever does."""


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold the lock that writers of all processes take before a transaction.

    SQLite's own waiting sleeps and tries again, which lets one process starve the others; this lock queues
    them.
    """
    handle = _locked(beside(path, ".lock"))
    try:
        yield
    finally:
        # Not by closing alone: a process forked meanwhile has the handle too, and would hold the lock on.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _locked(lock: Path) -> int:
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Whoever deletes the lock file must not let two processes hold it at once.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), lock.stat()):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def connect(path: Path, *, synchronous: str = "FULL", network: bool = False) -> sqlite3.Connection:
    """A connection to the database at the absolute `path`, made or brought up to date when need be.

    `network` lets it be on a network file system. Raises the port's errors: `Corrupt` for a file that is no
    database or another application's, `Unavailable` for one that a newer version made or a place where it
    cannot be opened, `ReadOnly`, `Full`.
    """
    if not network:
        refuse_network(path)
    with port_errors(path):
        # Before anything is made beside it: the file of another application keeps its folder as it was.
        identify(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not os.access(path, os.W_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, "the file cannot be written", str(path))
        with in_turn(path):
            # What people said is in it. SQLite gives its log the mode of the file. One that is there is not
            # opened: closing it would give up the locks of other connections of this process.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                check_owner(connection, path)
                _set_up(connection, path, synchronous)
            except BaseException:
                connection.close()
                raise
    return connection


def _set_up(connection: sqlite3.Connection, path: Path, synchronous: str) -> None:
    connection.execute(f"PRAGMA page_size = {PAGE}")
    # Only a writer that holds the lock moves the log into the file, see `Checkpoints`. In many versions of
    # SQLite a commit that races with such a move can be lost.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise Unavailable(f"{path} cannot have a write-ahead log there. Use a local disk.", reason="wal")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    # What is erased must not stay behind in a temporary file.
    connection.execute("PRAGMA temp_store = MEMORY")
    upgrade(connection)
    # SQLite opens a file that it may only read without a word, and even begins to write.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("ROLLBACK")
    # A process that died may have left erased bytes in the log.
    with suppress(sqlite3.Error):
        empty(connection)
