"""The messages of a request: a conversation as it is at one moment, decoded as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import msgspec
from msgspec import Struct

from noeta.core.conversation import Conversation, Item
from noeta.core.messages import Message, encode_message, user

GONE = encode_message(user("[A message that stood here was taken out.]"))
"""Stands in for a message of the person that no model can do without."""


class Edited(Item, frozen=True, gc=False):
    """A message of no record: the plugin `by` put it into a request just before that was sent."""

    by: str = ""


class Span(NamedTuple):
    """Some neighbours of a list of items, which may grow behind them."""

    items: Sequence[Item]
    start: int
    stop: int


class Messages(Sequence[Message]):
    """The messages of a conversation as it is now. Making one costs the same for any length.

    What a person says comes first and last. Where that was erased, `GONE` stands in its place.
    """

    def __init__(self, conversation: Conversation) -> None:
        settled, length, tail = conversation.settled, conversation.length, conversation.tail[:]
        self._spans: list[Span] = [Span(settled, 0, length), Span(tail, 0, len(tail))]
        first = settled[0] if length else tail[0] if tail else None
        last = tail[-1] if tail else settled[length - 1] if length else None
        if first is None or _role(first) != "user":
            self._spans.insert(0, _GONE)
        if last is not None and _role(last) == "assistant":
            self._spans.append(_GONE)

    def replaced(self, start: int, end: int, items: Sequence[Item]) -> Messages:
        """These messages with `items` in the place of those from `start` to `end` (exclusive)."""
        other = object.__new__(Messages)
        behind = self._cut(max(start, end), len(self))
        other._spans = [*self._cut(0, start), Span(items, 0, len(items)), *behind]
        return other

    def shared(self, other: Messages) -> int:
        """How many messages the two have in common from the first one on.

        Where they share a list, as requests of one conversation do, no message is looked at.
        """
        count, mine, theirs = 0, self._cut(0, len(self)), other._cut(0, len(other))
        while mine and theirs:
            a, b = mine.pop(0), theirs.pop(0)
            size = min(a.stop - a.start, b.stop - b.start)
            if a.items is not b.items or a.start != b.start:
                for i in range(size):
                    x, y = a.items[a.start + i], b.items[b.start + i]
                    if x is not y and x.data != y.data:
                        return count + i
            count += size
            mine[:0] = [a._replace(start=a.start + size)] if a.start + size < a.stop else []
            theirs[:0] = [b._replace(start=b.start + size)] if b.start + size < b.stop else []
        return count

    @property
    def items(self) -> Iterator[Item]:
        """Each message as an item, in order."""
        for items, start, stop in self._spans:
            yield from items[start:stop]

    @property
    def encoded(self) -> Iterator[bytes]:
        """Each message's JSON, in order: the same bytes as long as the message stays."""
        return (item.data for item in self.items)

    def item(self, index: int) -> Item:
        """The item at `index`. Raises `IndexError`."""
        at = index if index >= 0 else index + len(self)
        for items, start, stop in self._spans if at >= 0 else ():
            if at < stop - start:
                return items[start + at]
            at -= stop - start
        raise IndexError(f"there are {len(self)} messages, and none at {index}")

    def _cut(self, start: int, stop: int) -> list[Span]:
        """The spans of the messages from `start` to `stop`, none of them empty."""
        spans, first = [], 0
        for items, begin, end in self._spans:
            low, high = max(start, first), min(stop, first + end - begin)
            if low < high:
                spans.append(Span(items, begin + low - first, begin + high - first))
            first += end - begin
        return spans

    def __len__(self) -> int:
        return sum(stop - start for _, start, stop in self._spans)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self.item(i).message for i in range(len(self))[index]]
        return self.item(index).message

    def __iter__(self) -> Iterator[Message]:
        return (item.message for item in self.items)


class _Role(Struct):
    role: str = "user"


_role_of = msgspec.json.Decoder(_Role).decode


def _role(item: Item) -> str:
    """Who says it, without decoding what."""
    try:
        return _role_of(item.data).role
    except ValueError:
        return item.message.role


_GONE = Span([Item(0, GONE)], 0, 1)
