"""Reading without an event loop: the same answers, on a live store and on a closed one, and no file made."""

# ruff: noqa: ASYNC220, ASYNC240 -- a look at files of the test.

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from noeta.toolkit.store import (
    Append,
    Blob,
    Line,
    Post,
    SnapshotPart,
    Timer,
    Unavailable,
    UnknownTask,
    history,
)
from noeta_sqlite import SqliteReader, SqliteStore

pytestmark = pytest.mark.anyio


async def fill(store: SqliteStore, new_task: Any) -> None:
    mail = [Post(task="task", key=str(number), kind="message", body=b"{}") for number in range(3)]
    await store.create(new_task("task", ["one", "two", "three"], posts=mail))
    (claim,) = await store.claim("worker")
    await store.append(
        claim,
        Append(
            expected_seq=3,
            id=b"i" * 16,
            lines=[Line(4, b'{"message":1}', "other.said", True)],
            blobs=[Blob("name", b"bytes")],
            set_timers=[Timer(name="timer", gen=4, at=5.0)],
            snapshot=[SnapshotPart(name="part", fingerprint="f", seq=4, data=b"data")],
        ),
    )
    await store.create(new_task("branch", ["four"], base="task", through=2))


async def same_answers(store: SqliteStore, reader: SqliteReader) -> None:
    assert reader.tasks() == await store.tasks()
    assert reader.tasks(base="task", status="waiting") == await store.tasks(base="task", status="waiting")
    assert reader.task("task") == await store.task("task")
    assert reader.read("task") == await store.read("task")
    assert reader.read("task", 1, limit=1) == await store.read("task", 1, limit=1)
    assert reader.read("task", only=["other"]) == await store.read("task", only=["other"]) != []
    assert reader.messages("task") == await store.messages("task") != []
    assert reader.messages("task", 1, through=2) == await store.messages("task", 1, through=2)
    assert reader.inbox("task", 2) == await store.inbox("task", 2)
    assert reader.timers("task") == await store.timers("task") != []
    assert reader.snapshot("task") == await store.snapshot("task") != []
    assert reader.read_blob("name") == await store.read_blob("name") == b"bytes"
    assert reader.next_wake() == await store.next_wake()
    for page in (1, 2, 100):
        pages = [lines async for lines in history(store, "branch", page=page)]
        assert list(reader.history("branch", page=page)) == pages
    assert [line.seq for lines in reader.history("branch", 1, through=2) for line in lines] == [2]


async def test_a_reader_answers_as_the_store_does(path: Path, opened: Any, new_task: Any, disk: Any) -> None:
    async with opened(path) as store:
        await fill(store, new_task)
        reader = SqliteReader(path)
        await same_answers(store, reader)
    before = disk(path.parent)
    tasks = SqliteReader(path).tasks()
    assert reader.tasks() == tasks
    assert disk(path.parent) == before
    async with opened(path) as store:
        await store.create(new_task("later"))
        await same_answers(store, reader)
        assert len(reader.tasks()) == 3


async def test_a_reader_in_another_process_sees_what_is_committed(
    path: Path, opened: Any, new_task: Any
) -> None:
    code = (
        "import sys; from noeta_sqlite import SqliteReader; reader = SqliteReader(sys.argv[1])\n"
        "for _ in sys.stdin: print(*[task.task for task in reader.tasks()], flush=True)"
    )
    async with opened(path) as store:
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            names: list[str] = []
            for name in ("a", "b", "c"):
                await store.create(new_task(name))
                names.append(name)
                child.stdin.write("?\n")
                assert child.stdout.readline().split() == names
            child.stdin.close()
            assert child.wait(timeout=20) == 0


async def test_a_reader_sees_the_log_of_a_process_that_died(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        await store.create(new_task("task"))
        log, main = path.with_name("noeta.db-wal").read_bytes(), path.read_bytes()
    copy = path.parent / "copy.db"
    copy.write_bytes(main)
    copy.with_name("copy.db-wal").write_bytes(log)
    assert SqliteReader(copy).task("task").last_seq == 1
    assert copy.with_name("copy.db-wal").read_bytes() == log
    assert copy.read_bytes() == main


def test_without_a_store_a_reader_says_so_and_makes_nothing(path: Path, disk: Any) -> None:
    for place in (path, path.parent / "no" / "folder" / "noeta.db"):
        with pytest.raises(Unavailable, match="no store at") as caught:
            SqliteReader(place)
        assert caught.value.reason == "missing"
    assert disk(path.parent) == {}
    path.touch()
    with pytest.raises(Unavailable, match="no store at"):
        SqliteReader(path)
    assert disk(path.parent) == {path.name: b""}


async def test_a_reader_knows_an_unknown_task(path: Path, opened: Any) -> None:
    async with opened(path):
        reader = SqliteReader(path)
        for ask in (reader.task, reader.read, reader.inbox, reader.timers, reader.snapshot):
            with pytest.raises(UnknownTask):
                ask("nobody")


async def test_an_older_format_is_left_to_those_who_write(path: Path, opened: Any) -> None:
    async with opened(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 0")
    with pytest.raises(Unavailable, match="Start a worker once") as caught:
        SqliteReader(path)
    assert caught.value.reason == "older"


async def test_a_file_that_changes_while_it_is_read_is_read_again(
    path: Path, opened: Any, new_task: Any
) -> None:
    async with opened(path) as store:
        await store.create(new_task("task"))
    reader = SqliteReader(path)
    looks = []

    def look(db: Any) -> int:
        looks.append(db.one("SELECT count(*) FROM task")[0])
        if len(looks) == 1:
            os.utime(path, ns=(1, 1))
        return len(looks)

    assert reader._look(look) == 2
    with pytest.raises(Unavailable, match="all the time"):
        reader._look(lambda _: os.utime(path, ns=(len(looks), looks.append(0) or len(looks))))
