"""The durable store of one machine: a task's log, inbox, claims and timers in one SQLite file."""

from noeta_sqlite.reader import SqliteReader as SqliteReader
from noeta_sqlite.store import SqliteStore as SqliteStore
from noeta_sqlite.store import open_store as open_store
from noeta_sqlite.upkeep import Stats as Stats

__all__ = ["SqliteReader", "SqliteStore", "Stats", "open_store"]
