"""Distributions that are laid out as an installer does it, and found as installed ones are."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest


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
