"""What every test here shares: both event loops, a log to write, property tests that repeat in CI."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

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
