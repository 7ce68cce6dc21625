"""The SQLite store keeps every promise of the port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from noeta.testing.check_store import STORE_CHECKS, StoreCheck, run_check, run_store_machine
from noeta.toolkit.store import Clock, Ids, Store
from noeta_sqlite import SqliteStore

Factory = Callable[[Clock, Ids], AbstractAsyncContextManager[Store]]


@pytest.fixture
def make_store(tmp_path: Path) -> Factory:
    numbers = count()

    @asynccontextmanager
    async def make(clock: Clock, ids: Ids) -> AsyncIterator[Store]:
        store = SqliteStore(tmp_path / f"{next(numbers)}.db", clock=clock, ids=ids, synchronous="NORMAL")
        try:
            yield store
        finally:
            await store.aclose()

    return make


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_the_promise_is_kept(check: StoreCheck, backend: str, make_store: Factory) -> None:
    run_check(check, make_store, backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_random_operations_agree_with_the_model(backend: str, make_store: Factory) -> None:
    run_store_machine(make_store, backend=backend, max_examples=10)
