"""Every guard of the SQLite store is watched: without the guard, the check that it is for fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from guards import MUTANTS, Mutant
from patching import patched

from noeta.testing.check_store import STORE_CHECKS, StoreCheck, run_check
from noeta.toolkit.store import Clock, Ids, Store

CHECKS = {check.__name__: check for check in STORE_CHECKS}


def factory(
    folder: Path, store: Callable[..., Any]
) -> Callable[[Clock, Ids], AbstractAsyncContextManager[Store]]:
    """Opens a new file each time."""
    numbers = count()

    @asynccontextmanager
    async def make(clock: Clock, ids: Ids) -> AsyncIterator[Store]:
        made = store(folder / f"{next(numbers)}.db", clock=clock, ids=ids, synchronous="NORMAL")
        try:
            yield made
        finally:
            await made.aclose()

    return make


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_without_the_guard_the_named_check_fails(mutant: Mutant, tmp_path: Path) -> None:
    with patched(mutant) as store, pytest.raises(AssertionError, match=rf"^{mutant.check} "):
        run_check(CHECKS[mutant.check], factory(tmp_path, store), "asyncio")


@pytest.mark.parametrize("name", sorted({mutant.check for mutant in MUTANTS}))
def test_with_all_guards_the_copy_passes(name: str, tmp_path: Path) -> None:
    check: StoreCheck = CHECKS[name]
    with patched() as store:
        run_check(check, factory(tmp_path, store), "asyncio")


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
