"""The kernel's own store keeps the promises of the port. A plugin's tests check the plugin's store."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from noeta.testing.check_store import StoreFactory, check_store
from noeta.toolkit.in_memory import InMemoryStore

STORES: dict[str, StoreFactory] = {
    "in_memory": lambda clock, ids: aclosing(InMemoryStore(clock, ids)),
}


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_store_keeps_its_promises(name: str, backend: str) -> None:
    check_store(STORES[name], backends=[backend])
