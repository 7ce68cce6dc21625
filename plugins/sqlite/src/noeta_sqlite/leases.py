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


def give_up(db: Database, worker: str) -> None:
    """Drop the lease of a worker that holds nothing any more."""
    if not ran_out(db, worker):
        db.run(
            "DELETE FROM worker WHERE worker = ?1"
            " AND NOT EXISTS (SELECT 1 FROM task WHERE worker = ?1 AND token IS NOT NULL)",
            worker,
        )
