"""The messages of a request: a conversation as it is at one moment, decoded as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from noeta.core.conversation import Conversation
from noeta.core.messages import Message


class Messages(Sequence[Message]):
    """The messages of a conversation as it is now. Making one costs the same for any length."""

    def __init__(self, conversation: Conversation) -> None:
        self._items = conversation.copy()

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
