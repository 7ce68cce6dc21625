"""Each guard is there for a promise: without it, the check of that promise fails."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from noeta.testing.check_env import ENV_CHECKS, run_env_check
from noeta.testing.env import place as places
from noeta.toolkit.env import ExecEnv
from noeta_local import LocalEnv, files
from noeta_local.process import LocalProcess

NAMED = {check.__name__: check for check in ENV_CHECKS}


async def nothing(*arguments: Any, **more: Any) -> None:
    pass


async def never(*arguments: Any) -> bool:
    return False


@contextmanager
def no_turn(place: int) -> Any:
    yield


def only_the_program(process: LocalProcess, number: signal.Signals) -> None:
    assert process._popen is not None
    process._popen.send_signal(number)


def killing(process: LocalProcess, number: signal.Signals) -> None:
    assert process._popen is not None
    os.killpg(process._popen.pid, signal.SIGKILL)


async def readable_alone(process: LocalProcess) -> bool:
    await anyio.wait_readable(process._pipe)
    return True


def no_mode(
    place: int, name: str, data: bytes, before: Any, write: Callable[..., None] = files._write
) -> None:
    write(place, name, data, None)


GUARDS: list[tuple[str, Any, str, Any]] = [
    ("a_file_keeps_its_mode", files, "_write", no_mode),
    ("leaving_the_context_ends_the_program", LocalProcess, "__aexit__", nothing),
    ("cancelling_leaves_no_process", LocalProcess, "__aexit__", nothing),
    ("a_program_can_be_stopped", LocalProcess, "stop", nothing),
    ("a_child_ends_with_its_group", LocalProcess, "_signal", only_the_program),
    ("a_child_ends_with_its_group", LocalProcess, "_lives", never),
    ("a_program_may_end_itself_first", LocalProcess, "_signal", killing),
    ("who_does_not_end_is_killed", LocalProcess, "_signal", killing),
    ("a_child_with_the_pipe_holds_nobody_up", LocalProcess, "_readable", readable_alone),
]


@pytest.fixture
def left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End what a missing guard leaves behind, and do not wait long for what will not happen."""
    popens: list[subprocess.Popen[bytes]] = []
    start = LocalProcess._start

    def recorded(process: LocalProcess) -> None:
        start(process)
        assert process._popen is not None
        popens.append(process._popen)

    monkeypatch.setattr(LocalProcess, "_start", recorded)
    monkeypatch.setattr(places, "SOON", 1.5)
    yield
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == tmp_path:
                os.kill(int(process.name), signal.SIGKILL)
    for popen in popens:
        popen.wait()
        assert popen.stdout is not None
        popen.stdout.close()


@pytest.mark.usefixtures("left_behind")
@pytest.mark.parametrize(("name", "owner", "guard", "instead"), GUARDS)
def test_a_promise_is_broken_without_its_guard(
    name: str, owner: Any, guard: str, instead: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def make() -> AsyncIterator[ExecEnv]:
        yield LocalEnv(str(tmp_path), drain=0.3)

    run_env_check(NAMED[name], make, "asyncio")
    for entry in tmp_path.iterdir():
        entry.unlink()
    monkeypatch.setattr(owner, guard, instead)
    with pytest.raises(AssertionError, match=name):
        run_env_check(NAMED[name], make, "asyncio")
