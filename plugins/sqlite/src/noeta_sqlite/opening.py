"""Opening a database file: what must be true of it, the settings of a connection, and what went wrong in
words.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from noeta.toolkit.store import Corrupt, Full, ReadOnly, StoreError, Unavailable
from noeta_sqlite.schema import APPLICATION_ID, TABLES, VERSION

FULL, READONLY = sqlite3.SQLITE_FULL, {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def translated(error: sqlite3.Error, path: Path) -> StoreError:
    """The port's error for one of SQLite's, with what to do about it."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    said = f"{path}: {error}"
    if code == FULL:
        return Full(f"{said}. Free space on its disk, then go on.", reason="disk")
    if code in READONLY:
        return ReadOnly(f"{said}. Check who owns the file and its folder.", reason="file")
    if code in DAMAGED:
        return Corrupt(f"{said}. Copy the file aside before you repair it.", reason="page")
    return Unavailable(f"{said}. Try again.", reason="busy" if code == sqlite3.SQLITE_BUSY else "sqlite")


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold the lock that writers of all processes take before a transaction.

    SQLite's own waiting sleeps and tries again, which lets one process starve the others; this lock queues
    them.
    """
    handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def connect(path: Path, *, synchronous: str = "FULL") -> sqlite3.Connection:
    """A connection to the database at `path`, made or brought up to date when need be.

    Raises the port's errors: `Corrupt` for a file that is no database or another application's, `Unavailable`
    for one that a newer version made or a place where it cannot be opened, `ReadOnly`, `Full`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with in_turn(path):
            connection = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
            try:
                _check_owner(connection, path)
                _set_up(connection, path, synchronous)
            except BaseException:
                connection.close()
                raise
    except sqlite3.Error as error:
        raise translated(error, path) from error
    except OSError as error:
        raise Unavailable(
            f"{path}: {error.strerror}. Choose a folder that can be written to.", reason="open"
        ) from error
    return connection


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and application != APPLICATION_ID:
        raise Corrupt(f"{path} is another application's database. Name another file.", reason="application")
    if version > VERSION:
        raise Unavailable(
            f"{path} was written by a newer noeta (format {version}; this one knows {VERSION}). Install that one.",
            reason="newer",
        )


def _set_up(connection: sqlite3.Connection, path: Path, synchronous: str) -> None:
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise Unavailable(f"{path} cannot have a write-ahead log there. Use a local disk.", reason="wal")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    # Only a writer that holds the lock moves the log into the file. In many versions of SQLite a commit that
    # races with such a move can be lost.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    if connection.execute("PRAGMA user_version").fetchone() == (0,):
        connection.executescript(
            f"BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION_ID};"
            f" PRAGMA user_version = {VERSION}; COMMIT;"
        )
