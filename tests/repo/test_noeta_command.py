"""The `noeta` script runs the command line of an installed plugin, and says what is missing without one."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import importlib_metadata
import pytest

from noeta.__main__ import main


def install(site: Path, distribution: str, source: str) -> None:
    """Lay out an installed distribution that offers a command line."""
    module = distribution.replace("-", "_")
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[noeta.cli]\nmain = {module}:main\n")


def noeta(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script with the distributions of `site` installed besides the real ones."""
    return subprocess.run(
        [sys.executable, "-m", "noeta", *arguments],
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


ECHO = "import sys\ndef main():\n    print(*sys.argv[1:])\n    return 7\n"


def test_the_script_runs_the_installed_command_line_and_returns_its_status(tmp_path: Path) -> None:
    install(tmp_path, "a-command-line", ECHO)
    run = noeta(tmp_path, "run", "Say hello")
    assert (run.returncode, run.stdout) == (7, "run Say hello\n")


def test_of_two_command_lines_the_first_by_name_runs_and_both_are_named(tmp_path: Path) -> None:
    install(tmp_path, "b-command-line", "def main():\n    raise AssertionError\n")
    install(tmp_path, "a-command-line", ECHO)
    run = noeta(tmp_path, "run")
    assert (run.returncode, run.stdout) == (7, "run\n")
    assert "a-command-line" in run.stderr
    assert "b-command-line" in run.stderr


def test_a_command_line_that_cannot_be_imported_is_named_with_its_reason(tmp_path: Path) -> None:
    install(tmp_path, "a-command-line", "import no_such_module\n")
    run = noeta(tmp_path, "run")
    assert (run.returncode, run.stdout) == (2, "")
    assert "a-command-line" in run.stderr
    assert "no_such_module" in run.stderr


def test_the_version_needs_no_command_line(tmp_path: Path) -> None:
    run = noeta(tmp_path, "--version")
    assert (run.returncode, run.stdout, run.stderr) == (0, f"noeta {version('noeta')}\n", "")


def test_without_a_command_line_the_script_says_how_to_install_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The session `build` shows the same on an installed wheel; here a real command line may be installed.
    monkeypatch.setattr(importlib_metadata, "entry_points", lambda **_: importlib_metadata.EntryPoints())
    monkeypatch.setattr(sys, "argv", ["noeta", "run", "Say hello"])
    assert main() == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "pip install noeta-cli" in err
