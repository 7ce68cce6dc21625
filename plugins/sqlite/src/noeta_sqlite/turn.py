"""The lock that writers queue for, kept open from one transaction to the next."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path

from noeta_sqlite.looking import beside


class Turn:
    """As `in_turn`, again and again: opening the file each time costs more than a small transaction."""

    def __init__(self, path: Path) -> None:
        self._lock = str(beside(path, ".lock"))
        self._handle: int | None = None
        _all.add(self)

    def __enter__(self) -> None:
        while True:
            if self._handle is None:
                self._handle = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX)
            # Whoever deletes the lock file must not let two processes hold it at once.
            try:
                if os.path.samestat(os.fstat(self._handle), os.stat(self._lock)):  # noqa: PTH116
                    return
            except FileNotFoundError:
                pass
            self.close()

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the lock's file, which gives the lock up."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


_all: weakref.WeakSet[Turn] = weakref.WeakSet()


def _close_all() -> None:
    """In a process just forked: it has the handles too, and would hold a lock on for a parent that dies."""
    for turn in list(_all):
        turn.close()


os.register_at_fork(after_in_child=_close_all)
