"""The plugin and its tools keep what the kernel builds on."""

from __future__ import annotations

from pathlib import Path

import pytest

from noeta import Agent, Extension, Host, SettingsError
from noeta.testing import (
    FrozenClock,
    MemoryEnv,
    Outside,
    Rehearsal,
    ScriptedProvider,
    call,
    check_crashes,
    check_extension,
    check_tool,
    reply,
)
from noeta.toolkit.env import ExecEnv
from noeta_fs import Files

# What released versions wrote. Add a file for each version, and never change one.
SAMPLES = [
    line
    for file in sorted((Path(__file__).parent / "samples").glob("*.jsonl"))
    for line in file.read_bytes().splitlines()
]


def test_every_promise_of_a_plugin_is_kept() -> None:
    check_extension(Files, samples=SAMPLES)
    check_extension(lambda: Files(read_lines=1, glob_files=1))


def test_every_promise_of_a_tool_is_kept() -> None:
    for tool in Files().tools(Rehearsal(env=MemoryEnv()).view("fs", "tools")):
        check_tool(tool)


def test_the_tools_of_a_folder_are_made_once() -> None:
    plugin, view = Files(), Rehearsal(env=MemoryEnv()).view("fs", "tools")
    assert plugin.tools(view) is plugin.tools(view)


def test_settings_that_make_no_sense_are_refused() -> None:
    for name, value in (("read_tokens", 0), ("glob_files", 0), ("line_chars", 1), ("glob_seconds", 0)):
        with pytest.raises(SettingsError, match=f"'fs', setting '{name}'"):
            Files(**{name: value})


@pytest.mark.anyio
async def test_it_is_the_same_wherever_the_worker_dies() -> None:
    def plugins(outside: Outside) -> list[Extension]:
        return [Files()]

    def env() -> ExecEnv:
        files = {"/project/a.py": "print()\n", "/project/b.bin": b"\0"}
        return MemoryEnv(files, clock=FrozenClock())

    script = [
        reply("", call("Glob", pattern="*.py"), call("Read", file_path="/project/a.py")),
        reply("", call("Read", file_path="/project/b.bin")),
        "It prints.",
    ]
    assert await check_crashes(plugins, script, "What does it do?", make_env=env) >= 20


@pytest.mark.anyio
async def test_a_fork_knows_what_was_read_before_it_and_nothing_after() -> None:
    env = MemoryEnv({"a": "one", "b": "two"})
    script = [reply("", call("Read", file_path="a")), "1", reply("", call("Read", file_path="b")), "2", "3"]
    agent = Agent("reader", model="test:model", plugins=["fs"])
    async with Host([agent], providers={"test": ScriptedProvider(script)}, env=env) as host:
        task = (await host.run("reader", "read a")).task
        through = (await host.log(task))[-1].seq
        await host.post(task, "read b")
        await host.wait(task)
        assert [*(await host.state(task)).states["fs"].files] == ["/project/a", "/project/b"]
        fork = await host.fork(task, through)
        await host.post(fork, "go on")
        await host.wait(fork)
        assert [*(await host.state(fork)).states["fs"].files] == ["/project/a"]
