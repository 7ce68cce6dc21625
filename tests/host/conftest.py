"""Distributions that are laid out as an installer does it, and found as installed ones are."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noeta.host.places import Places, find_places
from noeta.host.settings import Settings, load_settings
from noeta.host.trust import Trust, trust


class Site:
    """A folder of installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self, distribution: str, points: dict[str, dict[str, str]], version: str = "1.0", **modules: str
    ) -> None:
        """Install a distribution: entry points by group and name, and the source of its modules."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata)
        lines = [
            line
            for group, names in points.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        for module, source in modules.items():
            (self.folder / f"{module}.py").write_text(textwrap.dedent(source))

    def run(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run a program in a Python of its own that has these distributions too."""
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(self.folder), *sys.path])},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site that this process sees. What was imported from it is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    yield Site(tmp_path)
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


class Person:
    """A person with a home, a project in it, and settings that an administrator may manage."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "home" / "work" / "project"
        self.managed = folder / "etc" / "noeta.toml"
        for path in (self.home, self.project / ".git", self.managed.parent):
            path.mkdir(parents=True, exist_ok=True)
        self.environ = {"HOME": str(self.home)}

    @property
    def places(self) -> Places:
        return find_places(self.environ, self.project, managed=self.managed)

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def own(self, text: str) -> Path:
        return self.write(self.places.user_file, text)

    def manage(self, text: str) -> Path:
        return self.write(self.managed, text)

    def bring(self, text: str, name: str = "noeta.toml") -> Path:
        """A file of the project."""
        return self.write(self.project / name, text)

    def plugin(self, name: str, body: str = "", *, own: bool = False) -> Path:
        """A plugin file that joins every agent."""
        folder = self.places.user_plugins if own else self.places.project_plugins
        head = "from noeta import Extension\n\nclass Plugin(Extension):\n"
        lines = [f'name = "{name}"', 'add_to = ("*",)', *textwrap.dedent(body).splitlines()]
        return self.write(folder / f"{name}.py", head + "".join(f"    {line}\n" for line in lines))

    def trust(self) -> None:
        """Trust all that the project has now."""
        trust(self.places, Trust(self.places).project_files())

    def settings(self, **more: Any) -> Settings:
        return load_settings(self.places, self.environ, **more)


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    yield Person(tmp_path)
    for name in [name for name in sys.modules if name.startswith("noeta_plugin_file_")]:
        del sys.modules[name]
