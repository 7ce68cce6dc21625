"""The durable store of one machine: a task's log, inbox, claims and timers in one SQLite file."""

from typing import TYPE_CHECKING

from noeta_sqlite.reader import SqliteReader as SqliteReader
from noeta_sqlite.upkeep import Stats as Stats

if TYPE_CHECKING:
    from noeta_sqlite.store import SqliteStore as SqliteStore
    from noeta_sqlite.store import open_store as open_store

__all__ = ["SqliteReader", "SqliteStore", "Stats", "open_store"]


def __getattr__(name: str) -> object:
    # Who only reads needs no event loop, which takes longer to import than all the rest.
    if name not in __all__:
        raise AttributeError(f"module 'noeta_sqlite' has no attribute {name!r}")
    from noeta_sqlite import store

    return getattr(store, name)


del TYPE_CHECKING
