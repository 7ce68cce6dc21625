"""`noeta store` counts, sweeps and backs up, and says what a store cannot do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def copy(office: Any, tmp_path: Path) -> Any:
    """A copy of the store, to be changed."""
    file = tmp_path / "copy.db"
    from noeta_sqlite import SqliteReader

    SqliteReader(office.db).backup(file)
    return f"sqlite:{file}"


def test_stats_count_and_measure(noeta: Any, office: Any) -> None:
    from noeta_sqlite import SqliteReader

    lines = dict(line.split(maxsplit=1) for line in noeta("store", "stats").out.splitlines())
    found = json.loads(noeta("store", "stats", "--json").out)
    stats = SqliteReader(office.db).stats()
    assert found["tasks"] == stats.tasks
    assert lines["tasks"] == ", ".join(f"{count} {status}" for status, count in stats.tasks.items())
    assert lines["file"].endswith("kB")


def test_sweep_deletes_what_is_over_and_old(noeta: Any, office: Any, copy: str) -> None:
    assert noeta("store", "sweep", "--older-than", "9d", "--yes", store=copy).out == "0 tasks deleted.\n"
    done = noeta("store", "sweep", "--older-than", "0s", "--yes", "--compact", "--json", store=copy)
    assert json.loads(done.out) == {"deleted": [office.ended]}
    left = noeta("tasks", "--json", store=copy).out
    assert office.ended not in left
    # Its parent goes on.
    assert office.child in left


def test_sweep_asks_first(noeta: Any, office: Any, copy: str, monkeypatch: Any) -> None:
    done = noeta("store", "sweep", "--older-than", "0s", store=copy)
    assert done.code == 2
    assert done.err == "noeta: nobody can be asked here, since standard input is no terminal; add --yes.\n"
    for said, code, left in (("n\n", 130, True), ("y\n", 0, False)):
        monkeypatch.setattr(sys, "stdin", _Terminal(said))
        done = noeta("store", "sweep", "--older-than", "0s", store=copy)
        assert done.code == code
        assert "delete up to 1 tasks of sqlite:" in done.err
        assert (office.ended in noeta("tasks", "--json", store=copy).out) is left


class _Terminal:
    """Somebody at a terminal who says one thing."""

    def __init__(self, said: str) -> None:
        self._said = said

    def isatty(self) -> bool:
        return True

    def readline(self, *_: Any) -> str:
        return self._said


def test_a_sweep_makes_no_store(noeta: Any, tmp_path: Path) -> None:
    done = noeta("store", "sweep", "--older-than", "1d", "--yes", store=f"sqlite:{tmp_path / 'none.db'}")
    assert done.code == 2
    assert "there is no store at" in done.err
    assert not (tmp_path / "none.db").exists()


def test_a_backup_is_a_store_and_replaces_nothing(noeta: Any, office: Any, tmp_path: Path) -> None:
    assert noeta("store", "backup", "b.db").out == "b.db\n"
    assert office.ended in noeta("tasks", store="sqlite:b.db").out
    done = noeta("store", "backup", "b.db")
    assert (done.code, done.out) == (2, "")
    assert "is there already" in done.err


def test_a_store_that_cannot_do_it_says_so(noeta: Any, office: Any, tmp_path: Path, monkeypatch: Any) -> None:
    info = tmp_path / "site" / "noeta_bare-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noeta-bare\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[noeta.stores]\nbare = bare_m:open_bare\n")
    (tmp_path / "site" / "bare_m.py").write_text(
        "from noeta.toolkit.in_memory import InMemoryStore\n"
        "from noeta.toolkit.system import RandomIds, SystemClock\n"
        "def open_bare(url, settings):\n    return InMemoryStore(SystemClock(), RandomIds())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for words, what in (
        (("stats",), "say how much it holds"),
        (("backup", "x.db"), "write a backup"),
        (("sweep", "--older-than", "1d", "--yes", "--compact"), "be compacted"),
    ):
        done = noeta("store", *words, store="bare:")
        assert done == (2, "", f"noeta: a store of the kind 'bare' cannot {what}.\n")
    assert noeta("store", "sweep", "--older-than", "1d", "--yes", store="bare:").out == "0 tasks deleted.\n"
