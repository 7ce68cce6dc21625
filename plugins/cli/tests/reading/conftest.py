"""A store with tasks of every kind, and the command line in this process and in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from noeta import Agent, Ask, Deny, Extension, Host, ToolContext, ToolOutput, ToolSet, ask, function_tool
from noeta import text_output as text
from noeta.host.places import find_places
from noeta.host.settings import load_settings
from noeta.testing import ScriptedProvider, call, reply

TALLY = """
from noeta import Extension

class Tally(Extension):
    name = "tally"

    def initial_state(self):
        return {"calls": []}

    def reduce(self, state, kind, data):
        return {"calls": [*dict.fromkeys([*state["calls"], data["call"]])]}

    async def before_tool(self, view, call):
        view.record("tally", "counted", {"call": call.id})
"""
SETTINGS = """
[agents.clerk]
plugins = ["tally"]
description = "Looks at pages."
"""
LONG = "\n".join(f"line {number} of the page" for number in range(200))


@function_tool(read_only=True)
def fetch(url: str) -> str:
    """Fetch a page."""
    return LONG if "long" in url else "a \x1b[31mred\x1b[0m page"


@function_tool
async def delegate(what: str, ctx: ToolContext) -> str:
    """Let a child do it."""
    assert ctx.spawn is not None
    ctx.spawn("clerk", what, background=True)
    return "begun"


@function_tool
async def remind(ctx: ToolContext) -> str:
    """Set a timer."""
    ctx.set_timer("tea", 4_000_000_000.0, "Tea is ready.")
    return "set"


class Choose:
    """Asks where to go."""

    name = "choose"
    description = "Ask where to go."
    input_schema: dict[str, Any] = {"type": "object"}  # noqa: RUF012 (the form of the port)
    read_only = clearable = False

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        question: Any = {"question": "Where to?", "options": [{"label": "Rome"}, {"label": "Oslo"}]}
        return ToolOutput(content=[], park=ask(question))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text("chosen")


class Sites(Extension):
    """Refuses one site and asks about another."""

    name = "sites"

    async def before_tool(self, view: Any, call: Any) -> Any:
        url = call.input.get("url", "")
        if "evil" in url:
            return Deny("This site is not for us.", source="deny evil.example, sites.toml:2")
        return Ask("Fetch it?") if "secret" in url else None


def respond(request: Any) -> Any:
    """What the model says, by what it was told last."""
    said = request.messages[-1].text
    if "both" in said:
        return reply("Looking.", call("fetch", url="good.example"), call("fetch", url="evil.example"))
    if "long" in said:
        return reply("", call("fetch", url="long.example"))
    if "ask me" in said:
        return reply("", call("fetch", url="secret.example"), call("choose"))
    if "somebody who asks" in said:
        return reply("", call("delegate", what="Please ask me."))
    if "others" in said:
        return reply("", call("delegate", what="Look at good.example."), call("remind"))
    return "Here it is: \x1b]0;owned\x07done.\x9b2J"


@dataclass(frozen=True)
class Office:
    """A store, and the ids of its tasks: ended, idle, one that continues the idle one, and so on."""

    home: Path
    db: Path
    ended: str
    idle: str
    fork: str
    asks: str
    parent: str
    child: str
    waits: str
    """Its child asks."""
    asker: str

    @property
    def url(self) -> str:
        """The URL of the store."""
        return f"sqlite:{self.db}"

    @property
    def env(self) -> dict[str, str]:
        """The variables of a process of its own."""
        path = os.pathsep.join(filter(None, sys.path))
        return {**os.environ, "NOETA_HOME": str(self.home), "PYTHONPATH": path, "PYTHONWARNINGS": "error"}


@pytest.fixture(scope="session")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """A store that nobody changes; who does copies its file."""
    home = tmp_path_factory.mktemp("office")
    (home / "plugins").mkdir()
    (home / "plugins" / "tally.py").write_text(TALLY)
    (home / "noeta.toml").write_text(SETTINGS)
    settings = load_settings(find_places({"NOETA_HOME": str(home)}, home), {})
    tools = ToolSet([fetch, delegate, remind, Choose()])
    agent = Agent("clerk", model="test:model", plugins=[tools, Sites(), "tally"])
    given: dict[str, Any] = {"providers": {"test": ScriptedProvider(respond=respond)}, "settings": settings}

    async def run() -> dict[str, str]:
        async with Host([agent], store=f"sqlite:{home / 'n.db'}", **given) as host:
            waits = (await host.run("clerk", "Find somebody who asks.")).task
            [asker] = await host.tasks(parent=waits)
            await host.wait(asker.task)
            ended = (await host.run("clerk", "Look at both.", one_shot=True)).task
            idle = (await host.run("clerk", "Look at a long one.")).task
            fork = await host.fork(idle)
            asks = (await host.run("clerk", "Please ask me.")).task
            parent = (await host.run("clerk", "Let others do it.")).task
            [child] = await host.tasks(parent=parent)
            await host.cancel(child.task)
            await host.wait(child.task)
            await host.wait(parent)
            ids = {"ended": ended, "idle": idle, "fork": fork, "asks": asks}
            return {**ids, "parent": parent, "child": child.task, "waits": waits, "asker": asker.task}

    return Office(home=home, db=home / "n.db", **anyio.run(run))


class Done(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def noeta(
    office: Office,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Done]:
    """The command line in this process, in a folder of its own, on the store of the office."""
    from noeta_cli.main import main

    monkeypatch.setenv("NOETA_HOME", str(office.home))
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)

    def run(*words: str, store: str = office.url) -> Done:
        options = ["--store", store] if store else []
        monkeypatch.setattr(sys, "argv", ["noeta", *words, *options])
        capsys.readouterr()
        return Done(main(), *capsys.readouterr())

    return run


@pytest.fixture
def process(office: Office, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Begin the command line in a process of its own, which ends with the test."""
    (tmp_path / ".git").mkdir(exist_ok=True)
    with ExitStack() as stack:

        def start(*words: str, store: str = office.url, **env: str) -> subprocess.Popen[str]:
            begun = subprocess.Popen(
                [sys.executable, "-m", "noeta", *words, "--store", store],
                cwd=tmp_path,
                env={**office.env, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(begun)
            stack.callback(begun.kill)
            return begun

        yield start
