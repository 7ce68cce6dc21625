"""The folder that a command works in, and an input that never ends."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest


def in_a_folder_that_is_gone(noeta: Any, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder that is removed before it looks where it is."""
    gone = noeta.folder / "gone"
    gone.mkdir()
    was = Path.cwd()
    os.chdir(gone)
    try:
        shutil.rmtree(gone)
        return noeta(*words, cwd=None)
    finally:
        os.chdir(was)


@pytest.mark.parametrize("words", [("run", "go"), ("tasks",), ("doctor",), ("plugins", "trust")])
def test_a_folder_that_is_gone_is_told(noeta: Any, words: tuple[str, ...]) -> None:
    ran = in_a_folder_that_is_gone(noeta, *words)
    assert ran.returncode == 2
    assert ran.stderr == "noeta: the folder you are in is gone; change to another one\n"


def test_a_folder_whose_name_is_no_text_is_told(noeta: Any) -> None:
    folder = os.fsdecode(os.fsencode(noeta.folder) + b"/caf\xe9")
    Path(folder).mkdir()
    ran = noeta("run", "go", "--cwd", folder)
    assert ran.returncode == 2
    assert "is no UTF-8; work in another one, or rename it" in ran.stderr
    assert "Error" not in ran.stderr


def test_what_an_error_names_cannot_draw_on_the_terminal(noeta: Any) -> None:
    folder = noeta.folder / "e\x1b]0;x\x07\x1b[31mX"
    folder.mkdir()
    noeta("run", "go")
    ran = noeta("run", "-c", "-p", "go", cwd=folder)
    assert ran.returncode == 2
    assert "/eX to continue" in ran.stderr
    assert "\x1b" not in ran.stderr


def test_an_input_to_which_nobody_writes_is_told_also_without_a_terminal(noeta: Any) -> None:
    process = noeta.start("run", "go", stdin=subprocess.PIPE)
    # It waits, so this comes before the input is closed.
    assert process.stderr.readline() == (
        "noeta: reading the prompt from standard input; </dev/null gives none ...\n"
    )
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "Nothing more.\n")
