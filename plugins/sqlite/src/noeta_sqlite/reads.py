"""Everything that only looks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from noeta.toolkit.store import Corrupt, InboxItem, Line, SnapshotPart, Status, TaskRow, Timer
from noeta_sqlite.database import Database, upto
from noeta_sqlite.schema import LAST_SEQ, place

COLUMNS = (
    "task, root, parent, key, agent, queue, status, reason, last_seq, base, through, created_at, updated_at,"
    " retry_at, unread, fence, worker, attempts, version"
)


def _row(values: tuple[Any, ...]) -> TaskRow:
    return TaskRow(**dict(zip(TaskRow.__struct_fields__, values, strict=True)))


def task(db: Database, name: str) -> TaskRow:
    """As `Store.task`."""
    db.task_id(name)
    return _row(db.one(f"SELECT {COLUMNS} FROM task WHERE task = ?", name))


def tasks(
    db: Database,
    *,
    status: Status | None = None,
    agent: str | None = None,
    parent: str | None = None,
    root: str | None = None,
    base: str | None = None,
    after: TaskRow | None = None,
    limit: int = 100,
) -> list[TaskRow]:
    """As `Store.tasks`."""
    wanted = {"status": status, "agent": agent, "parent": parent, "root": root, "base": base}
    wanted = {column: value for column, value in wanted.items() if value is not None}
    where = [f"{column} = ?" for column in wanted] + ["(created_at, task) > (?, ?)"] * (after is not None)
    # Only what leaves empty ones out may use their indexes, and what leaves the waiting out that of states.
    where += [f"{column} != ''" for column in ("parent", "base") if wanted.get(column)]
    where += ["status != 'waiting'"] * (status not in {None, "waiting"})
    values: list[Any] = [*wanted.values(), *((after.created_at, after.task) if after else ())]
    condition = f"WHERE {' AND '.join(where)}" if where else ""
    sql = f"SELECT {COLUMNS} FROM task {condition} ORDER BY created_at, task LIMIT ?"
    return [_row(row) for row in db.all(sql, *values, upto(limit))]


def read(
    db: Database,
    task: str,
    after: int = 0,
    *,
    through: int | None = None,
    limit: int | None = None,
    only: Collection[str] | None = None,
) -> list[Line]:
    """As `Store.read`."""
    id = db.task_id(task)
    names = {
        name_id: f"{extension}.{kind}"
        for name_id, extension, kind in db.all("SELECT id, extension, kind FROM name")
    }
    where = "id > ? AND id <= ?"
    values = [place(id, after), place(id, LAST_SEQ if through is None else through)]
    if only is not None:
        chosen = [i for i, name in names.items() if name in only or name.partition(".")[0] in only]
        where += f" AND name IN ({', '.join('?' * len(chosen))})"
        values += chosen
    sql = f"SELECT seq, line, name, message FROM record WHERE {where} ORDER BY id LIMIT ?"
    rows = db.all(sql, *values, upto(limit))
    try:
        # `Line(...)` goes through a function in Python, which would take a fifth of the time of reading.
        new = tuple.__new__
        return [new(Line, (seq, line, names[name], message == 1)) for seq, line, name, message in rows]
    except KeyError as error:
        raise Corrupt(
            f"{db.path}: a record of {task!r} has a name that is not there. Copy the file aside, then take a"
            " backup.",
            reason="row",
        ) from error


def messages(
    db: Database, task: str, after: int = 0, *, through: int | None = None
) -> list[tuple[int, bytes]]:
    """As `Store.messages`."""
    id = db.task_id(task)
    sql = "SELECT seq, line FROM record WHERE id > ? AND id <= ? AND message ORDER BY id"
    return db.all(sql, place(id, after), place(id, LAST_SEQ if through is None else through))


def inbox(db: Database, task: str, limit: int) -> list[InboxItem]:
    """As `Store.inbox`."""
    sql = (
        "SELECT n, key, kind, body FROM inbox INDEXED BY inbox_unread"
        " WHERE task = ? AND body IS NOT NULL ORDER BY n LIMIT ?"
    )
    rows = db.all(sql, db.task_id(task), upto(limit))
    return [InboxItem(n=n, key=key, kind=kind, body=body) for n, key, kind, body in rows]


def timers(db: Database, task: str) -> list[Timer]:
    """As `Store.timers`."""
    rows = db.all("SELECT name, gen, at, text FROM timer WHERE task = ? ORDER BY name", db.task_id(task))
    return [Timer(name=name, gen=gen, at=at, text=text) for name, gen, at, text in rows]


def snapshot(db: Database, task: str) -> list[SnapshotPart]:
    """As `Store.snapshot`."""
    rows = db.all("SELECT name, fingerprint, seq, data FROM part WHERE task = ?", db.task_id(task))
    return [SnapshotPart(name=name, fingerprint=mark, seq=seq, data=data) for name, mark, seq, data in rows]


def read_blob(db: Database, sha256: str) -> bytes | None:
    """As `Store.read_blob`."""
    row = db.one("SELECT data FROM blob WHERE sha256 = ?", sha256)
    return None if row is None else bytes(row[0])


NEXT_WAKE = """
SELECT min(at) FROM (
    SELECT min(at) AS at FROM timer CROSS JOIN task ON task.id = timer.task
    WHERE status = 'waiting' AND (text = '' OR reason = 'idle')
    UNION ALL
    SELECT min(retry_at) FROM task WHERE status = 'waiting' AND retry_at IS NOT NULL
)
"""


def next_wake(db: Database) -> float | None:
    """As `Store.next_wake`."""
    (at,) = db.one(NEXT_WAKE)
    return None if at is None else float(at)
