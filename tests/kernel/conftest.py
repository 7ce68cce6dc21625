"""What the kernel's tests share: a short view of a conversation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noeta.core.messages import ToolResult
from noeta.core.state import TaskState


@pytest.fixture
def shown() -> Callable[[TaskState], list[str]]:
    """Return the conversation in short: each item's text, or the call it answers."""

    def words(state: TaskState) -> list[str]:
        found = []
        for item in state.conversation:
            message = item.message
            results = [block.call for block in message.content if isinstance(block, ToolResult)]
            found.append(results[0] if results else message.text)
        return found

    return words
