"""The in-memory store keeps every promise of the port, and the kit says so in a way that helps."""

from __future__ import annotations

import subprocess
import sys
from contextlib import aclosing

import pytest

from noeta.testing.check_store import (
    STORE_CHECKS,
    StoreCheck,
    StoreFactory,
    check_store,
    run_check,
    run_store_machine,
)
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.store import Clock, Ids, Store


def make_store(clock: Clock, ids: Ids) -> aclosing[InMemoryStore]:
    """Open the store that all these tests are about."""
    return aclosing(InMemoryStore(clock, ids))


@pytest.mark.anyio
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
async def test_the_in_memory_store_keeps_each_promise(check: StoreCheck) -> None:
    await check(make_store)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_in_memory_store_and_the_model_agree(backend: str) -> None:
    run_store_machine(make_store, backend=backend, max_examples=60, steps=50)


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
    with pytest.raises(AssertionError, match=r"^an_append_lands_whole \(trio\): KeyError\('lost'\)$"):
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
