"""What the tests of the store share: both event loops, a place for the file, a store that gets closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from noeta.toolkit.store import Line, NewTask
from noeta_sqlite import SqliteStore

Opened = Callable[..., AbstractAsyncContextManager[SqliteStore]]


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run an async test once on each event loop."""
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store goes: a file in a folder of its own."""
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "noeta.db"


@pytest.fixture
def opened() -> Opened:
    """Open a store for the length of a block."""

    @asynccontextmanager
    async def opened(path: Path, **settings: Any) -> AsyncIterator[SqliteStore]:
        store = SqliteStore(path, **{"synchronous": "NORMAL", **settings})
        try:
            yield store
        finally:
            await store.aclose()

    return opened


@pytest.fixture
def new_task() -> Callable[..., NewTask]:
    """A task to create, with one record for each text."""

    def new_task(name: str, texts: Sequence[str] = ("hello",), **values: Any) -> NewTask:
        lines = [
            Line(seq, f'{{"seq":{seq},"at":1700000000.5,"data":"{text}"}}'.encode(), "probe.noted")
            for seq, text in enumerate(texts, values.get("through", 0) + 1)
        ]
        return NewTask(**{"task": name, "agent": "probe", "root": name, "lines": lines, **values})

    return new_task


@pytest.fixture
def disk() -> Callable[[Path], dict[str, bytes | None]]:
    """All that is in a folder: a name and its bytes, None for a folder."""

    def disk(folder: Path) -> dict[str, bytes | None]:
        return {
            str(file.relative_to(folder)): file.read_bytes() if file.is_file() else None
            for file in sorted(folder.rglob("*"))
        }

    return disk
