"""The auditor notices each thing spoilt in a good database, or in what was heard of it."""

from __future__ import annotations

import copy
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from auditor import audit
from journal import all_entries
from rig import Rig

Entries = list[dict[str, Any]]
LAST = "(SELECT id, last_seq FROM task WHERE last_seq > 1)"
FEWER = "UPDATE task SET last_seq = last_seq - 1 WHERE last_seq > 1"
SHORTER = f"DELETE FROM record WHERE (task, seq) IN {LAST}; {FEWER}"
CHILDLESS = "DELETE FROM task WHERE parent != '';" + "".join(
    f" DELETE FROM {table} WHERE task NOT IN (SELECT id FROM task);"
    for table in ("record", "inbox", "timer", "part", "hold")
)
TWICE = (
    "INSERT INTO record (id, name, message, line) SELECT record.id + 1, name, message, line FROM record JOIN"
    " (SELECT id AS of, last_seq FROM task) ON of = task AND seq = last_seq;"
    " UPDATE task SET last_seq = last_seq + 1"
)
FENCE = (
    "UPDATE record SET line = CAST(replace(CAST(line AS TEXT), '\"fence\": ', '\"fence\": -') AS BLOB)"
    f" WHERE (task, seq) IN {LAST}"
)
ACCEPTED = (
    "INSERT INTO inbox SELECT task, (SELECT posts + 1 FROM task WHERE id = inbox.task), 'unasked', kind,"
    " x'00' FROM inbox WHERE n = 1; UPDATE task SET posts = posts + 1, unread = unread + 1"
)
FIRED = (
    "INSERT OR REPLACE INTO timer SELECT task, substr(key, 7, 2), substr(key, 10), 0, '' FROM inbox"
    " WHERE key LIKE 'timer:%'"
)
SPOILT_ROWS = [
    ("a record is gone", f"DELETE FROM record WHERE (task, seq) IN {LAST}", "has .* records from"),
    (
        "a record is gone, and the count says so",
        SHORTER,
        "was acknowledged, and is not there",
    ),
    (
        "half of an append is gone",
        SHORTER,
        "is there in part",
    ),
    (
        "a record is there twice",
        TWICE,
        "nothing that was asked for explains record",
    ),
    (
        "a record has another byte",
        "UPDATE record SET line = CAST(replace(CAST(line AS TEXT), 'xxx', 'xxy') AS BLOB) WHERE seq > 1",
        "is not there|explains",
    ),
    (
        "a record was written by an older claim",
        FENCE,
        "has a record of fence -",
    ),
    ("a fence went down", "UPDATE task SET fence = 0", "at fence 0 has a record of fence|has a lower one"),
    (
        "a post is gone",
        "UPDATE inbox SET key = 'never' WHERE key = 'first:r1'",
        r"nobody posted item|with a body",
    ),
    (
        "a key was accepted twice",
        ACCEPTED,
        "nobody posted item",
    ),
    (
        "an item that was consumed is unread",
        "UPDATE inbox SET body = x'00' WHERE body IS NULL; UPDATE task SET unread = posts",
        "records; unread: True",
    ),
    (
        "an item is consumed without a record",
        "UPDATE inbox SET body = NULL; UPDATE task SET unread = 0",
        "is in 0 records; unread: False",
    ),
    (
        "an unread item has another body",
        "UPDATE inbox SET body = x'00' WHERE body IS NOT NULL",
        "nobody posted item",
    ),
    (
        "a child is gone",
        CHILDLESS,
        "and its child .* is not",
    ),
    (
        "a child is nobody's",
        "UPDATE task SET key = 'other' || key WHERE parent != ''",
        "does not come from the first",
    ),
    (
        "a key has two children",
        "DROP INDEX task_key; UPDATE task SET key = 'k1' WHERE parent != ''",
        "has . children",
    ),
    (
        "a wake-up is lost",
        "UPDATE task SET status = 'waiting', turn = NULL WHERE unread > 0",
        "has unread mail",
    ),
    ("a ready task is in no line", "UPDATE task SET turn = NULL", "is ready with turn none"),
    ("a claim has no lease", "DELETE FROM worker", "who has no lease"),
    ("a running task has nobody", "UPDATE task SET token = NULL", "nobody holds it"),
    ("a timer is gone", "DELETE FROM timer", "is there: False, fired: False"),
    (
        "a timer that fired is there",
        FIRED,
        "fired: True|timers that nothing left",
    ),
    (
        "a timer was set by nobody",
        "INSERT INTO timer SELECT id, 'new', 1, 2.0, '' FROM task",
        "nothing left there",
    ),
    ("an ended task has a timer", "INSERT INTO timer SELECT id, 'new', 1, 2.0, '' FROM task", "^ended task"),
    ("an ended task is back", "UPDATE task SET status = 'ready' WHERE status = 'ended'", "ended it: True"),
    ("posts are miscounted", "UPDATE task SET posts = posts + 1", "counts .* posts"),
    ("unread items are miscounted", "UPDATE task SET unread = unread + 1", "unread items, and has"),
    ("a snapshot is an old one", "UPDATE part SET data = x'00'", "is not what its appends left"),
    ("a blob is gone", "DELETE FROM blob", "held and not there"),
    ("a blob has other bytes", "UPDATE blob SET data = x'00'", "its blob .* is not"),
    ("rows are left of a task", "INSERT INTO hold VALUES ('x', 1000000)", "a row of hold without its task"),
]


