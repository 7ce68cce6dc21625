"""What the tests of commands that run tasks share: a person with a home, a project and a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from noeta_cli.main import main

MODEL = '''
import json
import os
import pathlib

import anyio

from noeta.testing import MemoryEnv, ScriptedProvider, call, reply
from noeta.toolkit.provider import ProviderError


class Paused(ScriptedProvider):
    """Says the pieces of a reply, and behind "(waits)" nothing more until somebody makes the file `go`."""

    async def stream(self, request):
        async for piece in super().stream(request):
            yield piece
            if "(waits)" in getattr(piece, "text", ""):
                while not pathlib.Path(os.environ["GO"]).exists():
                    await anyio.sleep(0.01)


def provider(settings):
    """Replies of the script, the first one to a task without replies, and so on."""
    lines = json.loads(pathlib.Path(os.environ["SCRIPT"]).read_text())

    def respond(request):
        said = sum(message.role == "assistant" for message in request.messages)
        line = lines[said] if said < len(lines) else "Nothing more."
        if isinstance(line, str):
            return line
        if isinstance(line[1], str):
            return ProviderError(line[0], line[1], retry_after=line[2] if line[2:] else None)
        return reply(line[0], *(call(name, **input) for name, input in line[1:]))

    return Paused(respond=respond)


def desk(settings):
    return MemoryEnv({"notes.txt": "Buy milk."})
'''


class Cli:
    """The command `noeta` in a world of its own, with a model `scripted:model` and an environment `desk`."""

    def __init__(self, folder: Path) -> None:
        self._started: list[subprocess.Popen[str]] = []
        self.folder, self.site = folder, folder / "site"
        self.home, self.project = folder / "home", folder / "project"
        for path in (self.site / "world-1.0.dist-info", self.home, self.project / ".git"):
            path.mkdir(parents=True)
        (self.site / "world_model.py").write_text(MODEL)
        info = self.site / "world-1.0.dist-info"
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: world\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "[noeta.providers]\nscripted = world_model:provider\n"
            "[noeta.environments]\ndesk = world_model:desk\n"
        )
        self.settings('model = "scripted:model"\nenv = "desk"\n')
        self.go = folder / "go"
        self.environ = {
            **os.environ,
            "NOETA_HOME": str(self.home),
            "PYTHONPATH": os.pathsep.join([str(self.site), *filter(None, sys.path)]),
            "PYTHONWARNINGS": "error",
            "GO": str(self.go),
            "SCRIPT": str(folder / "script.json"),
        }
        self.says()

    def settings(self, text: str) -> None:
        """Write the person's own settings."""
        (self.home / "noeta.toml").write_text(text)

    def plugin(self, name: str, source: str, *, project: bool = False) -> Path:
        """Write a plugin file."""
        folder = self.project / ".noeta" / "plugins" if project else self.home / "plugins"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}.py"
        file.write_text(textwrap.dedent(source))
        return file

    def says(self, *script: Any) -> None:
        """What the model says from now on: a text, `[text, [tool, input], ...]`, `[category, detail]`."""
        Path(self.environ["SCRIPT"]).write_text(json.dumps(script))

    def end(self) -> None:
        """End what still runs, such as after a test that failed."""
        for process in self._started:
            process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            process.wait()

    def start(self, *words: str, stdin: Any = subprocess.DEVNULL, **more: Any) -> subprocess.Popen[str]:
        """Start `noeta` with these words."""
        process = subprocess.Popen(
            [sys.executable, "-m", "noeta", *words],
            cwd=more.pop("cwd", self.project),
            env=self.environ,
            stdin=stdin,
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        )
        self._started.append(process)
        return process

    def __call__(
        self, *words: str, input: str | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run `noeta` with these words to its end."""
        process = self.start(*words, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE, **more)
        out, err = process.communicate(input, timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.fixture
def noeta(tmp_path: Path) -> Iterator[Cli]:
    """The command `noeta` in a world of its own."""
    cli = Cli(tmp_path)
    yield cli
    cli.end()


Here = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(noeta: Cli, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Here]:
    """`noeta` in this process: quicker, for what no process of its own adds anything to."""
    monkeypatch.syspath_prepend(noeta.site)
    monkeypatch.chdir(noeta.project)
    for name in ("NOETA_HOME", "GO", "SCRIPT"):
        monkeypatch.setenv(name, noeta.environ[name])

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        with Path(os.devnull).open() as nothing, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", nothing)
            patch.setattr(sys, "argv", ["noeta", *words])
            code = main()
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(words, code, out, err)

    yield run
    for name in [name for name in sys.modules if name.startswith("noeta_plugin_file_")]:
        del sys.modules[name]


TOOLS = '''
import os
import pathlib

import anyio

from noeta import Ask, Extension, ToolOutput, ask, function_tool, read_answer, text_output

QUESTION = {"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}


@function_tool(read_only=True)
def look(path: str) -> str:
    """Look at something."""
    return f"nothing at {path}"


@function_tool
def deploy(place: str) -> str:
    """Put the program into service."""
    return f"runs in {place}"


@function_tool
async def press(times: int) -> str:
    """Press a button, and wait for what happens."""
    with pathlib.Path(os.environ["GO"]).with_name("pressed").open("a") as file:
        file.write("pressed\\n")
    while not pathlib.Path(os.environ["GO"]).exists():
        await anyio.sleep(0.01)
    return "something happened"


class Colour:
    name, description, read_only, clearable = "colour", "Ask for a colour.", True, False
    input_schema = {"type": "object"}

    async def run(self, input, ctx):
        return ToolOutput(content=[], park=ask(QUESTION))

    async def resume(self, input, ctx, outcome):
        return text_output(f"the colour is {read_answer(outcome, QUESTION)}")


class Tools(Extension):
    name = "tools"
    add_to = ("doer",)

    def tools(self, view):
        return [look, deploy, press, Colour()]

    async def before_tool(self, view, call):
        return Ask("Really?") if call.name == "deploy" else None
'''
DOER = 'agent = "doer"\nmodel = "scripted:model"\nenv = "desk"\n[agents.doer]\nprompt = "Do it."\n'


@pytest.fixture
def doer(noeta: Cli) -> Cli:
    """`noeta` with an agent that has tools, one of which asks, one waits for a person and one for a file."""
    noeta.settings(DOER)
    noeta.plugin("tools", TOOLS)
    return noeta
