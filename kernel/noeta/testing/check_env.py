"""Whether an environment keeps the promises of the port: a list of checks, and one call that runs them all.

Needs no test runner. With pytest, parametrise over `ENV_CHECKS` to see each promise as a test of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from noeta.testing.check_store import sentence
from noeta.testing.env import files, folders, groups, paths, processes
from noeta.testing.env.place import EnvFactory as EnvFactory
from noeta.testing.env.place import Place as Place
from noeta.testing.env.place import opened
from noeta.testing.env.probe import python_probe as python_probe

EnvCheck = Callable[[Place], Awaitable[None]]
"""Tries one promise in a fresh place, and raises AssertionError with a sentence when it is not kept."""

SIGNAL_CHECKS: tuple[EnvCheck, ...] = groups.CHECKS
"""The promises about signals and groups of processes, which no place has that only plays processes."""
ENV_CHECKS: tuple[EnvCheck, ...] = (
    *paths.CHECKS,
    *files.CHECKS,
    *folders.CHECKS,
    *processes.CHECKS,
    *SIGNAL_CHECKS,
)
"""Every promise of the port."""

PATIENCE = 120.0
"""The seconds after which a check that hangs has failed."""


def run_env_check(
    check: EnvCheck, make_env: EnvFactory, backend: str, *, probe: Sequence[str] | None = None
) -> None:
    """Run one check on an event loop. Whatever it raises comes as an AssertionError that names the check.

    `probe` is the program that checks run: `python_probe` with the Python of the environment, by default the
    one that runs this.
    """

    async def bounded() -> None:
        with anyio.fail_after(PATIENCE):
            async with opened(make_env, python_probe() if probe is None else probe) as place:
                await check(place)

    try:
        anyio.run(bounded, backend=backend)
    except Exception as error:
        raise AssertionError(f"{check.__name__} ({backend}): {sentence(error)}") from error


def check_env(
    make_env: EnvFactory,
    *,
    probe: Sequence[str] | None = None,
    signals: bool = True,
    backends: Sequence[str] = ("asyncio", "trio"),
) -> None:
    """Run every check on each event loop, without `SIGNAL_CHECKS` if the place has no `signals`.

    `probe` is as for `run_env_check`. Raises AssertionError for the first promise that is not kept. Needs
    trio for that backend; ``noeta[testing]`` brings it.
    """
    for backend in backends:
        for check in ENV_CHECKS:
            if signals or check not in SIGNAL_CHECKS:
                run_env_check(check, make_env, backend, probe=probe)
