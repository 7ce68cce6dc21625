"""The durable store of one machine: a task's log, inbox, claims and timers in one SQLite file."""

from noeta_sqlite.store import SqliteStore as SqliteStore
from noeta_sqlite.store import open_store as open_store

__all__ = ["SqliteStore", "open_store"]
