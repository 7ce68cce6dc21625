"""Every wrong input is one sentence on standard error, and nothing on standard output."""

from __future__ import annotations

from typing import Any

import pytest

TASK_COMMANDS = ("log", "show", "state", "why", "export")
WRONG = [
    *((command, "nothing-like-it") for command in TASK_COMMANDS),
    *((command, "ab") for command in TASK_COMMANDS),
    ("tasks", "--status", "waitin"),
    ("tasks", "--limit", "0"),
    ("tasks", "--limit", "many"),
    ("tasks", "--parent", "nothing-like-it"),
    ("tasks", "--root", ""),
    ("log", "last", "--after", "-1"),
    ("log", "last", "--raw", "--json"),
    ("state", "last", "--at", "0"),
    ("state", "last", "--at", "10000"),
    ("state", "last", "--plugin", "nothing"),
    ("why", "last", "nothing"),
    ("store", "sweep"),
    ("store", "sweep", "--older-than", "5y"),
    ("store", "sweep", "--older-than", "d"),
    ("store", "sweep", "--older-than", "-1d"),
    ("store", "backup"),
    ("store", "backup", "no/such/folder/b.db"),
    ("export", "last", "no/such/folder/log"),
    ("tasks", "--nothing"),
    ("doctor", "now"),
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_wrong_input_is_told_in_a_sentence(noeta: Any, words: tuple[str, ...]) -> None:
    done = noeta(*words)
    assert (done.code, done.out) == (2, "")
    lines = [line for line in done.err.splitlines() if not line.startswith("Try 'noeta")]
    assert lines[-1].startswith("noeta: ")
    assert len(lines) == 1
    assert done.err.count("Traceback") == 0


@pytest.mark.parametrize(
    "command", ["tasks", "log last", "show last", "state last", "store stats", "export last"]
)
@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("memory:", "is gone with the process that had it"),
        ("sqlte:n.db", "did you mean 'sqlite'?"),
        ("n.db", "it has no scheme"),
        ("sqlite:", "names no SQLite file"),
        ("sqlite:none.db", "there is no store at"),
        ("sqlite:n.db?sync=1", "sync"),
    ],
)
def test_a_wrong_store_is_told_in_a_sentence(noeta: Any, command: str, store: str, says: str) -> None:
    done = noeta(*command.split(), store=store)
    assert (done.code, done.out) == (2, "")
    [line] = done.err.splitlines()
    assert line.startswith("noeta: ")
    assert says in line
