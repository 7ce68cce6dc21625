"""What the tests of commands that run tasks share: a person with a home, a project and a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

MODEL = '''
import json
import os
import pathlib

import anyio

from noeta.testing import MemoryEnv, ScriptedProvider, call, reply

SCRIPT = os.environ.get("SCRIPT", "")


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
    lines = json.loads(SCRIPT or "[]")

    def respond(request):
        said = sum(message.role == "assistant" for message in request.messages)
        line = lines[said] if said < len(lines) else "Nothing more."
        if isinstance(line, str):
            return line
        return reply(line[0], *(call(name, **input) for name, input in line[1:]))

    return Paused(respond=respond)


def desk(settings):
    return MemoryEnv({"notes.txt": "Buy milk."})
'''


class Cli:
    """The command `noeta` in a world of its own, with a model `scripted:model` and an environment `desk`."""

    def __init__(self, folder: Path) -> None:
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
            "SCRIPT": "",
        }

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
        """What the model says from now on: texts, or `[text, [tool, input], ...]`."""
        self.environ["SCRIPT"] = json.dumps(script)

    def start(self, *words: str, stdin: Any = subprocess.DEVNULL, **more: Any) -> subprocess.Popen[str]:
        """Start `noeta` with these words."""
        return subprocess.Popen(
            [sys.executable, "-m", "noeta", *words],
            cwd=more.pop("cwd", self.project),
            env=self.environ,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def __call__(
        self, *words: str, input: str | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run `noeta` with these words to its end."""
        process = self.start(*words, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE, **more)
        out, err = process.communicate(input, timeout=60)
        return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.fixture
def noeta(tmp_path: Path) -> Cli:
    """The command `noeta`, with the store of a plugin that is installed."""
    pytest.importorskip("noeta_sqlite")
    return Cli(tmp_path)
