"""`.ci/uv` runs the pinned uv: the machine's own when it has that version, else one in `.tools`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAUNCHER = ROOT / ".ci" / "uv"
FOUND = re.search(r'VERSION = "(.+)"', LAUNCHER.read_text())
assert FOUND
VERSION = FOUND[1]


def write_uv(path: Path, version: str, says: str) -> None:
    """Write a program that answers like uv."""
    path.parent.mkdir(parents=True, exist_ok=True)
    answer = f'[ "$1" = --version ] && echo "uv {version}" && exit'
    path.write_text(f'#!/bin/sh\n{answer}\necho {says} "$@"\nexit 5\n')
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Give a folder that holds the launcher alone."""
    (tmp_path / "checkout" / ".ci").mkdir(parents=True)
    shutil.copy(LAUNCHER, tmp_path / "checkout" / ".ci" / "uv")
    return tmp_path / "checkout"


def launch(checkout: Path, path: Path) -> tuple[int, str]:
    run = subprocess.run(
        [sys.executable, checkout / ".ci" / "uv", "run", "a b"],
        env=os.environ | {"PATH": f"{path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout


def test_the_machines_uv_is_used_when_it_has_the_version(checkout: Path, tmp_path: Path) -> None:
    write_uv(tmp_path / "bin" / "uv", VERSION, "machine")
    write_uv(checkout / ".tools" / "bin" / "uv", VERSION, "own")
    assert launch(checkout, tmp_path / "bin") == (5, "machine run a b\n")


def test_another_version_is_passed_over(checkout: Path, tmp_path: Path) -> None:
    write_uv(tmp_path / "bin" / "uv", "0.1.0", "machine")
    write_uv(checkout / ".tools" / "bin" / "uv", VERSION, "own")
    assert launch(checkout, tmp_path / "bin") == (5, "own run a b\n")


def test_a_uv_that_cannot_run_is_passed_over(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "bin" / "uv").chmod(0o755)
    write_uv(checkout / ".tools" / "bin" / "uv", VERSION, "own")
    assert launch(checkout, tmp_path / "bin") == (5, "own run a b\n")
