"""Keeping a store: how much there is, and a copy of it while it is in use."""

from __future__ import annotations

import math
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct

from noeta_sqlite.checkpoints import empty, has_leftovers, rewrite
from noeta_sqlite.database import Database
from noeta_sqlite.faults import translated
from noeta_sqlite.looking import beside, looked, port_errors
from noeta_sqlite.opening import connect, in_turn

LEVELS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


class Stats(Struct, frozen=True, kw_only=True):
    """How much a store holds, and how it is kept.

    `tasks` counts them by status. Sizes are bytes: of the file, of that what is `free` in it, of the log
    beside it, and of all blobs. `leftovers` says that erased bytes may be left in unused parts of the file,
    which `SqliteStore.compact` takes out. `reset_bug` says that this SQLite can lose a commit when a
    checkpoint races with it, which this store never lets happen. `synchronous` is empty for a connection that
    only reads.
    """

    tasks: Mapping[str, int]
    records: int
    file: int
    free: int
    log: int
    blobs: int
    leftovers: bool
    sqlite: str
    reset_bug: bool
    synchronous: str


def stats(db: Database) -> Stats:
    """Look at all of it; counting takes a while when there is much."""
    (records,) = db.one("SELECT count(*) FROM record")
    (blobs,) = db.one("SELECT coalesce(sum(length(data)), 0) FROM blob")
    (page,), (free,) = db.one("PRAGMA page_size"), db.one("PRAGMA freelist_count")
    (reads_only,), (level,) = db.one("PRAGMA query_only"), db.one("PRAGMA synchronous")
    log = beside(db.path, "-wal")
    return Stats(
        tasks=dict(db.all("SELECT status, count(*) FROM task GROUP BY status ORDER BY status")),
        records=records,
        file=db.path.stat().st_size,
        free=page * free,
        log=log.stat().st_size if log.exists() else 0,
        blobs=blobs,
        leftovers=has_leftovers(db.connection),
        sqlite=sqlite3.sqlite_version,
        reset_bug=has_reset_bug(sqlite3.sqlite_version_info),
        synchronous="" if reads_only else LEVELS[level],
    )


ENDED = """
SELECT max(updated_at) AS ended, sum(
    (SELECT coalesce(sum(length(line)), 0) FROM record WHERE record.id BETWEEN first AND last)
    + (SELECT coalesce(sum(length(key) + coalesce(length(body), 0)), 0) FROM inbox WHERE inbox.task = of)
    + (SELECT coalesce(sum(length(data)), 0) FROM part WHERE part.task = of)
    + (SELECT coalesce(sum(length(data)), 0) FROM hold JOIN blob USING (sha256) WHERE hold.task = of)
) FROM (
    SELECT root, status, updated_at, id AS of, id << 32 AS first, (id << 32) + 4294967295 AS last FROM task
)
GROUP BY root HAVING min(status = 'ended') ORDER BY ended DESC
"""


def ended_beyond(path: Path, size: int) -> float:
    """As `SqliteStore.ended_beyond`."""
    with port_errors(path):
        trees: list[tuple[float, int]] = looked(path, lambda connection: connection.execute(ENDED).fetchall())
    for ended, taken in trees:
        size -= taken
        if size < 0:
            return math.nextafter(ended, math.inf)
    return 0.0


def has_reset_bug(version: tuple[int, int, int]) -> bool:
    """Whether this SQLite can lose a commit that races with a checkpoint which starts the log anew.

    It was mended in 3.51.3, and in 3.50.7 and 3.44.6 for those who stay with these.
    """
    branch = version[:2]
    return version < (3, 51, 3) and not (
        (branch == (3, 50) and version >= (3, 50, 7)) or (branch == (3, 44) and version >= (3, 44, 6))
    )


def backup(path: Path, target: Path) -> None:
    """Copy the database at `path` to the new file `target`: one moment of it, while writers go on.

    Until the copy is whole and on disk, `target` is not there. The copy is one file without a log beside it,
    and holds nothing but what is in the store: nothing erased, no free pages.
    Raises `FileExistsError` when something is there already, and the errors of the port.
    """
    target = target.absolute()
    for file in (target, beside(target, "-wal")):
        if file.exists():
            raise FileExistsError(f"{file} is there already. Give the backup a name of its own.")
    with port_errors(target):
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
    part = Path(name)

    def copy(source: sqlite3.Connection) -> None:
        os.truncate(part, 0)
        try:
            # Not SQLite's backup of pages, which keeps what is in unused parts of them.
            source.execute("VACUUM INTO ?", (str(part),))
        except sqlite3.OperationalError as error:
            # Only the copy is written to.
            full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            raise translated(error, target if full else path) from error

    try:
        with port_errors(path):
            looked(path, copy)
        with port_errors(target):
            _flush(part)
            part.replace(target)
            _flush(target.parent)
    except BaseException:
        for file in (part, beside(part, "-journal")):
            with suppress(OSError):
                file.unlink()
        raise


def compact(path: Path) -> None:
    """Rewrite the file without its free pages and without a trace of what was erased.

    Everyone who writes waits meanwhile: a second for about 100 MB. Needs room for the file twice.
    """
    # The file is known to be where it may be.
    with port_errors(path), ExitStack() as held:
        connection = connect(path, network=True)
        # In this order, so that the connection is closed while the lock is held.
        try:
            held.enter_context(in_turn(path))
            # What is kept while it is rewritten may be larger than the memory.
            connection.execute("PRAGMA temp_store = FILE")
            newest = rewrite(connection)
            if empty(connection):
                connection.execute("DELETE FROM leftover WHERE id <= ?", (newest,))
        finally:
            connection.close()


def _flush(file: Path) -> None:
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
