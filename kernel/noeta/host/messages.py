"""The messages of a request: a conversation as it is at one moment, decoded as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from noeta.core.conversation import Conversation, Item
from noeta.core.messages import Message, encode_message, user

GONE = encode_message(user("[A message that stood here was taken out.]"))
"""Stands in for a message of the person that no model can do without."""


class Messages(Sequence[Message]):
    """The messages of a conversation as it is now. Making one costs the same for any length.

    What a person says comes first and last. Where that was erased, `GONE` stands in its place.
    """

    def __init__(self, conversation: Conversation) -> None:
        items = conversation.copy()
        if not items or items[-1].message.role == "assistant":
            items.add(items.last_seq, GONE)
        self._items: Sequence[Item] = items
        if items[0].message.role != "user":
            self._items = [Item(0, GONE), *items]

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [item.message for item in self._items[index]]
        return self._items[index].message

    @property
    def encoded(self) -> Iterator[bytes]:
        """Each message's JSON, in order: the same bytes as long as the message stays."""
        return (item.data for item in self._items)
