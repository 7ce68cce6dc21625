"""This machine keeps every promise of the port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from noeta.testing.check_env import ENV_CHECKS, EnvCheck, run_env_check
from noeta.toolkit.env import ExecEnv
from noeta_local import LocalEnv


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("check", ENV_CHECKS, ids=lambda check: check.__name__)
def test_the_promise_is_kept(check: EnvCheck, backend: str, tmp_path: Path) -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[ExecEnv]:
        yield LocalEnv(str(tmp_path), drain=0.3)

    run_env_check(check, make, backend)
