"""`noeta tasks` lists them, the newest first, without an event loop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def test_the_newest_comes_first_and_a_child_is_marked(noeta: Any, office: Any) -> None:
    done = noeta("tasks")
    rows = done.out.splitlines()
    assert rows[0].split() == ["TASK", "STATUS", "AGENT", "AGE", "GOAL"]
    ids = [row.replace("└ ", "").split()[0] for row in rows[1:]]
    named = [office.child, office.parent, office.asks, office.fork, office.idle, office.ended]
    assert ids == [*named, office.asker, office.waits]
    assert rows[1].startswith("└ ")
    assert [row.startswith("└") for row in rows[2:]] == [False] * 5 + [True, False]
    assert "waiting (question)" in rows[3]
    assert rows[3].endswith("Please ask me.")
    assert rows[4].endswith(f"(goes on from {office.idle})")
    assert "ended (done)" in rows[6]
    assert (done.code, done.err) == (0, "")


def test_a_limit_says_how_many_more_there_are(noeta: Any, office: Any) -> None:
    done = noeta("tasks", "--limit", "1")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["└"]
    assert done.err == "noeta: 7 more; --all shows them.\n"
    assert noeta("tasks", "--limit", "1", "--all").err == ""


def test_filters_choose(noeta: Any, office: Any) -> None:
    def ids(*words: str) -> list[str]:
        return [json.loads(line)["task"] for line in noeta("tasks", "--json", *words).out.splitlines()]

    assert ids("--status", "ended") == [office.child, office.ended]
    assert ids("--parent", office.parent[:8]) == [office.child]
    assert ids("--root", office.parent) == [office.child, office.parent]
    assert ids("--agent", "clerk", "--limit", "2") == [office.child, office.parent]
    assert ids("--agent", "nobody") == []
    assert noeta("tasks", "--agent", "nobody").err == "noeta: no task matches.\n"


def test_a_line_of_json_is_the_row_and_the_goal(noeta: Any, office: Any) -> None:
    from noeta_sqlite import SqliteReader

    [line] = noeta("tasks", "--json", "--root", office.asks).out.splitlines()
    found = json.loads(line)
    assert found.pop("goal") == "Please ask me."
    row = SqliteReader(office.db).task(office.asks)
    assert found == {name: getattr(row, name) for name in row.__struct_fields__}


def test_without_a_store_there_is_no_task_yet(noeta: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("NOETA_HOME", str(tmp_path / "home"))
    done = noeta("tasks", store="")
    assert done == (0, "", "noeta: there is no task yet; `noeta run` begins one.\n")
    assert not (tmp_path / "home").exists()


def test_no_event_loop_is_imported(office: Any, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.argv = ['noeta', 'tasks', '--store', {office.url!r}]\n"
        "from noeta.__main__ import main\nmain()\n"
        "print(*sorted({'asyncio', 'anyio', 'rich', 'pluggy'} & {*sys.modules}), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=office.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert office.parent in run.stdout
    assert run.stderr == "\n"


def test_a_store_without_a_reader_is_read_through_itself(office: Any, tmp_path: Path) -> None:
    site = tmp_path / "site"
    info = site / "noeta_other-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noeta-other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[noeta.stores]\nother = other_m:open_other\n")
    (site / "other_m.py").write_text(
        "from noeta_sqlite import open_store\n"
        "def open_other(url, settings):\n    return open_store(url.replace('other:', 'sqlite:'))\n"
    )
    env = {**office.env, "PYTHONPATH": f"{site}:{office.env['PYTHONPATH']}"}

    def run(*words: str) -> str:
        line = [sys.executable, "-m", "noeta", *words, "--store", f"other:{office.db}"]
        made = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert (made.returncode, made.stderr) == (0, "")
        return made.stdout

    assert office.parent in run("tasks")
    assert "Please ask me." in run("show", office.asks)
    assert "records" in run("store", "stats")
