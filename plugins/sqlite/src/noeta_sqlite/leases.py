"""Leases: one a worker, for all it holds, on the clock of this machine since it was started."""

from __future__ import annotations

from noeta_sqlite.database import Database


def ran_out(db: Database, worker: str) -> bool:
    """Whether the worker's lease ended while it held something. That stays so."""
    row = db.one("SELECT boot, until FROM worker WHERE worker = ?", worker)
    return row is not None and (row[0] != db.boot or row[1] < db.clock.monotonic())


def extend(db: Database, worker: str, seconds: float) -> None:
    """Let the lease of a worker that holds something end that many seconds from now."""
    db.run(
        "INSERT INTO worker (worker, boot, until) SELECT ?1, ?2, ?3"
        " WHERE EXISTS (SELECT 1 FROM task WHERE worker = ?1 AND token IS NOT NULL)"
        " ON CONFLICT (worker) DO UPDATE SET until = ?3",
        worker,
        db.boot,
        db.clock.monotonic() + seconds,
    )


def all_lost(db: Database) -> list[str]:
    """The workers whose lease ran out while they held something, the longest lost first."""
    sql = "SELECT worker FROM worker WHERE boot != ?1 OR until < ?2 ORDER BY boot = ?1, until"
    return [worker for (worker,) in db.all(sql, db.boot, db.clock.monotonic())]


def give_up(db: Database, worker: str) -> None:
    """Drop the lease of a worker that holds nothing any more.

    One that ran out stays, for the worker may come back; not after the machine has stopped, for it cannot.
    """
    db.run(
        "DELETE FROM worker WHERE worker = ?1 AND (boot != ?2 OR until >= ?3)"
        " AND NOT EXISTS (SELECT 1 FROM task WHERE worker = ?1 AND token IS NOT NULL)",
        worker,
        db.boot,
        db.clock.monotonic(),
    )
