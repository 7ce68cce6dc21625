"""Programs on this machine: pipes, groups, zombies and what they are told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from noeta_local import LocalEnv
from noeta_local.process import LocalProcess, group_lives
from noeta_local.variables import clean

pytestmark = pytest.mark.anyio


async def told(here: LocalEnv, script: str, **how: object) -> str:
    """What a shell script writes."""
    async with here.process(["sh", "-c", script], **how) as process:  # type: ignore[arg-type]
        output = b"".join([piece async for piece in process.output()])
        await process.wait()
    return output.decode()


def has_children() -> bool:
    """Whether this process has any, zombies too."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


async def test_a_program_waits_for_a_slow_reader_so_memory_stays_small(env: LocalEnv, tmp_path: Path) -> None:
    code = (
        "import os\n"
        "for number in range(64):\n"
        "    os.write(1, bytes(1 << 20))\n"
        "    open('written', 'w').write(str(number + 1))\n"
    )
    async with env.process([sys.executable, "-c", code]) as process:
        read = 0
        async for piece in process.output():
            read += len(piece)
            assert len(piece) <= 65_536
            written = tmp_path / "written"
            # What was written and not read is at most what a pipe and one write hold.
            done = int(written.read_text() or 0) << 20 if written.exists() else 0
            assert done - read <= 1 << 21
        assert (read, await process.wait()) == (64 << 20, 0)


async def test_a_job_that_writes_on_and_on_does_not_keep_its_reader(env: LocalEnv) -> None:
    with anyio.fail_after(10):
        async with env.process(["sh", "-c", "yes & echo begun; exec true"]) as process:
            total = 0
            async for piece in process.output():
                total += len(piece)
                # The job is faster, so there is always something to read.
                await anyio.sleep(0.001)
            assert await process.wait() == 0
    assert total > 0


async def test_what_the_program_wrote_last_is_heard_however_slow_the_reader(
    env: LocalEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noeta_local.process.CHUNK", 1_000)
    env = LocalEnv(env.cwd, drain=0.0)
    code = "import os; os.write(1, b'x' * 60_000 + b'last'); os.fork() or __import__('time').sleep(60)"
    async with env.process([sys.executable, "-c", code]) as process:
        pieces = process.output()
        said = await anext(pieces)
        await process.wait()
        async for piece in pieces:
            said += piece
    assert said.endswith(b"last")


async def test_no_zombie_and_no_descriptor_is_left(env: LocalEnv) -> None:
    async def once() -> None:
        async with env.process(["sh", "-c", "sleep 60 & exit 0"], stdin=b"input") as process:
            await process.wait()
        with anyio.move_on_after(0.01):
            async with env.process(["sleep", "60"]) as process:
                await process.wait()

    await once()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await once()
    assert len(os.listdir("/proc/self/fd")) == before
    assert not has_children()


async def test_the_number_of_a_program_is_its_own_until_it_is_left(env: LocalEnv) -> None:
    async with env.process(["true"]) as process:
        assert isinstance(process, LocalProcess)
        await process.wait()
        assert process._popen is not None
        number = process._popen.pid
        # It is a zombie: signals to the number reach nobody else.
        os.kill(number, 0)
        assert not group_lives(number)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


async def test_after_its_context_a_process_says_what_became_of_it(env: LocalEnv) -> None:
    async with env.process(["sleep", "60"]) as process:
        pass
    assert await process.wait() == -signal.SIGTERM
    assert [piece async for piece in process.output()] == []
    await process.stop()


async def test_a_reader_in_another_task_ends_with_the_context(env: LocalEnv) -> None:
    env = LocalEnv(env.cwd, drain=60)
    # A daemon keeps the pipe, so that nothing but the context ends the output.
    heard: list[bytes] = []

    async def listen(process: LocalProcess) -> None:
        heard.extend([piece async for piece in process.output()])

    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as group,
            env.process(["sh", "-c", "setsid sleep 8 & echo hi; sleep 60"]) as process,
        ):
            group.start_soon(listen, process)
            await anyio.wait_all_tasks_blocked()
    assert heard in ([b"hi\n"], [])


async def test_a_program_is_told_nothing_but_what_is_on_the_list(
    env: LocalEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("CI_JOB", "7")
    fresh = LocalEnv(env.cwd, variables=["CI_*"])
    said = await told(fresh, "env", env={"EXTRA": "given"})
    names = {line.partition("=")[0] for line in said.splitlines()}
    assert {"PATH", "HOME", "LC_TIME", "CI_JOB", "EXTRA"} <= names
    assert "API_KEY" not in names


def test_there_is_always_a_path() -> None:
    assert clean({"SECRET": "x", "LANG": "C"}) == {"PATH": os.defpath, "LANG": "C"}
    assert clean({"PATH": "/bin", "A": "1", "AB": "2"}, ["A"]) == {"PATH": "/bin", "A": "1"}


async def test_a_program_has_no_terminal_and_no_input(env: LocalEnv) -> None:
    assert await told(env, "cat; test -t 0 && echo terminal; echo $$; ps -o sid= -p $$ 2>/dev/null; true")
    assert (await told(env, "(: < /dev/tty) 2>/dev/null && echo terminal || echo none")) == "none\n"


async def test_programs_are_found_as_they_are_run(env: LocalEnv, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\necho ran\n")
    assert await env.which("./run.sh") is None
    with pytest.raises(PermissionError):
        async with env.process(["./run.sh"]):
            pass
    script.chmod(0o755)
    assert await env.which("./run.sh") == str(script)
    async with env.process(["./run.sh"]) as process:
        assert [piece async for piece in process.output()] == [b"ran\n"]
    assert await env.which("sh") in ("/bin/sh", "/usr/bin/sh")


async def test_a_call_that_cannot_be_meant_says_why(env: LocalEnv) -> None:
    with pytest.raises(ValueError, match="argv is empty"):
        env.process([])
    with pytest.raises(ValueError, match="null byte"):
        env.process(["true"], cwd="a\0b")


def test_a_group_of_zombies_does_not_live(tmp_path: Path) -> None:
    """The table of processes, on paper, for a group that can be signalled."""
    group = os.getpgrp()
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "stat").touch()

    def put(pid: int, state: str, its: int) -> None:
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a) b (c) {state} 1 {its} 0")

    put(1, "S", group + 1)
    put(2, "Z", group)
    assert not group_lives(group, tmp_path)
    put(3, "S", group)
    assert group_lives(group, tmp_path)
    # Without a table nothing can be told, and the group is taken to live.
    assert group_lives(group, tmp_path / "nothing")


def test_a_task_that_the_event_loop_itself_cancels_leaves_no_process(tmp_path: Path) -> None:
    """The shields of anyio do not hold against `Task.cancel` while a program is started or left."""
    env = LocalEnv(str(tmp_path))

    async def run() -> None:
        async with env.process(["sh", "-c", "trap '' TERM; sleep 61; sleep 61"]) as process:
            await process.wait()

    async def main() -> None:
        for pause in (0.0, 0.0005, 0.001, 0.002, 0.005, 0.05):
            task = asyncio.create_task(run())
            await asyncio.sleep(pause)
            task.cancel()
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert not has_children()
