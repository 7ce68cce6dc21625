"""What every test here shares: event loops, a log to write and to show, property tests that repeat in CI."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import settings

from noeta.core.messages import ToolResult
from noeta.core.state import TaskState
from noeta.testing.log_writer import LogWriter

settings.register_profile("dev")
# The same examples on every run and no time limit, so that a slow machine or a lucky draw changes nothing.
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run an async test once on each event loop."""
    return str(request.param)


@pytest.fixture
def log() -> LogWriter:
    """Write a log record by record."""
    return LogWriter()


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
