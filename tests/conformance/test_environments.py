"""The place in memory keeps the promises of the port. A plugin's tests check the plugin's environment."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from noeta.testing import Invocation, MemoryEnv, check_env
from noeta.toolkit.env import ExecEnv


class Probe:
    """The program of the checks, as a function, with locks that are held as long as it runs."""

    def __init__(self) -> None:
        self.env = MemoryEnv(programs={"probe": self})
        self._locks: dict[str, anyio.Lock] = {}

    async def __call__(self, run: Invocation) -> int:
        match run.argv[1:]:
            case ("show", *words):
                told = {"words": words, "cwd": run.cwd, "env": dict(run.variables)}
                await run.write(json.dumps({**told, "stdin": run.stdin.decode("latin-1")}))
            case ("end", status):
                return int(status)
            case ("both",):
                await run.write("out\nerr\n")
            case ("talk", path):
                await run.write("one\n")
                while await self.env.stat(path) is None:  # noqa: ASYNC110 -- nobody tells
                    await anyio.sleep(0.001)
                await run.write("two\n")
            case ("flood", count):
                for number in range(int(count)):
                    await run.write(b"%07d\n" % number * 128)
            case ("link", target, path):
                self.env.link(path, target)
            case ("chmod", mode, path):
                self.env.put(path, await self.env.read(path), int(mode, 8))
            case ("hold", path):
                async with self._locks.setdefault(path, anyio.Lock()):
                    await run.write("held\n")
                    await anyio.sleep_forever()
            case ("free", path):
                async with self._locks.setdefault(path, anyio.Lock()):
                    await run.write("free\n")
            case act:
                raise AssertionError(f"There is no act {act}.")
        return 0


@asynccontextmanager
async def make_env() -> AsyncIterator[ExecEnv]:
    yield Probe().env


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_place_in_memory_keeps_its_promises(backend: str) -> None:
    check_env(make_env, probe=["probe"], signals=False, backends=[backend])
