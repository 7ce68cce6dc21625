"""The conformance kit for stores says what is wrong in a way that helps."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, nullcontext

import anyio
import anyio.lowlevel
import pytest

from noeta.testing.check_store import (
    STORE_CHECKS,
    StoreFactory,
    check_store,
    run_check,
    run_store_machine,
)
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.store import (
    Append,
    Appended,
    Claim,
    Clock,
    Ids,
    NewTask,
    Post,
    SnapshotPart,
    Store,
    Watch,
)


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


class Hinting(InMemoryStore):
    """A store whose watches tell of a change that is none, a few times before they wait."""

    @asynccontextmanager
    async def watch(self, task: str | None = None, *, log: bool = True) -> AsyncIterator[Watch]:
        async with super().watch(task, log=log) as watch:
            yield Early(watch)


class Early:
    """A watch whose first waits, and the first ones after a change, end too early."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.early = watch, 3

    async def wait(self, timeout: float) -> bool:
        if self.early:
            self.early -= 1
            await anyio.lowlevel.checkpoint()
            return True
        found = await self.watch.wait(timeout)
        self.early = 3 if found else 0
        return found


class Locking(InMemoryStore):
    """A store that does one thing at a time, and suspends while it does."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        super().__init__(clock, ids)
        self.lock = anyio.Lock()

    async def post(self, post: Post) -> None:
        async with self.lock:
            await anyio.lowlevel.checkpoint()
            await super().post(post)

    async def append(self, claim: Claim, append: Append) -> Appended:
        async with self.lock:
            await anyio.lowlevel.checkpoint()
            return await super().append(claim, append)


class Dropping(InMemoryStore):
    """A store that keeps no snapshot."""

    async def snapshot(self, task: str) -> list[SnapshotPart]:
        await super().snapshot(task)
        return []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("store", [Hinting, Locking, Dropping])
def test_a_store_that_uses_what_the_port_leaves_open_passes(store: type[InMemoryStore], backend: str) -> None:
    for check in STORE_CHECKS:
        run_check(check, lambda clock, ids: aclosing(store(clock, ids)), backend)


@pytest.mark.parametrize("missing", ["hypothesis", "trio"])
def test_a_missing_library_is_named_before_anything_runs(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModuleNotFoundError, match=rf"needs {missing}.*noeta\[testing\]"):
        check_store(make_store)
