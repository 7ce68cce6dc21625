"""Whether a store keeps the promises of the port: a list of checks, and one call that runs them all.

Needs no test runner. With pytest, parametrise over `STORE_CHECKS` to see each promise as a test of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module

import anyio

from noeta.testing.store import (
    appends,
    cancels,
    claims,
    erasure,
    inbox,
    races,
    sizes,
    tasks,
    timers,
    watching,
)
from noeta.testing.store.machine import run_store_machine as run_store_machine
from noeta.testing.store.world import StoreFactory as StoreFactory

StoreCheck = Callable[[StoreFactory], Awaitable[None]]
"""Tries one promise on a fresh store, and raises AssertionError with a sentence when it is not kept."""

STORE_CHECKS: tuple[StoreCheck, ...] = (
    *appends.CHECKS,
    *claims.CHECKS,
    *inbox.CHECKS,
    *timers.CHECKS,
    *tasks.CHECKS,
    *erasure.CHECKS,
    *watching.CHECKS,
    *cancels.CHECKS,
    *races.CHECKS,
    *sizes.CHECKS,
)
"""Every promise of the port that a store alone can keep or break."""

PATIENCE = 120.0
"""The seconds after which a check that hangs has failed."""


def run_check(check: StoreCheck, make_store: StoreFactory, backend: str) -> None:
    """Run one check on an event loop. Whatever it raises comes as an AssertionError that names the check."""

    async def bounded() -> None:
        with anyio.fail_after(PATIENCE):
            await check(make_store)

    try:
        anyio.run(bounded, backend=backend)
    except Exception as error:
        raise AssertionError(f"{check.__name__} ({backend}): {sentence(error)}") from error


def check_store(make_store: StoreFactory, *, backends: Sequence[str] = ("asyncio", "trio")) -> None:
    """Run every check, then the state machine, on each event loop.

    Raises AssertionError for the first promise that is not kept. Needs hypothesis, and trio for that backend;
    ``noeta[testing]`` brings both.
    """
    for library in ("hypothesis", *backends):
        _import(library)
    for backend in backends:
        for check in STORE_CHECKS:
            run_check(check, make_store, backend)
        run_store_machine(make_store, backend=backend)


def _import(library: str) -> None:
    try:
        import_module(library)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"check_store needs {library}, which is not installed. This installs all it needs:"
            " pip install 'noeta[testing]'"
        ) from None


def sentence(error: BaseException) -> str:
    """What went wrong, without the groups that it is wrapped in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) if isinstance(error, AssertionError) else f"nobody expected {error!r}"
