"""One connection to a noeta database, and what every statement on it needs: the clock, the ids, this start's
name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from noeta.toolkit.store import Clock, Ids, UnknownTask


class Database:
    """A connection with short ways to ask it, and a note of the tasks that the open transaction changed."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, ids: Ids, boot: str) -> None:
        self.connection: sqlite3.Connection = connection
        self.clock: Clock = clock
        self.ids: Ids = ids
        self.boot: str = boot
        self.changed: set[str] = set()
        self._names: dict[str, int] = {}

    def run(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Run one statement."""
        return self.connection.execute(sql, values)

    def each(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of values."""
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