# What a run has to leave, so that each thing below can be spoilt.
NEEDED = (
    "FROM task WHERE parent != ''",
    "FROM task WHERE status = 'ended'",
    "FROM task WHERE status = 'ready'",
    "FROM task WHERE token IS NOT NULL AND status = 'running'",
    "FROM inbox WHERE body IS NULL",
    "FROM inbox WHERE body IS NOT NULL",
    "FROM inbox WHERE key LIKE 'timer:%'",
    *(f"FROM {table}" for table in ("timer", "part", "blob", "worker")),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short run in which nobody was killed before the end."""
    for seconds in (3.0, 6.0, 12.0, 24.0):
        folder = tmp_path_factory.mktemp("good")
        rig = Rig(folder, seed=1)
        rig.undisturbed = True
        assert rig.run(seconds) == []
        with closing(sqlite3.connect(folder / "killed.db")) as connection:
            if all(connection.execute(f"SELECT 1 {what} LIMIT 1").fetchone() for what in NEEDED):
                return folder
    pytest.fail("no run left all that is to be spoilt")


@pytest.fixture(scope="module")
def heard(good: Path) -> Entries:
    return [entry for entry in all_entries(good) if entry["file"] != "drain.journal"]


def spoilt(good: Path, folder: Path, sql: str) -> Path:
    """A copy of the good database on which `sql` was run."""
    path = folder / "spoilt.db"
    shutil.copyfile(good / "killed.db", path)
    with sqlite3.connect(path) as connection:
        connection.executescript(sql)
    connection.close()
    return path


@pytest.mark.parametrize(
    ("sql", "said"), [case[1:] for case in SPOILT_ROWS], ids=[case[0] for case in SPOILT_ROWS]
)
def test_a_spoilt_table_is_noticed(sql: str, said: str, good: Path, heard: Entries, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=rf"(?m){said}"):
        raise AssertionError("\n".join(audit(spoilt(good, tmp_path, sql), heard)))


def test_a_page_of_junk_is_noticed(good: Path, heard: Entries, tmp_path: Path) -> None:
    path = spoilt(good, tmp_path, "")
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 4096 // 2 * 4096)
        file.write(b"junk" * 1024)
    assert any(sentence.startswith("integrity_check") for sentence in audit(path, heard))


def _answers_changed(what: str, change: Callable[[dict[str, Any]], None]) -> Callable[[Entries], None]:
    def changed(entries: Entries) -> None:
        for entry in entries:
            if entry["what"] == what and [a["answer"] for a in entry["answers"]] == ["ok"]:
                change(entry)

    return changed


def _refused(entry: dict[str, Any]) -> None:
    entry["answers"] = [{"answer": "Fenced"}]


def _refused_again(entry: dict[str, Any]) -> None:
    entry["answers"].append({"answer": "Conflict"})


def _at_another_seq(entry: dict[str, Any]) -> None:
    entry["answers"][0]["done"]["last_seq"] += 1


def _twice(entries: Entries) -> None:
    entries += [copy.deepcopy(entry) for entry in entries if entry["what"] in {"claim", "post"}]


def _never_asked(entries: Entries) -> None:
    entries[:] = [entry for entry in entries if entry["what"] != "append"]


def _other_bytes(entry: dict[str, Any]) -> None:
    entry["append"]["posts"] = [post | {"key": f"not {post['key']}"} for post in entry["append"]["posts"]]


SPOILT_ANSWERS = [
    (
        "an append that is there was refused",
        _answers_changed("append", _refused),
        r"was refused \(Fenced\), and is",
    ),
    (
        "an append was refused when repeated",
        _answers_changed("append", _refused_again),
        "answered Conflict when",
    ),
    (
        "an append was told another seq",
        _answers_changed("append", _at_another_seq),
        "was told that the log is at",
    ),
    (
        "an append's posts are not there",
        _answers_changed("append", _other_bytes),
        "is there, and its post .* is not",
    ),
    ("a fence was given twice", _twice, "was given twice"),
    ("a post was accepted twice", _twice, "was accepted 2 times"),
    ("nobody asked for what is there", _never_asked, "nothing that was asked for explains"),
    ("a timer came from nowhere", _never_asked, "nothing set that timer"),
]


@pytest.mark.parametrize(
    ("change", "said"), [case[1:] for case in SPOILT_ANSWERS], ids=[case[0] for case in SPOILT_ANSWERS]
)
def test_an_answer_that_was_no_truth_is_noticed(
    change: Callable[[Entries], None], said: str, good: Path, heard: Entries, tmp_path: Path
) -> None:
    entries = copy.deepcopy(heard)
    change(entries)
    with pytest.raises(AssertionError, match=said):
        raise AssertionError("\n".join(audit(spoilt(good, tmp_path, ""), entries)))


def test_a_good_database_is_found_good(good: Path, heard: Entries, tmp_path: Path) -> None:
    assert audit(spoilt(good, tmp_path, ""), heard) == []
