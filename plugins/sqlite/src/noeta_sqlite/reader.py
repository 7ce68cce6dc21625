"""Reading a store without an event loop, a lock or a thread: for front ends and scripts."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from noeta.toolkit.store import InboxItem, Line, SnapshotPart, Status, TaskRow, Timer, Unavailable, spans
from noeta.toolkit.system import RandomIds
from noeta_sqlite import reads, upkeep
from noeta_sqlite.clock import BootClock
from noeta_sqlite.database import Database, in_snapshot
from noeta_sqlite.looking import check_owner, looked, port_errors
from noeta_sqlite.schema import VERSION
from noeta_sqlite.upkeep import Stats
from noeta_sqlite.urls import place_of

P = ParamSpec("P")
T = TypeVar("T")


class SqliteReader:
    """Reads the store at `path`, also while workers use it, and also when it cannot be written.

    The methods that only look have the names and meanings of the port's, without the `await`. Each call opens
    the file and sees one moment of it. Nothing is kept open, so there is nothing to close, and any thread or
    forked process may call. No database is ever made or changed.

    Raises `Unavailable` with the reason ``missing`` when there is no store at `path`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path).expanduser().resolve()
        self._look(lambda _: None)

    def task(self, task: str) -> TaskRow:
        """A task's row. Raises `UnknownTask`."""
        return self._look(reads.task, task)

    def tasks(
        self,
        *,
        status: Status | None = None,
        agent: str | None = None,
        parent: str | None = None,
        root: str | None = None,
        base: str | None = None,
        after: TaskRow | None = None,
        limit: int = 100,
    ) -> list[TaskRow]:
        """Rows that match, oldest first, behind `after`."""
        wanted: dict[str, Any] = {"agent": agent, "parent": parent, "root": root, "base": base}
        return self._look(partial(reads.tasks, status=status, after=after, limit=limit, **wanted))

    def read(
        self,
        task: str,
        after: int = 0,
        *,
        through: int | None = None,
        limit: int | None = None,
        only: Collection[str] | None = None,
    ) -> list[Line]:
        """The task's own lines with ``after < seq <= through``, in order. Raises `UnknownTask`."""
        return self._look(reads.read, task, after, through=through, limit=limit, only=only)

    def messages(self, task: str, after: int = 0, *, through: int | None = None) -> list[tuple[int, bytes]]:
        """The seq and the bytes of each line that `read` gives, of those alone that carry a message."""
        return self._look(reads.messages, task, after, through=through)

    def history(
        self,
        task: str,
        after: int = 0,
        *,
        through: int | None = None,
        only: Collection[str] | None = None,
        page: int = 1_000,
    ) -> Iterator[list[Line]]:
        """The lines of a task and of the tasks it continues, in pages, on their one number line."""
        chain = [self.task(task)]
        while chain[-1].base and after < chain[-1].through:
            chain.append(self.task(chain[-1].base))
        for name, begin, end in spans(chain, after, through):
            after = begin
            while end is None or after < end:
                lines = self.read(name, after, through=end, limit=page, only=only)
                if lines:
                    yield lines
                    after = lines[-1].seq
                if len(lines) < page:
                    break

    def inbox(self, task: str, limit: int = 100) -> list[InboxItem]:
        """The oldest unconsumed items."""
        return self._look(reads.inbox, task, limit)

    def timers(self, task: str) -> list[Timer]:
        """The timers set for the task, by name."""
        return self._look(reads.timers, task)

    def snapshot(self, task: str) -> list[SnapshotPart]:
        """The parts kept for the task, in no order."""
        return self._look(reads.snapshot, task)

    def read_blob(self, sha256: str) -> bytes | None:
        """The bytes of a blob, None when there is no such blob."""
        return self._look(reads.read_blob, sha256)

    def next_wake(self) -> float | None:
        """The epoch second of the earliest timer or retry that may fire as things stand, due or not."""
        return self._look(reads.next_wake)

    def stats(self) -> Stats:
        """How much there is. The level of `synchronous` is a writer's, and empty here."""
        return self._look(upkeep.stats)

    def backup(self, target: str | Path) -> None:
        """Write all that is durable now to the new file `target`, while others go on. See `upkeep.backup`."""
        upkeep.backup(self.path, Path(target))

    def _look(self, work: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        def look(connection: sqlite3.Connection) -> T:
            connection.execute("PRAGMA query_only = ON")
            if not check_owner(connection, self.path):
                raise self._missing()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version < VERSION:
                raise Unavailable(
                    f"{self.path} was written by an older noeta (format {version}; this one reads {VERSION})."
                    " Start a worker once, which brings it up to date.",
                    reason="older",
                )
            db = Database(connection, self.path, {}, BootClock(), RandomIds(), "")
            with in_snapshot(db):
                return work(db, *args, **kwargs)

        with port_errors(self.path):
            try:
                return looked(self.path, look)
            except FileNotFoundError:
                raise self._missing() from None

    def _missing(self) -> Unavailable:
        return Unavailable(
            f"there is no store at {self.path}. Check the path; a worker that starts makes one.",
            reason="missing",
        )


def open_reader(url: str, settings: Mapping[str, Any] | None = None) -> SqliteReader:
    """A reader of the store that ``sqlite:PATH`` names, for the group ``noeta.readers``.

    Raises as `open_store` does for a wrong URL or setting, and what `SqliteReader` raises.
    """
    path, _ = place_of(url, settings or {})
    return SqliteReader(path)
