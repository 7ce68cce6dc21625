"""Claims, timers, erasure and sweeping: what happens to tasks besides their own steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from noeta.toolkit.store import Claim, Conflict, Fenced, Line, timer_post
from noeta_sqlite.database import Database, upto
from noeta_sqlite.leases import all_lost, extend, give_up, ran_out
from noeta_sqlite.schema import LAST_SEQ, place
from noeta_sqlite.tasks import accept, change, check_claim, row_of, touch


def claim(
    db: Database,
    worker: str,
    *,
    lease: float,
    limit: int,
    queues: Collection[str] | None,
    agents: Collection[str] | None,
    task: str | None,
    version: int,
) -> list[Claim]:
    """As `Store.claim`."""
    if ran_out(db, worker):
        raise Fenced(f"the lease of worker {worker!r} ran out", reason="lease")
    where = "version <= ?"
    values: list[Any] = [version]
    for column, wanted in (("queue", queues), ("agent", agents), ("task", None if task is None else [task])):
        if wanted is not None:
            where += f" AND {column} IN ({', '.join('?' * len(wanted))})"
            values += wanted
    columns = "id, task, worker, token, status, fence, attempts"
    # Those whose worker was lost have waited for as long as its lease ran, so they come first.
    lost = (
        f"SELECT {columns} FROM task INDEXED BY task_worker WHERE worker = ? AND token IS NOT NULL"
        f" AND {where} LIMIT ?"
    )
    rows: list[Any] = []
    for gone in all_lost(db):
        rows += db.all(lost, gone, *values, upto(limit - len(rows)))
    if len(rows) < limit:
        wanting = f"SELECT {columns} FROM task WHERE turn IS NOT NULL AND {where} ORDER BY turn LIMIT ?"
        rows += db.all(wanting, *values, upto(limit - len(rows)))
    claims = [_take(db, worker, *row) for row in rows]
    extend(db, worker, lease)
    return claims


def _take(
    db: Database,
    worker: str,
    id: int,
    task: str,
    holder: str,
    token: Any,
    status: str,
    fence: int,
    attempts: int,
) -> Claim:
    new = Claim(
        task=task,
        fence=fence + 1,
        token=db.ids.token(),
        worker=worker,
        attempts=attempts + 1,
        unreleased=token is not None,
    )
    change(db, id, fence=new.fence, token=new.token, worker=worker, attempts=new.attempts)
    if status == "ready":
        change(db, id, status="running")
    if holder:
        give_up(db, holder)
    touch(db, id, task, "row")
    return new


def renew(db: Database, worker: str, lease: float) -> bool:
    """As `Store.renew`."""
    if ran_out(db, worker):
        return False
    extend(db, worker, lease)
    return True


DUE = """
SELECT at, name, gen, text, task.id, task.task FROM timer CROSS JOIN task ON task.id = timer.task
WHERE at <= ?1 AND status = 'waiting' AND (text = '' OR reason = 'idle')
UNION ALL
SELECT retry_at, NULL, NULL, NULL, id, task FROM task WHERE retry_at <= ?1 AND status = 'waiting'
ORDER BY 1 LIMIT ?2
"""


def fire_timers(db: Database, limit: int) -> int:
    """As `Store.fire_timers`."""
    due = db.all(DUE, db.clock.now(), upto(limit))
    for _, name, gen, text, id, task in due:
        if name is None:
            change(db, id, status="ready", reason="", retry_at=None)
            touch(db, id, task)
        else:
            db.run("DELETE FROM timer WHERE task = ? AND name = ?", id, name)
            accept(db, id, task, timer_post(task, name, gen, text))
    return len(due)


def purge(db: Database, claim: Claim, stones: Sequence[Line], blobs: Collection[str]) -> None:
    """As `Store.purge`."""
    row = row_of(db, claim.task)
    check_claim(row, claim)
    for stone in stones:
        sql = "UPDATE record SET line = ?, message = ? WHERE id = ?"
        if not db.run(sql, stone.data, stone.message, place(row.id, stone.seq)).rowcount:
            raise Conflict(f"the log of {claim.task!r} has no seq {stone.seq} of its own", reason="seq")
    db.run("DELETE FROM part WHERE task = ?", row.id)
    db.run("INSERT INTO leftover DEFAULT VALUES")
    db.erased = True
    db.each("DELETE FROM hold WHERE sha256 = ? AND task = ?", [(name, row.id) for name in blobs])
    _drop_blobs(db, blobs)


SWEPT = """
SELECT DISTINCT root FROM task AS over INDEXED BY task_ended WHERE status = 'ended' AND updated_at < ?1
AND NOT EXISTS (
    SELECT 1 FROM task WHERE root = over.root AND (status != 'ended' OR updated_at >= ?1)
)
AND NOT EXISTS (
    SELECT 1 FROM task CROSS JOIN worker ON worker.worker = task.worker
    WHERE root = over.root AND token IS NOT NULL AND boot = ?3 AND until >= ?4
)
AND NOT EXISTS (
    SELECT 1 FROM task AS base CROSS JOIN task AS other ON other.base = base.task AND other.base != ''
    WHERE base.root = over.root AND other.root != over.root
)
LIMIT ?2
"""


def sweep(db: Database, ended_before: float, limit: int) -> list[str]:
    """As `Store.sweep`."""
    gone: list[str] = []
    for (root,) in db.all(SWEPT, ended_before, upto(limit), db.boot, db.clock.monotonic()):
        for id, task, worker in db.all("SELECT id, task, worker FROM task WHERE root = ?", root):
            blobs = [name for (name,) in db.all("SELECT sha256 FROM hold WHERE task = ?", id)]
            db.run("DELETE FROM record WHERE id BETWEEN ? AND ?", place(id, 0), place(id, LAST_SEQ))
            for table in ("inbox", "timer", "part", "hold"):
                db.run(f"DELETE FROM {table} WHERE task = ?", id)
            db.run("DELETE FROM task WHERE id = ?", id)
            _drop_blobs(db, blobs)
            if worker:
                give_up(db, worker)
            gone.append(task)
    return gone


def _drop_blobs(db: Database, names: Collection[str]) -> None:
    free = "DELETE FROM blob WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM hold WHERE hold.sha256 = ?1)"
    db.each(free, [(name,) for name in names])
