"""What the kernel does with tasks is shown in memory and, where that plugin is there, in a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

from noeta.testing import harness

RUNNING = ("test_runner", "test_known_faults", "test_semantics_")
STORES = ["memory", *(["sqlite"] if find_spec("noeta_sqlite") else [])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of tasks at work once with each store."""
    if metafunc.module.__name__.rpartition(".")[2].startswith(RUNNING):
        metafunc.fixturenames.append("kept_in")
        metafunc.parametrize("kept_in", STORES, indirect=True)


@pytest.fixture
def kept_in(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Have every harness without a store of its own keep its tasks there."""
    opened: list[Any] = []
    if request.param == "sqlite":
        from noeta_sqlite import SqliteStore

        def file(clock: Any, ids: Any) -> Any:
            opened.append(
                SqliteStore(tmp_path / f"{len(opened)}.db", clock=clock, ids=ids, synchronous="NORMAL")
            )
            return opened[-1]

        monkeypatch.setattr(harness, "InMemoryStore", file)
    yield request.param
    for store in opened:
        anyio.run(store.aclose)
