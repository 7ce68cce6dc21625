"""What the tests of the environment share: both event loops, and a place of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from noeta_local import LocalEnv


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run an async test once on each event loop."""
    return str(request.param)


@pytest.fixture
def env(tmp_path: Path) -> LocalEnv:
    """This machine, in an empty folder."""
    return LocalEnv(str(tmp_path), drain=0.3)
