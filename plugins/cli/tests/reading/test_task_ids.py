"""TASK is an id, a beginning of one that no other task shares, or `last`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from noeta.toolkit.store import Line, NewTask
from noeta_cli.readers import Wrong
from noeta_cli.task_ids import find_task

IDS = ["abcd-1", "abcd-2", "abcd-3", "abcd-4", "abcd-5", "abcd-6", "abcd", "efgh-long", "ef"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from noeta_sqlite import SqliteReader, SqliteStore

    file = tmp_path_factory.mktemp("ids") / "n.db"

    async def fill() -> None:
        store = SqliteStore(file)
        line = Line(1, b'{"seq":1,"at":1,"extension":"core","kind":"x"}', "core.x")
        for id in IDS:
            await store.create(NewTask(task=id, agent="a", root=id, lines=[line]))
        spawned = NewTask(task="child", agent="a", root="ef", parent="ef", key="k", lines=[line])
        await store.create(spawned)
        await store.aclose()

    anyio.run(fill)
    return SqliteReader(file)


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("abcd-3", "abcd-3"),
        ("efgh", "efgh-long"),
        # A whole id counts also where it begins others, and where it is short.
        ("abcd", "abcd"),
        ("ef", "ef"),
        ("child", "child"),
        # The newest one that nobody spawned.
        ("last", "ef"),
    ],
)
def test_one_task_is_meant(reader: Any, text: str, task: str) -> None:
    assert find_task(reader, text) == task


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("abcd-", "'abcd-' begins the ids of 6 tasks: abcd-2, abcd-3, abcd-4, abcd-5, abcd-6 and 1 more; "),
        ("efg", "'efg' is too short for a task; write its id, or its first 4 characters."),
        ("abdc-1", "there is no task 'abdc-1' in this store (did you mean 'abcd-1'?); `noeta tasks` "),
        ("", "there is no task '' in this store; `noeta tasks` lists them."),
        ("zzzz", "there is no task 'zzzz' in this store; `noeta tasks` lists them."),
        ("a%", "there is no task 'a%' in this store; `noeta tasks` lists them."),
    ],
)
def test_none_or_several_are_told_in_a_sentence(reader: Any, text: str, says: str) -> None:
    with pytest.raises(Wrong) as error:
        find_task(reader, text)
    assert error.value.format_message().startswith(says)


def test_an_empty_store_has_no_last_task(tmp_path: Path) -> None:
    from noeta_sqlite import SqliteReader, SqliteStore

    async def make() -> None:
        await SqliteStore(tmp_path / "n.db").aclose()

    anyio.run(make)
    with pytest.raises(Wrong, match="there is no task in this store yet"):
        find_task(SqliteReader(tmp_path / "n.db"), "last")
