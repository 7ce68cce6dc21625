"""A person with a home, a project and installed packages, who types commands."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from noeta_cli.main import main

# The script beside the tests, which they run and which a person runs.
sys.path.append(str(Path(__file__).parent))


class Run(NamedTuple):
    """What came of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)


class Desk:
    """Where commands are typed. `site` is what is installed besides noeta and its plugins."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.home, self.project, self.site = folder / "home", folder / "project", folder / "site"
        for path in (self.home, self.project / ".git", self.site):
            path.mkdir(parents=True)
        self._monkeypatch, self._capsys = monkeypatch, capsys
        monkeypatch.setenv("NOETA_HOME", str(self.home))
        for key in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "PYTHONDONTWRITEBYTECODE"):
            monkeypatch.delenv(key, raising=False)
        monkeypatch.chdir(self.project)
        monkeypatch.syspath_prepend(self.site)

    def noeta(self, *arguments: str) -> Run:
        """Run `noeta plugins ...` here, which is quicker than in a process."""
        self._monkeypatch.setattr(sys, "argv", ["noeta", "plugins", *arguments])
        self._capsys.readouterr()
        status = main()
        return Run(status, *self._capsys.readouterr())

    def process(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """`noeta plugins ...` as a process."""
        path = os.pathsep.join([str(self.site), *sys.path])
        return subprocess.Popen(
            [sys.executable, "-m", "noeta", "plugins", *arguments],
            env={**os.environ, "PYTHONPATH": path},
            text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def run(self, *arguments: str) -> Run:
        """Run `noeta plugins ...` as a process."""
        process = self.process(*arguments)
        out, err = process.communicate(timeout=120)
        return Run(process.returncode, out, err)

    def at_a_terminal(self, *arguments: str, says: str) -> Run:
        """Run `noeta plugins ...` with a terminal to ask on, and answer its question."""
        ours, theirs = pty.openpty()
        process = self.process(*arguments, stdin=theirs, stderr=theirs)
        os.close(theirs)
        asked = b""
        while b"[y/N]" not in asked:
            asked += os.read(ours, 1000)
        os.write(ours, f"{says}\n".encode())
        out, _ = process.communicate(timeout=60)
        try:
            while piece := os.read(ours, 1000):
                asked += piece
        except OSError:
            # The end of a terminal.
            pass
        os.close(ours)
        return Run(process.returncode, out, asked.decode())

    def write(self, path: str | Path, text: str) -> Path:
        """A file of the project, or at a place of its own."""
        made = self.project / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(textwrap.dedent(text))
        return made

    def own(self, text: str) -> None:
        """The person's own settings."""
        self.write(self.home / "noeta.toml", text)

    def plugin(self, name: str, body: str = "", *, own: bool = True) -> Path:
        """A plugin file that joins every agent."""
        folder = self.home / "plugins" if own else self.project / ".noeta" / "plugins"
        lines = [f'name = "{name}"', 'add_to = ("*",)', *textwrap.dedent(body).strip("\n").splitlines()]
        head = "import msgspec\nfrom noeta import Extension, function_tool\n\nclass Plugin(Extension):\n"
        doc = f'    """A plugin called {name}."""\n'
        return self.write(folder / f"{name}.py", head + doc + "".join(f"    {line}\n" for line in lines))

    def install(self, distribution: str, name: str, source: str) -> None:
        """Install a package with one plugin, `Plugin`."""
        module = distribution.replace("-", "_")
        self.write(self.site / f"{module}.py", source)
        info = self.site / f"{module}-1.0.dist-info"
        self.write(info / "METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        self.write(info / "entry_points.txt", f"[noeta.extensions]\n{name} = {module}:Plugin\n")


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Desk]:
    yield Desk(tmp_path, monkeypatch, capsys)
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
