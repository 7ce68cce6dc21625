"""The conformance kit for stores says what is wrong in a way that helps."""

from __future__ import annotations

import subprocess
import sys
from contextlib import aclosing, nullcontext

import pytest

from noeta.testing.check_store import (
    STORE_CHECKS,
    StoreFactory,
    check_store,
    run_check,
    run_store_machine,
)
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.store import Clock, Ids, NewTask, Store


def make_store(clock: Clock, ids: Ids) -> aclosing[InMemoryStore]:
    """Open the store that all these tests are about."""
    return aclosing(InMemoryStore(clock, ids))


def test_each_check_has_a_name_of_its_own_and_says_what_it_checks() -> None:
    names = [check.__name__ for check in STORE_CHECKS]
    assert len(set(names)) == len(names)
    assert [check.__name__ for check in STORE_CHECKS if not check.__doc__] == []


def test_the_kit_needs_no_test_runner_and_no_hypothesis_until_it_is_called() -> None:
    code = "import sys; sys.modules['hypothesis'] = sys.modules['pytest'] = sys.modules['trio'] = None"
    subprocess.run([sys.executable, "-c", f"{code}; import noeta.testing.check_store"], check=True)


class Forgetful(InMemoryStore):
    """A store that loses what it should report."""

    async def next_wake(self) -> float | None:
        raise KeyError("lost")


def test_the_first_broken_promise_is_named_with_its_event_loop() -> None:
    with pytest.raises(
        AssertionError, match=r"^an_append_lands_whole \(trio\): nobody expected KeyError\('lost'\)$"
    ):
        check_store(lambda clock, ids: aclosing(Forgetful(clock, ids)), backends=["trio", "asyncio"])


def test_an_error_among_errors_is_told_alone() -> None:
    async def several(make_store: StoreFactory) -> None:
        raise ExceptionGroup("unhandled", [ExceptionGroup("again", [AssertionError("the reason")])])

    with pytest.raises(AssertionError, match=r"^several \(asyncio\): the reason$"):
        run_check(several, make_store, "asyncio")


class Late(InMemoryStore):
    """A store whose retries are lost."""

    async def fire_timers(self, limit: int = 100) -> int:
        return 0


def test_the_machine_tells_the_steps_that_lead_to_a_difference() -> None:
    def late(clock: Clock, ids: Ids) -> aclosing[Store]:
        return aclosing(Late(clock, ids))

    with pytest.raises(AssertionError, match=r"(?s)the state machine \(asyncio\): .*fire_timers.*state\."):
        run_store_machine(late, max_examples=200)


def test_a_store_that_lacks_methods_is_told_which() -> None:
    class Half(Store):
        async def create(self, new: NewTask) -> None: ...

    with pytest.raises(AssertionError, match=r"Half does not write: aclose, append, claim, .*watch$"):
        check_store(lambda clock, ids: nullcontext(Half()), backends=["asyncio"])


@pytest.mark.parametrize("missing", ["hypothesis", "trio"])
def test_a_missing_library_is_named_before_anything_runs(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {missing}.*noeta\[testing\]"):
        check_store(make_store)
