"""What workers ask all the time is answered by an index, however many tasks there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noeta.toolkit.store import Append, Blob, Line, NewTask, Post, SnapshotPart, Timer
from noeta_sqlite import SqliteStore
from noeta_sqlite.database import Database

Asked = list[tuple[str, tuple[Any, ...]]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Every statement that runs, with its values."""
    found: Asked = []

    def noted(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(db: Database, sql: str, *values: Any) -> Any:
            found.append((sql, values))
            return method(db, sql, *values)

        return run

    def noted_each(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(db: Database, sql: str, rows: Any) -> Any:
            found.extend((sql, tuple(row)) for row in rows)
            return method(db, sql, rows)

        return run

    for name in ("run", "all", "one"):
        monkeypatch.setattr(Database, name, noted(getattr(Database, name)))
    monkeypatch.setattr(Database, "each", noted_each(Database.each))
    return found


async def everything_a_worker_does(store: SqliteStore) -> None:
    line = Line(1, b'{"seq":1}', "core.created", False)
    post = Post(task="a", key="k1", kind="message", body=b"{}")
    await store.create(NewTask(task="a", agent="x", root="a", queue="q", lines=[line], posts=[post]))
    await store.post(Post(task="a", key="k2", kind="message", body=b"{}"))
    (claim,) = await store.claim("w1", queues=["q"], agents=["x"])
    await store.inbox("a")
    child = NewTask(task="b", agent="x", root="a", parent="a", key="k", base="a", through=1, lines=[])
    append = Append(
        expected_seq=1,
        id=b"1" * 16,
        lines=[Line(2, b'{"seq":2}', "core.received", True)],
        blobs=[Blob("0" * 64, b"blob")],
        consume=[1, 2],
        posts=[Post(task="b", key="k1", kind="message", body=b"{}")],
        spawn=[child],
        set_timers=[Timer(name="t", gen=2, at=1.0)],
        clear_timers=["u"],
        status="waiting",
        reason="idle",
        retry_at=1.0,
        release=True,
        version=2,
        snapshot=[SnapshotPart(name="core", fingerprint="1", seq=2, data=b"{}")],
    )
    await store.append(claim, append)
    await store.next_wake()
    await store.fire_timers()
    (claim,) = await store.claim("w2", task="a", version=2)
    await store.renew("w2")
    await store.release(claim)
    await store.read("a", 0, through=2, limit=10, only=["core"])
    await store.messages("a", 0, through=2)
    await store.snapshot("a")
    await store.timers("a")
    await store.task("a")
    await store.read_blob("0" * 64)
    await store.tasks(parent="a")
    await store.tasks(base="a")
    await store.tasks(root="a")
    for status in ("ready", "running", "waiting", "ended"):
        await store.tasks(status=status)
    await store.claim("gone", task="b", lease=-1.0)
    await store.claim("w4")
    await store.sweep(1.0)


@pytest.mark.anyio
async def test_nothing_that_a_worker_asks_reads_a_whole_table(tmp_path: Path, asked: Asked) -> None:
    store = SqliteStore(tmp_path / "noeta.db")
    await everything_a_worker_does(store)
    await store.aclose()
    db = sqlite3.connect(tmp_path / "noeta.db")
    kinds = ("SELECT", "UPDATE", "DELETE", "INSERT")
    plans = {
        sql: [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        for sql, values in asked
        if sql.lstrip().startswith(kinds)
    }
    db.close()
    assert len(plans) > 40
    # There are a handful of workers, and of names.
    small = ("SCAN worker", "SCAN name", "SCAN CONSTANT ROW", "SCAN (subquery")
    scans = {
        sql: plan
        for sql, plan in plans.items()
        if any("SCAN" in step and not step.startswith(small) for step in plan)
    }
    # Those that wait are most of all tasks, so that a page of them is soon full.
    assert [sql for sql in scans if "WHERE status = ? ORDER BY created_at" not in sql] == []
    # Sweeping sorts the roots of the tasks it found to be old. A family is sorted by age, and so are the
    # workers that were lost.
    few = ("DISTINCT root", "ORDER BY created_at", "FROM worker WHERE")
    sorting = [sql for sql, plan in plans.items() if any("TEMP B-TREE" in step for step in plan)]
    assert all(any(words in sql for words in few) for sql in sorting)


@pytest.mark.parametrize(
    ("words", "index"),
    [
        ("turn IS NOT NULL AND version <= ? ORDER BY turn", "task_turn"),
        ("WHERE worker = ? AND token IS NOT NULL", "task_worker"),
        ("FROM timer CROSS JOIN task", "timer_at"),
        ("retry_at <= ?1", "task_retry"),
        ("SELECT min(at)", "task_retry"),
        ("SELECT min(at)", "timer_at"),
        ("body IS NOT NULL ORDER BY n", "inbox_unread"),
        ("SELECT DISTINCT root", "task_ended"),
        ("status != 'waiting' ORDER BY created_at", "task_status"),
    ],
)
@pytest.mark.anyio
async def test_each_question_uses_the_index_made_for_it(
    words: str, index: str, tmp_path: Path, asked: Asked
) -> None:
    store = SqliteStore(tmp_path / "noeta.db")
    await everything_a_worker_does(store)
    await store.claim("w3", limit=10)
    await store.aclose()
    db = sqlite3.connect(tmp_path / "noeta.db")
    plans = [
        " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values))
        for sql, values in asked
        if words in sql
    ]
    db.close()
    assert plans
    assert [plan for plan in plans if index not in plan] == []
