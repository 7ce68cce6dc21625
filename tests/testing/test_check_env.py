"""The conformance kit for environments says what is wrong, and finds each way to break a promise."""

# ruff: noqa: ASYNC230, ASYNC240 -- these environments are bad on purpose.

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from noeta.testing.check_env import ENV_CHECKS, EnvCheck, check_env, run_env_check
from noeta.toolkit.env import DirEntry, ExecEnv
from noeta_local import LocalEnv

NAMED: dict[str, EnvCheck] = {check.__name__: check for check in ENV_CHECKS}


def test_each_check_has_a_name_of_its_own_and_says_what_it_checks() -> None:
    assert len(NAMED) == len(ENV_CHECKS)
    assert [name for name, check in NAMED.items() if not check.__doc__] == []


def test_the_kit_needs_no_test_runner() -> None:
    code = "import sys; sys.modules['hypothesis'] = sys.modules['pytest'] = sys.modules['trio'] = None"
    subprocess.run([sys.executable, "-c", f"{code}; import noeta.testing.check_env"], check=True)


@asynccontextmanager
async def somewhere(env: Any) -> AsyncIterator[ExecEnv]:
    yield env


def test_an_environment_that_lacks_methods_is_told_which(tmp_path: Path) -> None:
    class Half:
        cwd = "/"

        async def stat(self, path: str) -> None: ...

    with pytest.raises(
        AssertionError, match=r"Half does not have listdir, mkdir, path, process, read, real,"
    ):
        check_env(lambda: somewhere(Half()), backends=["asyncio"])


def test_an_environment_with_files_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        AssertionError, match=r"^a_path.* \(trio\): the folder .* is empty: wanted \[\], found"
    ):
        check_env(lambda: somewhere(LocalEnv(str(tmp_path))), backends=["trio"])


# ---- environments that break one promise each


class Torn(LocalEnv):
    """Writes in place."""

    async def write(
        self, path: str, data: bytes, *, if_sha256: str | None = None, create: bool = False
    ) -> None:
        if await self.stat(path) is None:
            await super().write(path, data, if_sha256=if_sha256, create=create)
        half = len(data) // 2
        with Path(self.path(path)).open("wb", buffering=0) as file:
            file.write(data[:half])
            await super().stat(path)
            file.write(data[half:])


class Blind(LocalEnv):
    """Writes over anything."""

    async def write(
        self, path: str, data: bytes, *, if_sha256: str | None = None, create: bool = False
    ) -> None:
        await super().write(path, data, create=create)


class Unlinking(LocalEnv):
    """Puts a file in the place of a link."""

    async def write(
        self, path: str, data: bytes, *, if_sha256: str | None = None, create: bool = False
    ) -> None:
        if Path(self.path(path)).is_symlink():
            await self.remove(path)
        await super().write(path, data, create=True)


class Unsorted(LocalEnv):
    """Lists in another order."""

    async def listdir(self, path: str) -> list[DirEntry]:
        return (await super().listdir(path))[::-1]


class Timeless(LocalEnv):
    """Lists times that are not those of the files."""

    async def listdir(self, path: str) -> list[DirEntry]:
        return [replace(entry, changed=0.0) for entry in await super().listdir(path)]


class Literal(LocalEnv):
    """Takes links for what they say."""

    async def real(self, path: str) -> str:
        return self.path(path)


class Guessing(LocalEnv):
    """Gives some answer where there is none."""

    async def real(self, path: str) -> str:
        return os.path.realpath(self.path(path))


class Trusting(LocalEnv):
    """Gives programs all that this process has."""

    def process(self, argv: Any, *, env: Any = None, **how: Any) -> Any:
        return super().process(argv, env={**os.environ, **(env or {})}, **how)


class Remembering(LocalEnv):
    """Gives programs all that this process had when it was made."""

    def __init__(self, cwd: str) -> None:
        super().__init__(cwd, variables=["*"])


class Choosy(LocalEnv):
    """Keeps from programs what looks like a secret by its name, and nothing else."""

    def process(self, argv: Any, *, env: Any = None, **how: Any) -> Any:
        passed = {name: value for name, value in os.environ.items() if not name.endswith(("TOKEN", "KEY"))}
        return super().process(argv, env={**passed, **(env or {})}, **how)


class Deaf(LocalEnv):
    """Gives programs no input."""

    def process(self, argv: Any, *, stdin: Any = None, **how: Any) -> Any:
        return super().process(argv, **how)


class Homeless(LocalEnv):
    """Starts programs where it is itself."""

    def process(self, argv: Any, *, cwd: Any = None, **how: Any) -> Any:
        return super().process(argv, **how)


BROKEN_ENVS: list[tuple[str, type[LocalEnv]]] = [
    ("readers_see_one_file_or_the_other", Torn),
    ("a_file_that_changed_is_not_written", Blind),
    ("of_those_who_read_the_same_one_writes", Blind),
    ("a_link_stays_a_link", Unlinking),
    ("entries_come_by_name", Unsorted),
    ("entries_come_by_name", Timeless),
    ("real_follows_links", Literal),
    ("a_circle_of_links_is_an_error", Guessing),
    ("programs_get_no_secret", Trusting),
    ("programs_get_no_secret", Remembering),
    ("programs_get_no_secret", Choosy),
    ("a_program_is_told_what_it_needs", Deaf),
    ("what_is_not_there_is_not_started", Homeless),
]


@pytest.mark.parametrize(("name", "broken"), BROKEN_ENVS)
def test_a_broken_environment_is_found(name: str, broken: type[LocalEnv], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=rf"^{name} \(asyncio\): "):
        run_env_check(NAMED[name], lambda: somewhere(broken(str(tmp_path))), "asyncio")
