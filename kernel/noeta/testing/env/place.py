"""A fresh environment for one check, and short ways to act in it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, NoReturn

import anyio
from msgspec.structs import replace

from noeta.testing.store.world import expect as expect
from noeta.testing.store.world import refused as refused
from noeta.testing.store.world import together as together
from noeta.toolkit.env import DirEntry, ExecEnv, Process

EnvFactory = Callable[[], AbstractAsyncContextManager[ExecEnv]]
"""Makes an environment whose `cwd` is an empty folder that nobody else uses, opens it, and closes it at exit.

Make it inside. One that was made before did not see the secrets that the kit sets, so no check can tell
whether it passes them on.
"""

METHODS = sorted(name for name, value in vars(ExecEnv).items() if callable(value) and name[0] != "_")
SOON = 20.0
"""The seconds after which what should happen soon has not happened."""
SECRETS = ("NOETA_CHECK_ENV_TOKEN", "NOETA_CHECK_ENV", "AWS_NOETA_CHECK_ENV", "noeta_check_env")
"""Variables that this process has before an environment is made. No program may see them."""


class Place:
    """An environment, and the program that checks run in it."""

    def __init__(self, env: ExecEnv, probe: Sequence[str]) -> None:
        self.env: ExecEnv = env
        self._probe = tuple(probe)

    def argv(self, *act: str) -> list[str]:
        """The program with an act to do."""
        return [*self._probe, *act]

    def start(self, *act: str, **how: Any) -> AbstractAsyncContextManager[Process]:
        """Let the program do an act."""
        return self.env.process(self.argv(*act), **how)

    async def run(self, *act: str, **how: Any) -> tuple[bytes, int]:
        """What the program writes while it does an act, and its status."""
        with soon(f"the end of the act {' '.join(act)}"):
            async with self.start(*act, **how) as process:
                output = await everything(process)
                return output, await process.wait()

    async def act(self, *act: str) -> None:
        """Let the program do an act, which has to be possible."""
        output, status = await self.run(*act)
        expect(status, 0, f"the program could not {' '.join(act)}: it wrote {output!r} and had the status")

    async def put(self, path: str, data: bytes = b"") -> None:
        """Write a file that may be new."""
        await self.env.write(path, data, create=True)

    async def entries(self, path: str = ".") -> list[DirEntry]:
        """What is in a folder, without times; one that the environment tells has to be that of `stat`."""
        listed = await self.env.listdir(path)
        for entry in listed:
            if entry.changed is not None:
                found = await self.env.stat(f"{path}/{entry.name}")
                wanted = None if found is None else found.changed
                expect(entry.changed, wanted, f"the time of {entry.name!r} by `listdir`, against `stat`")
        return [replace(entry, changed=None) for entry in listed]

    async def names(self, path: str = ".") -> list[str]:
        """What is in a folder."""
        return [entry.name for entry in await self.env.listdir(path)]

    async def free(self, path: str, promise: str) -> None:
        """Raise AssertionError with the promise when somebody holds the lock of a file."""
        with anyio.move_on_after(SOON):
            output, _ = await self.run("free", path)
            expect(output.split(), [b"free"], promise)
            return
        raise AssertionError(f"{promise}: a process of the group still runs")


@contextmanager
def soon(what: str) -> Iterator[None]:
    """Raise AssertionError when the block does not end soon."""
    with anyio.move_on_after(SOON) as scope:
        yield
    if scope.cancelled_caught:
        raise AssertionError(f"waited {SOON:g} seconds for {what}")


async def everything(process: Process) -> bytes:
    """All that a process writes."""
    return b"".join([piece async for piece in process.output()])


async def heard(process: Process, word: bytes) -> None:
    """Wait until a process has written a word."""
    said, pieces = b"", process.output()
    with soon(f"the program to say {word!r}"):
        try:
            async for piece in pieces:
                said += piece
                if word in said:
                    return
        finally:
            # An iterator that is a generator wants to be closed.
            if close := getattr(pieces, "aclose", None):
                await close()
    raise AssertionError(f"the program ended and never said {word!r}, but {said!r}")


async def fails(call: Any, *errors: type[OSError], promise: str) -> None:
    """Raise AssertionError with the promise unless the call raises one of these."""
    try:
        await call
    except errors:
        return
    except Exception as other:
        _wrong(promise, errors, f"not {other!r}", other)
    _wrong(promise, errors, "and nothing was raised", None)


def _wrong(promise: str, errors: Sequence[type[OSError]], what: str, cause: BaseException | None) -> NoReturn:
    names = " or ".join(error.__name__ for error in errors)
    raise AssertionError(f"{promise}: wanted {names}, {what}") from cause


def sha256(data: bytes) -> str:
    """The sha-256 of these bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


@asynccontextmanager
async def opened(make_env: EnvFactory, probe: Sequence[str]) -> AsyncIterator[Place]:
    """A fresh environment, made while this process has secrets."""
    # It may look at the variables when it is made, or later.
    os.environ.update(dict.fromkeys(SECRETS, "secret"))
    try:
        async with make_env() as env:
            missing = [name for name in ("cwd", *METHODS) if not hasattr(env, name)]
            if missing:
                raise AssertionError(f"{type(env).__name__} does not have {', '.join(missing)}")
            expect(await env.listdir(env.cwd), [], "the folder that an environment begins in is empty")
            yield Place(env, probe)
    finally:
        for name in SECRETS:
            del os.environ[name]
