"""Every guard of the in-memory store is watched: without the guard, the check that it is for fails."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unicodedata import normalize

import anyio.lowlevel
import pytest
from msgspec.structs import replace

import noeta.toolkit.in_memory
from noeta.testing.check_store import STORE_CHECKS, StoreCheck, StoreFactory, run_check, run_store_machine

SOURCES = Path(noeta.toolkit.in_memory.__file__).parent
# In the order in which they import each other.
MODULES = ["leases", "rows", "watches", "store"]
MUTANTS = runpy.run_path(str(Path(__file__).with_name("mutants.py")))["MUTANTS"]
CHECKS = {check.__name__: check for check in STORE_CHECKS}


@contextmanager
def patched(mutant: Any = None) -> Iterator[StoreFactory]:
    """Give a store made of the sources of the in-memory one, with the mutant's change to them."""
    package = "patched_in_memory"
    sys.modules[package] = ModuleType(package)
    try:
        for name in MODULES:
            source = (SOURCES / f"{name}.py").read_text()
            if mutant is not None and mutant.file == f"{name}.py":
                assert source.count(mutant.old) == 1, "the text to change has to stand there once"
                source = source.replace(mutant.old, mutant.new)
            module = sys.modules[f"{package}.{name}"] = ModuleType(f"{package}.{name}")
            names = {"checkpoint": anyio.lowlevel.checkpoint, "replace": replace, "normalize": normalize}
            vars(module).update(names)
            exec(source.replace("noeta.toolkit.in_memory", package), vars(module))
        store = module.InMemoryStore
        yield lambda clock, ids: aclosing(store(clock, ids))
    finally:
        for name in [package, *(f"{package}.{name}" for name in MODULES)]:
            sys.modules.pop(name, None)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_without_the_guard_the_named_check_fails(mutant: Any) -> None:
    with patched(mutant) as make_store, pytest.raises(AssertionError, match=rf"^{mutant.check} ") as failed:
        run_check(CHECKS[mutant.check], make_store, "asyncio")
    # A change that does not even run would fail any check.
    assert not isinstance(failed.value.__cause__, NameError | AttributeError | TypeError)


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_with_all_guards_each_check_passes(check: StoreCheck) -> None:
    with patched() as make_store:
        run_check(check, make_store, "asyncio")


def test_all_modules_of_the_store_are_patched() -> None:
    assert {path.stem for path in SOURCES.glob("*.py")} - {"__init__"} == set(MODULES)


def test_each_check_notices_at_least_one_missing_guard() -> None:
    assert set(CHECKS) == {mutant.check for mutant in MUTANTS}


def test_each_mutant_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(
    "name",
    [
        "an append does not look at its claim",
        "a post does not wake a task that is kept",
        "a consumed item takes its key with it",
    ],
)
def test_the_machine_notices_a_missing_guard(name: str) -> None:
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
    with (
        patched(mutant) as make_store,
        pytest.raises(AssertionError, match=r"^the state machine \(asyncio\)"),
    ):
        run_store_machine(make_store, max_examples=500)
