"""One connection to a noeta database, and what every statement on it needs: the clock, the ids, this start's
name.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noeta.toolkit.store import Clock, Ids, UnknownTask
from noeta_sqlite.faults import gone, replaced
from noeta_sqlite.looking import Identity, port_errors

if TYPE_CHECKING:
    from noeta.toolkit.in_memory.watches import Change

MOST = 2**63 - 1


def upto(limit: int | None) -> int:
    """A limit as SQLite takes it. None is no limit; below 1 gives nothing, which for SQLite would be all."""
    return MOST if limit is None else min(max(limit, 0), MOST)


class Database:
    """A connection with short ways to ask it, and a note of what the open transaction did.

    `changed` are the tasks it changed, and what of them, `erased` whether what it took out has to leave the
    disk. `files` are the files that were opened.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        files: dict[str, Identity],
        clock: Clock,
        ids: Ids,
        boot: str,
    ) -> None:
        self.connection: sqlite3.Connection = connection
        self.path: Path = path
        self.files: dict[str, Identity] = files
        self.clock: Clock = clock
        self.ids: Ids = ids
        self.boot: str = boot
        self.changed: dict[str, Change] = {}
        self.erased: bool = False
        self._names: dict[str, int] = {}

    def run(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement."""
        return self.connection.execute(sql, values)

    def each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
        if rows:
            self.connection.executemany(sql, rows)

    def all(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a query."""
        return self.connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: Any) -> Any:
        """The first row of a query, None when there is none."""
        return self.connection.execute(sql, values).fetchone()

    def task_id(self, task: str) -> int:
        """The key of the task's rows. Raises `UnknownTask`."""
        row = self.one("SELECT id FROM task WHERE task = ?", task)
        if row is None:
            raise UnknownTask(task)
        return int(row[0])

    def name_id(self, name: str) -> int:
        """The key of ``extension.kind``, made when it is new."""
        if name not in self._names:
            extension, _, kind = name.partition(".")
            sql = "INSERT INTO name (extension, kind) VALUES (?, ?) ON CONFLICT DO NOTHING"
            self.run(sql, extension, kind)
            row = self.one("SELECT id FROM name WHERE extension = ? AND kind = ?", extension, kind)
            self._names[name] = row[0]
        return self._names[name]

    def forget(self) -> None:
        """Forget what an undone transaction may have made."""
        self._names.clear()

    def check_files(self) -> None:
        """Raise `Unavailable` when a file of the store was deleted or replaced since it was opened.

        What SQLite would write then goes where nobody finds it, or next to what others write.
        """
        for file, identity in self.files.items():
            try:
                # By its bare name: a `Path` takes longer than the question to the system.
                found = os.stat(file)  # noqa: PTH116
            except FileNotFoundError:
                raise gone(Path(file)) from None
            if (found.st_dev, found.st_ino) != identity:
                raise replaced(Path(file))


@contextmanager
def in_snapshot(db: Database) -> Iterator[None]:
    """Let every query inside see the same moment, and let out only errors of the port."""
    with port_errors(db.path):
        db.check_files()
        db.run("BEGIN")
        try:
            yield
        finally:
            # There is nothing to commit, and an error may have ended the transaction already.
            db.connection.rollback()
