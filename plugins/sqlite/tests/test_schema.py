"""An older file is brought up to date at once or not at all, and people can read every format."""

# ruff: noqa: ASYNC221 -- the test waits for the process anyhow.

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from noeta.toolkit.store import Append, Line, Post, Timer
from noeta_sqlite.looking import check_owner
from noeta_sqlite.schema import APPLICATION_ID, STEPS, TABLES, VERSION, statements, upgrade

pytestmark = pytest.mark.anyio

LATER = [*STEPS, "ALTER TABLE task ADD COLUMN color TEXT; UPDATE task SET color = 'red; blue';"]


def format_of(path: Path) -> tuple[int, list[str]]:
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return version, [name for _, name, *_ in connection.execute("PRAGMA table_info(task)")]


@pytest.fixture
async def older(path: Path, opened: Any, new_task: Any) -> Path:
    async with opened(path) as store:
        await store.create(new_task("task"))
    return path


async def test_an_older_file_is_brought_up_to_date(older: Path) -> None:
    with closing(sqlite3.connect(older, isolation_level=None)) as connection:
        upgrade(connection, LATER)
        upgrade(connection, LATER)
        assert connection.execute("SELECT task, color FROM task").fetchall() == [("task", "red; blue")]
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert format_of(older)[0] == VERSION + 1


async def test_a_step_that_fails_leaves_the_older_file(older: Path) -> None:
    before = format_of(older)
    with closing(sqlite3.connect(older, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            upgrade(connection, [*LATER, "CREATE TABLE more (x); SELECT nonsense;"])
        assert not connection.in_transaction
    assert format_of(older) == before


KILLED = """
import os, sqlite3, sys
from noeta_sqlite.schema import STEPS, upgrade
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.create_function("die", 0, lambda: os.kill(os.getpid(), 9))
upgrade(connection, [*STEPS, "ALTER TABLE task ADD COLUMN color TEXT; SELECT die(); CREATE TABLE more (x);"])
"""


async def test_a_process_killed_in_a_step_leaves_the_older_file(older: Path, opened: Any) -> None:
    before = format_of(older)
    done = subprocess.run([sys.executable, "-c", KILLED, str(older)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert format_of(older) == before
    async with opened(older) as store:
        assert (await store.task("task")).last_seq == 1


def test_processes_that_open_a_new_file_together_make_it_once(path: Path) -> None:
    code = (
        f"import os; from noeta_sqlite import SqliteStore; SqliteStore({str(path)!r}, synchronous='NORMAL')"
    )
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait(timeout=60) for process in started] == [0] * 4
    assert format_of(path)[0] == VERSION


def test_a_file_whose_tables_are_made_while_it_is_looked_at_is_not_another_applications(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as maker:
        maker.execute("PRAGMA journal_mode = WAL")

        class Slow(sqlite3.Connection):
            """Somebody else makes the tables right after the first look."""

            def execute(self, sql: str, *parameters: Any) -> Any:
                if sql == "PRAGMA user_version":
                    upgrade(maker)
                return super().execute(sql, *parameters)

        with closing(sqlite3.connect(path, isolation_level=None, factory=Slow)) as connection:
            assert not check_owner(connection, path)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            assert check_owner(connection, path)


def test_a_script_is_cut_into_its_statements() -> None:
    assert statements("A; -- no; end\nB 'x;y';") == ["A;", "-- no; end\nB 'x;y';"]
    assert "".join("".join(statements(TABLES)).split()) == "".join(TABLES.split())


async def test_people_can_read_the_tables(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        body = b'{"text":"hi"}'
        mail = [Post(task="task", key=key, kind="message", body=body) for key in ("one", "two")]
        await store.create(new_task("task", posts=mail))
        (claim,) = await store.claim("worker")
        lines = [Line(2, b"no JSON", "probe.raw")]
        timers = [Timer(name="timer", gen=2, at=1_700_000_000.0, text="wake up")]
        append = Append(expected_seq=1, id=b"i" * 16, lines=lines, consume=[1], set_timers=timers)
        await store.append(claim, append)

    def shown(sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(sql).fetchall()

    assert shown("SELECT * FROM records") == [
        (
            *("task", 1, "2023-11-14 22:13:20.500", "probe", "noted"),
            '{"seq":1,"at":1700000000.5,"data":"hello"}',
        ),
        ("task", 2, None, "probe", "raw", "no JSON"),
    ]
    assert shown("SELECT task, status, last_seq, unread FROM tasks") == [("task", "running", 2, 1)]
    assert len(shown("SELECT * FROM tasks WHERE created_utc > '2023'")) == 1
    assert shown("SELECT * FROM inboxes") == [
        ("task", 1, "one", "message", 1, None),
        ("task", 2, "two", "message", 0, '{"text":"hi"}'),
    ]
    assert shown("SELECT * FROM timers") == [("task", "timer", "2023-11-14 22:13:20", "wake up")]
