"""The conversation of a task: an append-only sequence shared between copies, decoded on access.

Copies cost O(1), whatever the length, so a hook can be shown a state with its own staged records folded in.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, TypeVar, overload

from msgspec import Struct

from noeta.core.codec import Line, decode
from noeta.core.messages import Message, ToolResult, decode_message

T = TypeVar("T")


class Shared(Sequence[T], Generic[T]):
    """A sequence that grows at its end. Copies share one list, each through its own length."""

    __slots__ = ("_length", "_list")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._list = list(items)
        self._length = len(self._list)

    def copy(self) -> Shared[T]:
        """Another handle on the same items, in O(1); what one of the two adds, the other does not see."""
        other: Shared[T] = Shared.__new__(Shared)
        other._list, other._length = self._list, self._length
        return other

    def extend(self, items: Iterable[T]) -> None:
        """Add `items` at the end."""
        mine = self._list
        if len(mine) != self._length:
            # Another handle has grown past this one, so the list is no longer ours to extend.
            mine = self._list = mine[: self._length]
        mine += items
        self._length = len(mine)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            return (
                self._list[start:stop:step] if step > 0 else [self._list[i] for i in range(start, stop, step)]
            )
        return self._list[range(self._length)[index]]

    def __iter__(self) -> Iterator[T]:
        return islice(self._list, self._length)


class Item(Struct, frozen=True, gc=False):
    """One message of the conversation, still encoded.

    `seq` is its record's. `raw` is the message, or with `whole` the line of its record: a task is picked up
    with thousands of items, so what can be done later is. `before` is the seq of the last record before it
    that carried a message, whatever became of that. `part` is 0, or the place in a compaction that made
    several messages, counted from 1.
    """

    seq: int
    raw: bytes
    before: int = 0
    part: int = 0
    whole: bool = False

    @property
    def data(self) -> bytes:
        """The message, encoded; empty when `raw` is damaged."""
        return bytes(decode(Line(self.seq, self.raw)).message) if self.whole else self.raw

    @property
    def message(self) -> Message:
        """The message, decoded now."""
        return decode_message(self.data)

    @property
    def paired(self) -> bool:
        """Whether this is a reply, or the result of a call of one."""
        message = self.message
        return message.role == "assistant" or any(isinstance(block, ToolResult) for block in message.content)

    @property
    def key(self) -> tuple[int, int, bytes]:
        """What makes two items equal."""
        return self.seq, self.part, self.data


class Run(NamedTuple):
    """Neighbours among the settled items, by their records.

    With `part` 0: all messages recorded from seq `first` to seq `last`. Else the parts `part` to `last` of
    the compaction at seq `first`.
    """

    first: int
    last: int
    part: int = 0


class Conversation(Sequence[Item]):
    """The items a request is made of, in the order the model sees them.

    Settled items keep their place for ever, save for a compaction or an erasure. The tail behind them is what
    came since the last reply: the results of its calls, in call order, then everything else. It settles when
    the next reply says what its request was built from, so nothing ever stands between a call and its result.
    """

    __slots__ = ("_hashed", "_hasher", "_in_runs", "_placed", "_runs", "_settled", "_tail", "last_seq")

    def __init__(self) -> None:
        self._settled: Shared[Item] = Shared()
        # The tail is short and each copy has its own. So only a second reply makes two copies part, and what
        # a hook is shown of the records on their way costs nothing that grows with the conversation.
        self._tail: list[Item] = []
        # The call indexes of the results at the head of the tail, ascending.
        self._placed: tuple[int, ...] = ()
        # Runs of the first `_in_runs` settled items; they are brought up to date when asked for.
        self._runs: list[Run] = []
        self._in_runs = 0
        self._hasher, self._hashed = sha256(), 0
        self.last_seq: int = 0

    def copy(self) -> Conversation:
        """A conversation of the same items, in O(its tail)."""
        other = Conversation.__new__(Conversation)
        other._settled, other._tail, other._placed = self._settled.copy(), self._tail[:], self._placed
        other._hasher, other._hashed = self._hasher.copy(), self._hashed
        other._runs, other._in_runs, other.last_seq = self._runs, self._in_runs, self.last_seq
        return other

    @classmethod
    def restored(
        cls, settled: Iterable[Item], tail: Iterable[Item], placed: Iterable[int], last_seq: int
    ) -> Conversation:
        """The conversation whose `settled` items, `tail`, `placed` and `last_seq` were kept in a snapshot."""
        conversation = cls()
        conversation._settled, conversation._tail = Shared(settled), list(tail)
        conversation._placed, conversation.last_seq = tuple(placed), last_seq
        return conversation

    @property
    def runs(self) -> list[Run]:
        """The settled items in short."""
        # A new list each time, since copies of this conversation may hold the old one.
        runs = list(self._runs)
        for item in self._settled[self._in_runs :]:
            last = runs[-1] if runs else None
            if last and not item.part and not last.part and item.before == last.last:
                runs[-1] = Run(last.first, item.seq)
            elif last and item.part and last.part and (item.seq, item.part) == (last.first, last.last + 1):
                runs[-1] = Run(last.first, item.part, last.part)
            else:
                runs.append(Run(item.seq, item.part or item.seq, item.part))
        self._runs, self._in_runs = runs, len(self._settled)
        return list(runs)

    @property
    def tail(self) -> list[Item]:
        """The items that came since the last reply."""
        return list(self._tail)

    @property
    def placed(self) -> tuple[int, ...]:
        """The call indexes of the results that the tail begins with."""
        return self._placed

    def add(self, seq: int, data: bytes) -> None:
        """Put a message at the end."""
        self._tail.append(Item(seq, data, self.last_seq))
        self.last_seq = seq

    def add_reply(self, seq: int, data: bytes, built_at: int) -> None:
        """Put a reply right behind the items of its request, which was built at seq `built_at`."""
        tail, results = self._tail, len(self._placed)
        at = len(tail)
        # Behind the results the tail is in the order of seqs, so what came after the request is at its end.
        while at > results and tail[at - 1].seq > built_at:
            at -= 1
        self._tail = tail[at:]
        tail[at:] = (Item(seq, data, self.last_seq),)
        self._settled.extend(tail)
        self._placed, self.last_seq = (), seq

    def add_result(self, seq: int, data: bytes, index: int) -> None:
        """Put the result of the reply's call `index` behind those of earlier calls."""
        placed = self._placed
        at = bisect(placed, index) if placed else 0
        self._tail.insert(at, Item(seq, data, self.last_seq))
        self._placed = (*placed[:at], index, *placed[at:]) if placed else (index,)
        self.last_seq = seq

    def erase(self, seqs: Iterable[int]) -> None:
        """Take the items of these records out.

        Replies and results stay, so that no call is left without one.
        """
        named = set(seqs)
        gone = {item.seq for item in self if item.seq in named and not item.paired}
        self._rebuild([item for item in self._settled if item.seq not in gone], gone.__contains__)

    def compact(
        self, seq: int, through: int, keep: Iterable[int], ahead: Sequence[bytes], after: Sequence[bytes]
    ) -> None:
        """Replace the items up to seq `through`: by `ahead`, those whose seq is in `keep`, then `after`."""
        kept = set(keep)
        made = [Item(seq, data, self.last_seq, i) for i, data in enumerate((*ahead, *after), 1)]
        old = [item for item in self if item.seq <= through and item.seq in kept]
        new = [item for item in self._settled if item.seq > through]
        self._rebuild([*made[: len(ahead)], *old, *made[len(ahead) :], *new], lambda seq: seq <= through)
        if made:
            self.last_seq = seq

    def _rebuild(self, settled: list[Item], gone: Callable[[int], bool]) -> None:
        """Start again from `settled` and the items of the tail whose seq is not `gone`."""
        tail = self._tail
        self._placed = tuple(i for i, item in zip(self._placed, tail, strict=False) if not gone(item.seq))
        self._settled, self._tail = Shared(settled), [item for item in tail if not gone(item.seq)]
        self._runs, self._in_runs = [], 0
        self._hasher, self._hashed = sha256(), 0

    @property
    def size(self) -> int:
        """The bytes of all items."""
        return sum(len(item.data) for item in self)

    def digest(self) -> bytes:
        """The sha-256 of all items in order. Costs what is new since the last call."""
        for item in self._settled[self._hashed :]:
            _hash(self._hasher, item)
        self._hashed = len(self._settled)
        hasher = self._hasher.copy()
        for item in self._tail:
            _hash(hasher, item)
        return hasher.digest()

    def __len__(self) -> int:
        return len(self._settled) + len(self._tail)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        settled = len(self._settled)
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return (
                    self._settled[start:stop] + self._tail[max(start - settled, 0) : max(stop - settled, 0)]
                )
            return [self[i] for i in range(start, stop, step)]
        at = range(len(self))[index]
        return self._settled[at] if at < settled else self._tail[at - settled]

    def __iter__(self) -> Iterator[Item]:
        return chain(self._settled, self._tail)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conversation):
            return NotImplemented
        mine, theirs = (self._placed, len(self._settled)), (other._placed, len(other._settled))
        # `before` and `last_seq` only tell neighbours apart, and a restored item does not know its own.
        return mine == theirs and [i.key for i in self] == [i.key for i in other]


def _hash(hasher: Any, item: Item) -> None:
    # The length ahead keeps two items from reading like one.
    hasher.update(b"%d " % len(item.data))
    hasher.update(item.data)
