"""The store in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import anyio
import anyio.to_thread

from noeta.toolkit.in_memory.watches import Change, Signal, Watches
from noeta.toolkit.store import (
    Append,
    Appended,
    Claim,
    Clock,
    Ids,
    InboxItem,
    Line,
    NewTask,
    Post,
    SnapshotPart,
    Store,
    StoreError,
    TaskRow,
    Timer,
    Unavailable,
)
from noeta.toolkit.system import RandomIds
from noeta_sqlite import claims, reads, tasks, upkeep
from noeta_sqlite.clock import BootClock, boot_id
from noeta_sqlite.database import Database
from noeta_sqlite.looking import identities, port_errors
from noeta_sqlite.opening import connect, in_turn
from noeta_sqlite.upkeep import Stats
from noeta_sqlite.urls import place_of
from noeta_sqlite.writer import Reader, Writer

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore(Store):
    """A `Store` in the file at `path`, shared with any number of processes of this machine.

    It belongs to one event loop; open another one for another loop or process. `synchronous` is ``FULL``,
    which survives power loss, or ``NORMAL``, which survives the death of a process and may lose the newest
    commits when the power fails. `network` opens a file on a network file system all the same: then see to it
    that no other machine does.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        synchronous: str = "FULL",
        network: bool = False,
    ) -> None:
        if synchronous not in {"FULL", "NORMAL"}:
            raise ValueError(f"synchronous is {synchronous!r}; it can be 'FULL' or 'NORMAL'")
        if not isinstance(network, bool):
            raise TypeError(f"network is {network!r}; it can be True or False")
        if str(path) in {"", ":memory:"}:
            raise ValueError(f"{str(path)!r} is no file; a store in memory is noeta.toolkit.in_memory")
        # Two names of one file have to lead to one lock, and a change of folder to no other file.
        self.path: Path = Path(path).resolve()
        self._clock: Clock = clock or BootClock()
        self._pid = os.getpid()
        self._watches = Watches(self._clock)
        self._open = True
        connections = [connect(self.path, synchronous=synchronous, network=network)]
        try:
            connections.append(connect(self.path, synchronous=synchronous, network=network))
            with port_errors(self.path):
                files = identities(self.path)
        except StoreError:
            _shut(self.path, connections)
            raise
        to_write, to_read = (
            Database(connection, self.path, files, self._clock, ids or RandomIds(), boot_id())
            for connection in connections
        )
        self._reader = Reader(to_read)
        self._writer = Writer(to_write, self.path, partial(_shut, self.path, connections))
        # A store that nobody closed is closed with the lock held too, at the latest when Python ends.
        self._finish = weakref.finalize(self, _finish, self._reader, self._writer, self._pid)

    async def create(self, new: NewTask) -> None:
        await self._write(tasks.create, new)

    async def append(self, claim: Claim, append: Append) -> Appended:
        return await self._write(tasks.append, claim, append)

    async def post(self, post: Post) -> None:
        await self._write(tasks.post, post)

    async def inbox(self, task: str, limit: int = 100) -> list[InboxItem]:
        return await self._read(reads.inbox, task, limit)

    async def claim(
        self,
        worker: str,
        *,
        lease: float = 30.0,
        limit: int = 1,
        queues: Collection[str] | None = None,
        agents: Collection[str] | None = None,
        task: str | None = None,
        version: int = 1,
    ) -> list[Claim]:
        filters: dict[str, Any] = {"queues": queues, "agents": agents, "task": task, "version": version}
        return await self._write(partial(claims.claim, lease=lease, limit=limit, **filters), worker)

    async def renew(self, worker: str, lease: float = 30.0) -> bool:
        return await self._write(claims.renew, worker, lease)

    async def release(self, claim: Claim) -> None:
        await self._write(tasks.release, claim)

    async def read(
        self,
        task: str,
        after: int = 0,
        *,
        through: int | None = None,
        limit: int | None = None,
        only: Collection[str] | None = None,
    ) -> list[Line]:
        return await self._read(reads.read, task, after, through=through, limit=limit, only=only)

    async def messages(
        self, task: str, after: int = 0, *, through: int | None = None
    ) -> list[tuple[int, bytes]]:
        return await self._read(reads.messages, task, after, through=through)

    async def read_blob(self, sha256: str) -> bytes | None:
        return await self._read(reads.read_blob, sha256)

    async def snapshot(self, task: str) -> list[SnapshotPart]:
        return await self._read(reads.snapshot, task)

    async def fire_timers(self, limit: int = 100) -> int:
        return await self._write(claims.fire_timers, limit)

    async def next_wake(self) -> float | None:
        return await self._read(reads.next_wake)

    async def task(self, task: str) -> TaskRow:
        return await self._read(reads.task, task)

    async def tasks(self, *, after: TaskRow | None = None, limit: int = 100, **wanted: Any) -> list[TaskRow]:
        return await self._read(partial(reads.tasks, after=after, limit=limit, **wanted))

    async def timers(self, task: str) -> list[Timer]:
        return await self._read(reads.timers, task)

    async def purge(self, claim: Claim, stones: Sequence[Line], blobs: Collection[str]) -> None:
        await self._write(claims.purge, claim, stones, blobs)

    async def sweep(self, ended_before: float, limit: int = 100) -> list[str]:
        return await self._write(claims.sweep, ended_before, limit)

    @asynccontextmanager
    async def watch(self, task: str | None = None, *, log: bool = True) -> AsyncIterator[_Watch]:
        self.check()
        with self._watches.watch(task, log=log) as signal, self._writer.told(self._watches.mark_all):
            yield _Watch(self, signal)

    async def aclose(self) -> None:
        """Finish what waits, and close the file. Idempotent."""
        self._open = False
        self._watches.mark_all()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._finish)

    async def backup(self, target: str | Path) -> None:
        """Write all that is durable now to the new file `target`, while others go on. See `upkeep.backup`."""
        self.check()
        await anyio.to_thread.run_sync(upkeep.backup, self.path, Path(target))

    async def compact(self) -> None:
        """Give free room back, and take every trace of what was erased out of the file. Writers wait."""
        self.check()
        await anyio.to_thread.run_sync(upkeep.compact, self.path)

    async def ended_beyond(self, size: int) -> float:
        """What to give to `sweep` so that trees of tasks that have ended take at most `size` bytes.

        Those that ended last are kept. 0 when there is not that much. The bytes are those of records, items,
        snapshots and blobs; a blob counts in each tree that holds it. All of it is looked at, which takes a
        second or more for a GB, while others go on.
        """
        self.check()
        return await anyio.to_thread.run_sync(upkeep.ended_beyond, self.path, size)

    async def stats(self) -> Stats:
        """How much there is, and how it is kept."""
        return await self._read(upkeep.stats)

    async def _write(
        self, work: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self.check()
        changed: dict[str, Change] = {}

        def tracked(db: Database) -> T:
            db.changed = changed
            return work(db, *args, **kwargs)

        result = await self._writer.do(tracked)
        for task, change in changed.items():
            self._watches.mark(task, change)
        return result

    async def _read(
        self, work: Callable[Concatenate[Database, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        self.check()
        return await self._reader.do(lambda db: work(db, *args, **kwargs))

    def check(self) -> None:
        """Raise `Unavailable` when the store was closed, or does not belong to this process."""
        if not self._open:
            raise Unavailable(f"{self.path} was closed. Open the store again.", reason="closed")
        if os.getpid() != self._pid:
            raise Unavailable(
                f"{self.path} was opened before this process was forked. Open it again here.", reason="forked"
            )


class _Watch:
    """Waits for a change made here or by another process."""

    def __init__(self, store: SqliteStore, signal: Signal) -> None:
        self._store = store
        self._signal = signal

    async def wait(self, timeout: float) -> bool:
        self._store.check()
        found = await self._signal.wait(timeout)
        self._store.check()
        return found


def _shut(path: Path, connections: list[sqlite3.Connection]) -> None:
    """Close the connections. The last one moves the log into the file, so the lock is held."""
    with ExitStack() as held:
        # When the folder is gone, so is all that a lock would protect.
        with suppress(OSError):
            held.enter_context(in_turn(path))
        for connection in connections:
            connection.close()


def _finish(reader: Reader, writer: Writer, pid: int) -> None:
    """Close, but never what another process opened: after a fork its connections are not ours."""
    if os.getpid() == pid:
        # The writer closes the connections of both.
        reader.close()
        writer.close()


def open_store(url: str, settings: Mapping[str, Any] | None = None) -> SqliteStore:
    """The store that ``sqlite:PATH`` names, or ``sqlite:PATH?synchronous=NORMAL&network=allow``.

    An option of the URL goes before the same one in `settings`. Raises `ValueError` for a URL that names no
    file, `SettingsError` for an option or setting that there is not, and what `SqliteStore` raises.
    """
    path, chosen = place_of(url, settings or {})
    return SqliteStore(path, synchronous=chosen.synchronous, network=chosen.network == "allow")
