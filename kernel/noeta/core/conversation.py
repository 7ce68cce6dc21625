"""The conversation of a task: an append-only sequence shared between copies, decoded on access.

Copies cost O(1), whatever the length, so a hook can be shown a state with its own staged records folded in.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, overload

from msgspec import Struct

from noeta.core.messages import Message, ToolResult, decode_message


class Item(Struct, frozen=True, gc=False):
    """One message of the conversation, still encoded.

    `seq` is its record's, `raw` its message. `before` is the seq of the last record before it that carried a
    message, whatever became of that. `part` is 0, or the place in a compaction that made several messages,
    counted from 1.
    """

    seq: int
    raw: bytes
    before: int = 0
    part: int = 0

    @property
    def data(self) -> bytes:
        """The message, encoded."""
        return self.raw

    @property
    def message(self) -> Message:
        """The message, decoded now."""
        return decode_message(self.data)

    @property
    def paired(self) -> bool:
        """Whether this is a reply, or the result of a call of one."""
        message = self.message
        return message.role == "assistant" or any(isinstance(block, ToolResult) for block in message.content)


@dataclass(slots=True, eq=False, repr=False)
class Conversation(Sequence[Item]):
    """The items a request is made of, in the order the model sees them.

    Settled items keep their place for ever, save for a compaction or an erasure. The tail behind them is what
    came since the last reply: the results of its calls, in call order, then everything else. It settles when
    the next reply says what its request was built from, so nothing ever stands between a call and its result.

    - `settled` may be shared with copies that have grown past this one: its first `length` items are this
      one's. A compaction or an erasure puts another list in its place.
    - `tail` is each copy's own. It is short, so what a hook is shown of the records on their way costs
      nothing that grows with the conversation; only a second reply makes two copies part.
    - `placed` are the call indexes of the results that the tail begins with, ascending.
    - `last_seq` is the seq of the last record that carried a message.
    """

    settled: list[Item] = field(default_factory=list)
    length: int = 0
    tail: list[Item] = field(default_factory=list)
    placed: tuple[int, ...] = ()
    last_seq: int = 0

    def copy(self) -> Conversation:
        """A conversation of the same items, in O(its tail)."""
        return Conversation(self.settled, self.length, self.tail[:], self.placed, self.last_seq)

    def add(self, seq: int, data: bytes) -> None:
        """Put a message at the end."""
        self.tail.append(Item(seq, data, self.last_seq))
        self.last_seq = seq

    def add_reply(self, seq: int, data: bytes, built_at: int) -> None:
        """Put a reply right behind the items of its request, which was built at seq `built_at`."""
        tail, results = self.tail, len(self.placed)
        at = len(tail)
        # Behind the results the tail is in the order of seqs, so what came after the request is at its end.
        while at > results and tail[at - 1].seq > built_at:
            at -= 1
        self.tail = tail[at:]
        tail[at:] = (Item(seq, data, self.last_seq),)
        if len(self.settled) != self.length:
            # A copy has grown past this one, so the list is no longer ours to extend.
            self.settled = self.settled[: self.length]
        self.settled += tail
        self.length = len(self.settled)
        self.placed, self.last_seq = (), seq

    def add_result(self, seq: int, data: bytes, index: int) -> None:
        """Put the result of the reply's call `index` behind those of earlier calls."""
        placed = self.placed
        at = bisect(placed, index) if placed else 0
        self.tail.insert(at, Item(seq, data, self.last_seq))
        self.placed = (*placed[:at], index, *placed[at:]) if placed else (index,)
        self.last_seq = seq

    def erase(self, seqs: Iterable[int]) -> None:
        """Take the items of these records out.

        Replies and results stay, so that no call is left without one.
        """
        named = set(seqs)
        gone = {item.seq for item in self if item.seq in named and not item.paired}
        self._rebuild([], lambda item: item.seq not in gone)

    def compact(
        self, seq: int, through: int, keep: list[int], ahead: list[bytes], after: list[bytes]
    ) -> None:
        """Replace the items up to seq `through`: by `ahead`, those whose seq is in `keep`, then `after`."""
        kept = set(keep)
        made = [Item(seq, data, self.last_seq, i) for i, data in enumerate((*ahead, *after), 1)]
        old = [item for item in self if item.seq <= through and item.seq in kept]
        front = [*made[: len(ahead)], *old, *made[len(ahead) :]]
        self._rebuild(front, lambda item: item.seq > through)
        if made:
            self.last_seq = seq

    def _rebuild(self, front: list[Item], stays: Callable[[Item], bool]) -> None:
        """Start again from `front` and the items that stay."""
        tail = self.tail
        self.placed = tuple(i for i, item in zip(self.placed, tail, strict=False) if stays(item))
        self.settled = [*front, *filter(stays, islice(self.settled, self.length))]
        self.length = len(self.settled)
        self.tail = list(filter(stays, tail))

    def __len__(self) -> int:
        return self.length + len(self.tail)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        at = range(len(self))[index]
        return self.settled[at] if at < self.length else self.tail[at - self.length]

    def __iter__(self) -> Iterator[Item]:
        return chain(islice(self.settled, self.length), self.tail)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conversation) and self._key() == other._key()

    def _key(self) -> tuple[Any, ...]:
        # `before` and `last_seq` only tell neighbours apart, and a restored item does not know its own.
        return self.placed, self.length, [(item.seq, item.part, item.data) for item in self]
