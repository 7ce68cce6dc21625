"""What the tests share: both event loops, and the model that is loaded once for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from noeta_llamacpp import LlamaCpp


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run an async test once on each event loop."""
    return str(request.param)


@pytest.fixture(scope="session")
def local() -> Iterator[LlamaCpp]:
    """The provider with the model that ships."""
    provider = LlamaCpp()
    yield provider
    anyio.run(provider.aclose)
