"""Looking at a database file without changing it: whose it is, and connections that only read."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from noeta.toolkit.store import Corrupt, StoreError, Unavailable, UnknownTask
from noeta_sqlite.faults import FAULTS, no_database, translated
from noeta_sqlite.schema import APPLICATION_ID, VERSION

T = TypeVar("T")
Identity = tuple[int, int]
TRIES = 10
SMALLEST = 512


def beside(path: Path, ending: str) -> Path:
    """The file that belongs to the database at `path`: ``-wal``, ``-shm`` or ``.lock``."""
    return path.with_name(path.name + ending)


def identities(path: Path) -> dict[str, Identity]:
    """Which files the database and its log are at this moment."""
    files = {}
    for file in (path, beside(path, "-wal"), beside(path, "-shm")):
        found = file.stat()
        files[str(file)] = (found.st_dev, found.st_ino)
    return files


def is_live(path: Path) -> bool:
    """Whether something may be in the log that is not in the file: a process has it open, or died with it."""
    log = beside(path, "-wal")
    try:
        return log.stat().st_size > 0 or beside(path, "-shm").exists()
    except FileNotFoundError:
        return False


def looked(path: Path, look: Callable[[sqlite3.Connection], T]) -> T:
    """What `look` finds with a connection that writes to no file.

    Without a log beside the file, SQLite would make one even to read. Told that nobody changes the file, it
    does not. Then we have to see for ourselves that it stayed as it was, and look again when it did not.
    """
    for _ in range(TRIES):
        live, before = is_live(path), _stamp(path)
        try:
            with closing(_read_only(path, live=live)) as connection:
                found = look(connection)
        except (sqlite3.Error, StoreError, UnknownTask):
            if live or _stamp(path) == before:
                raise
        else:
            if live or _stamp(path) == before:
                return found
    raise Unavailable(f"{path} is opened and closed all the time. Try again.", reason="busy")


def _stamp(path: Path) -> tuple[object, ...]:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise Unavailable(f"{path} is no file. Name a file, in a folder of your own.", reason="folder")
    # SQLite would take a file of a few bytes for an empty one, and write over it.
    if 0 < found.st_size < SMALLEST:
        raise no_database(path)
    return is_live(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read_only(path: Path, *, live: bool) -> sqlite3.Connection:
    uri = f"file:{quote(str(path))}?mode=ro" + ("" if live else "&immutable=1")
    connection = sqlite3.connect(uri, uri=True, timeout=30.0, isolation_level=None, check_same_thread=False)
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    return connection


@contextmanager
def port_errors(path: Path) -> Iterator[None]:
    """Let out only errors of the port."""
    try:
        yield
    except FAULTS as error:
        raise translated(error, path) from error


def identify(path: Path) -> bool:
    """Whether there is a database of ours at `path`; False when there is nothing, or an empty one.

    Raises `Corrupt` for what is no database or another application's, `Unavailable` for a folder and for what
    a newer version wrote. Changes nothing.
    """
    with port_errors(path):
        try:
            if path.stat().st_size == 0 and path.is_file():
                return False
            # SQLite itself looks: if this process has the file open, to open and close it by hand would drop
            # the locks that SQLite holds on it.
            return looked(path, lambda connection: check_owner(connection, path))
        except FileNotFoundError:
            return False


def check_owner(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the database is ours and has its tables; raises as `identify`."""
    # All of one moment: another process may just make the tables.
    connection.execute("BEGIN")
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if application != APPLICATION_ID and (tables or application):
        raise Corrupt(f"{path} is another application's database. Name another file.", reason="application")
    if version > VERSION:
        raise Unavailable(
            f"{path} was written by a newer noeta (format {version}; this one knows {VERSION}). Install that"
            " one.",
            reason="newer",
        )
    return bool(tables)
