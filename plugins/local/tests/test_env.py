"""The environment by its name, and its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from noeta import Agent, Host, SettingsError, ToolContext, ToolSet, function_tool
from noeta.testing import ScriptedProvider, call, reply
from noeta_local import LocalEnv, open_env

pytestmark = pytest.mark.anyio


def test_settings_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_env({}).cwd == str(tmp_path)
    (tmp_path / "a").mkdir()
    assert open_env({"cwd": "a", "variables": ["CI"], "drain": 0.5}).cwd == f"{tmp_path}/a"
    for given, why in (
        ({"cwdd": "a"}, r"no such setting.*did you mean 'cwd'"),
        ({"cwd": "b"}, "no folder .*b'"),
        ({"drain": -1}, "'local', setting 'drain'"),
    ):
        with pytest.raises(SettingsError, match=why):
            open_env(given)


def test_a_home_is_what_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert LocalEnv("/srv").path("~/notes") == "/home/ann/notes"


async def test_a_host_finds_it_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    @function_tool
    async def note(text: str, ctx: ToolContext) -> str:
        """Write something down."""
        await ctx.env.write("notes.txt", text.encode(), create=True)
        async with ctx.env.process(["cat", "notes.txt"]) as process:
            return b"".join([piece async for piece in process.output()]).decode()

    agent = Agent("agent", model="test:model", plugins=[ToolSet([note])])
    provider = ScriptedProvider([reply("", call("note", text="Buy milk.")), "Done."])
    async with Host([agent], providers={"test": provider}, env="local") as host:
        assert (await host.run("agent", "go")).text == "Done."
    assert (tmp_path / "notes.txt").read_text() == "Buy milk."
