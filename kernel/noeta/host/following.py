"""Following a task: its records, and between them what is only told live."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from noeta.core.ports import Delta
from noeta.core.records import CORE, Recorded
from noeta.host.bell import Bell
from noeta.host.context import Progress
from noeta.host.models import Reset
from noeta.host.reading import Reader
from noeta.host.waiting import Waiting
from noeta.toolkit.store import Store

Live = Delta | Reset | Progress
"""What is told live: a piece of a reply, that the pieces so far are void, what a call reports."""
SETTLING = frozenset({"model_replied", "model_failed", "turn_done", "turn_failed", "interrupted"})
"""Core kinds that settle what was told live before them."""
MAX_PIECES = 10_000
LOOK_SECONDS = 5.0


class Followers:
    """Who follows tasks in this process, and the pieces of each reply under way, for who comes late."""

    def __init__(self) -> None:
        self._followers: dict[str, set[_Follower]] = {}
        self._under_way: dict[str, list[tuple[int, Live]]] = {}
        # Whose reply under way is too long to be told from its beginning, and the seq it is told at.
        self._too_long: dict[str, int] = {}

    def tell(self, task: str, seq: int, piece: object) -> None:
        """A piece of a task that is at `seq`; None when the task does not run here any more."""
        if piece is None:
            self._under_way.pop(task, None)
            self._too_long.pop(task, None)
            return
        assert isinstance(piece, Live)
        known = self._under_way.setdefault(task, [])
        if isinstance(piece, Reset) or self._too_long.get(task, seq) != seq:
            self._too_long.pop(task, None)
        if len(known) >= MAX_PIECES:
            self._too_long[task] = seq
        if isinstance(piece, Reset) or task in self._too_long or (known and known[-1][0] != seq):
            known.clear()
        if not isinstance(piece, Reset) and task not in self._too_long:
            known.append((seq, piece))
        for follower in self._followers.get(task, ()):
            follower.add(seq, piece)

    @contextmanager
    def of(self, task: str) -> Iterator[_Follower]:
        """One more follower of the task."""
        follower = _Follower(list(self._under_way.get(task, ())), self._too_long.get(task))
        self._followers.setdefault(task, set()).add(follower)
        try:
            yield follower
        finally:
            self._followers[task].discard(follower)
            if not self._followers[task]:
                del self._followers[task]


class _Follower:
    """The pieces that one follower has not taken yet.

    A reply is told from its beginning or not at all: the rest of one whose beginning is lost, told at the seq
    `lost`, is left to its record.
    """

    def __init__(self, pieces: list[tuple[int, Live]], lost: int | None = None) -> None:
        self.bell = Bell()
        self._pieces, self._lost = pieces, lost

    def add(self, seq: int, piece: Live) -> None:
        if isinstance(piece, Reset) or self._lost not in (None, seq):
            self._lost = None
        if self._lost is not None:
            return
        if len(self._pieces) >= MAX_PIECES:
            # Who does not listen gets the records alone.
            self._pieces, self._lost = [(seq, Reset())], seq
        else:
            self._pieces.append((seq, piece))
        self.bell.ring()

    def take(self) -> list[tuple[int, Live]]:
        pieces, self._pieces = self._pieces, []
        return pieces


async def follow(
    store: Store, reader: Reader, followers: Followers, waiting: Waiting, task: str, after: int = 0
) -> AsyncGenerator[Recorded | Live, None]:
    """The task's records behind `after`, then new ones and what is told live, until the task has ended.

    A record comes once and in order. The pieces of a reply come before its record and never after it; live
    pieces come from the worker of this process alone. Who stops early closes it (`contextlib.aclosing`).
    Raises `RuntimeError` when there is more to wait for and the host is left.
    """
    settled = 0
    with followers.of(task) as follower:
        async with store.watch(task) as watch:
            while True:
                ended, pieces, seen = (await store.task(task)).status == "ended", follower.take(), after
                async with aclosing(reader.records(task, after)) as records:
                    async for record in records:
                        after = record.seq
                        if record.extension == CORE and record.kind in SETTLING:
                            settled = record.seq
                        yield record
                # What a piece was told after is durable, and was read just now.
                for seq, piece in pieces:
                    if seq >= settled:
                        yield piece
                if after == seen and not pieces:
                    if ended:
                        return
                    await waiting.on(follower.bell, watch, LOOK_SECONDS)
