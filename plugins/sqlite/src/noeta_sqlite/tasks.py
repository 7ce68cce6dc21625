"""Creating tasks, appending to them, posting to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from noeta.toolkit.in_memory.watches import Change
from noeta.toolkit.store import (
    Append,
    Appended,
    Blob,
    Claim,
    Conflict,
    Duplicate,
    Fenced,
    Line,
    NewTask,
    Post,
    TaskOver,
    UnknownTask,
)
from noeta_sqlite.database import Database
from noeta_sqlite.leases import give_up
from noeta_sqlite.schema import place


class Row(NamedTuple):
    """What an append looks at and changes of a task."""

    id: int
    status: str
    last_seq: int
    last_append: bytes | None
    fence: int
    token: bytes | None
    worker: str
    unread: int


ROW = "SELECT id, status, last_seq, last_append, fence, token, worker, unread FROM task WHERE task = ?"


def row_of(db: Database, task: str) -> Row:
    """The task's row. Raises `UnknownTask`."""
    found = db.one(ROW, task)
    if found is None:
        raise UnknownTask(task)
    return Row(*found)


def check_claim(row: Row, claim: Claim) -> None:
    """Raise `Fenced` unless `claim` is the newest one of the task and was not given up."""
    if (row.fence, row.token) != (claim.fence, claim.token):
        raise Fenced(f"task {claim.task!r} was claimed again or given up", reason="claim")


def create(db: Database, new: NewTask) -> None:
    """As `Store.create`."""
    _check_new(db, new)
    if (existing := _existing(db, new)) is not None:
        raise Duplicate(f"there is a task {existing!r} already", reason="task")
    _create(db, new)


def append(db: Database, claim: Claim, append: Append) -> Appended:
    """As `Store.append`."""
    row = row_of(db, claim.task)
    if append.id == row.last_append:
        return Appended(last_seq=row.last_seq)
    check_claim(row, claim)
    if row.last_seq != append.expected_seq:
        raise Conflict(
            f"the log of {claim.task!r} is at seq {row.last_seq}, not {append.expected_seq}", reason="seq"
        )
    _check_dense(append.lines, row.last_seq)
    oldest = (
        "SELECT n FROM inbox INDEXED BY inbox_unread WHERE task = ? AND body IS NOT NULL ORDER BY n LIMIT ?"
    )
    if append.consume and [n for (n,) in db.all(oldest, row.id, len(append.consume))] != list(append.consume):
        raise Conflict("the inbox rows to consume are not the oldest ones left", reason="consume")
    if append.status != "running" and row.unread > len(append.consume):
        raise Conflict(f"the inbox of {claim.task!r} holds more items", reason="inbox")
    for new in append.spawn:
        _check_new(db, new)

    _write_lines(db, row.id, append.lines)
    hold(db, row.id, append.blobs)
    db.each("UPDATE inbox SET body = NULL WHERE task = ? AND n = ?", [(row.id, n) for n in append.consume])
    db.each(
        "INSERT OR REPLACE INTO timer (task, name, gen, at, text) VALUES (?, ?, ?, ?, ?)",
        [(row.id, timer.name, timer.gen, timer.at, timer.text) for timer in append.set_timers],
    )
    db.each("DELETE FROM timer WHERE task = ? AND name = ?", [(row.id, name) for name in append.clear_timers])
    db.each(
        "INSERT OR REPLACE INTO part (task, name, fingerprint, seq, data) VALUES (?, ?, ?, ?, ?)",
        [(row.id, part.name, part.fingerprint, part.seq, part.data) for part in append.snapshot],
    )
    if row.status == "ended":
        status: dict[str, Any] = {}
    elif append.status == "running":
        status = {"status": "running", "reason": "", "retry_at": None}
    else:
        retry_at = append.retry_at if append.status == "waiting" else None
        status = {"status": append.status, "reason": append.reason, "retry_at": retry_at}
    if "ended" in (row.status, append.status):
        db.run("DELETE FROM timer WHERE task = ?", row.id)
    # A task that is held has no place among those that want a worker: until it is let go, `touch` would say
    # no more than this.
    goes_on = row.status == append.status == "running" and not append.release
    db.changed[claim.task] = "log" if goes_on else "work"
    change(
        db,
        row.id,
        updated_at=db.clock.now(),
        last_seq=row.last_seq + len(append.lines),
        last_append=append.id,
        unread=row.unread - len(append.consume),
        **status,
        **({"attempts": 0} if append.progress else {}),
    )
    if append.version > 1:
        db.run("UPDATE task SET version = max(version, ?) WHERE id = ?", append.version, row.id)
    if append.release:
        release(db, claim)
    existing = []
    for new in append.spawn:
        if (there := _existing(db, new)) is None:
            _create(db, new)
        else:
            existing.append(there)
    undelivered = [post for post in append.posts if not _delivered(db, post)]
    return Appended(last_seq=row.last_seq + len(append.lines), undelivered=undelivered, existing=existing)


def post(db: Database, post: Post) -> None:
    """As `Store.post`."""
    task = db.task_id(post.task)
    if db.one("SELECT 1 FROM inbox WHERE task = ? AND key = ?", task, post.key):
        raise Duplicate(f"task {post.task!r} has had a post with key {post.key!r}", reason="key")
    if not _delivered(db, post):
        raise TaskOver(post.task)


def release(db: Database, claim: Claim) -> None:
    """As `Store.release`."""
    row = db.one(ROW, claim.task)
    if row is None or (row[4], row[5]) != (claim.fence, claim.token):
        return
    found = Row(*row)
    # Who gives a claim up lives, so this one was not lost for nothing.
    sql = "UPDATE task SET token = NULL, worker = '', attempts = max(attempts - 1, 0) WHERE id = ?"
    db.run(sql, found.id)
    if found.status == "running" or (found.status == "waiting" and found.unread):
        change(db, found.id, status="ready", reason="", retry_at=None)
    give_up(db, found.worker)
    touch(db, found.id, claim.task)


def accept(db: Database, task: int, name: str, post: Post) -> bool:
    """Put a post into the inbox of a task that takes it, and wake the task; False when its key is not new."""
    (n,) = db.one("SELECT posts + 1 FROM task WHERE id = ?", task)
    sql = "INSERT OR IGNORE INTO inbox (task, n, key, kind, body) VALUES (?, ?, ?, ?, ?)"
    if db.run(sql, task, n, post.key, post.kind, post.body).rowcount == 0:
        return False
    change(db, task, posts=n)
    db.run("UPDATE task SET unread = unread + 1 WHERE id = ?", task)
    db.run(
        "UPDATE task SET status = 'ready', reason = '', retry_at = NULL WHERE id = ? AND status = 'waiting'",
        task,
    )
    touch(db, task, name)
    return True


def change(db: Database, task: int, **values: Any) -> None:
    """Set columns of a task's row."""
    columns = ", ".join(f"{name} = ?" for name in values)
    db.run(f"UPDATE task SET {columns} WHERE id = ?", *values.values(), task)


def touch(db: Database, task: int, name: str, change: Change = "work") -> None:
    """Note that a task changed, and whether it wants a worker now."""
    db.run(
        "UPDATE task SET updated_at = ?, turn = CASE"
        " WHEN token IS NULL AND (status = 'ready' OR (status = 'ended' AND unread > 0))"
        " THEN coalesce(turn, (SELECT coalesce(max(turn), 0) + 1 FROM task WHERE turn IS NOT NULL)) END"
        " WHERE id = ?",
        db.clock.now(),
        task,
    )
    db.changed[name] = change


def hold(db: Database, task: int, blobs: Sequence[Blob]) -> None:
    """Keep these blobs for the task."""
    db.each("INSERT OR IGNORE INTO blob (sha256, data) VALUES (?, ?)", blobs)
    db.each(
        "INSERT OR IGNORE INTO hold (sha256, task) VALUES (?, ?)", [(blob.sha256, task) for blob in blobs]
    )


def _create(db: Database, new: NewTask) -> None:
    now = db.clock.now()
    cursor = db.run(
        "INSERT INTO task (task, root, parent, key, agent, queue, status, reason, base, through, last_seq,"
        " created_at, updated_at, version) VALUES (?, ?, ?, ?, ?, ?, 'waiting', 'idle', ?, ?, ?, ?, ?, ?)",
        *(new.task, new.root, new.parent, new.key, new.agent, new.queue),
        *(new.base, new.through, new.through + len(new.lines), now, now, new.version),
    )
    task = cursor.lastrowid
    assert task is not None
    _write_lines(db, task, new.lines)
    hold(db, task, new.blobs)
    for post in new.posts:
        _delivered(db, post)
    touch(db, task, new.task)


def _write_lines(db: Database, task: int, lines: Sequence[Line]) -> None:
    db.each(
        "INSERT INTO record (id, name, message, line) VALUES (?, ?, ?, ?)",
        [(place(task, line.seq), db.name_id(line.name), line.message, line.data) for line in lines],
    )


def _delivered(db: Database, post: Post) -> bool:
    """Put `post` where it belongs; False when it cannot get there. A key seen before is passed over."""
    row = db.one("SELECT id, status FROM task WHERE task = ?", post.task)
    if row is None or (row[1] == "ended" and post.kind != "erase"):
        return False
    accept(db, row[0], post.task, post)
    return True


def _check_new(db: Database, new: NewTask) -> None:
    if new.parent:
        db.task_id(new.parent)
    last = row_of(db, new.base).last_seq if new.base else 0
    if not 0 <= new.through <= last:
        raise Conflict(
            f"task {new.task!r} cannot go on at seq {new.through} of {new.base!r}", reason="through"
        )
    _check_dense(new.lines, new.through)


def _check_dense(lines: Sequence[Line], after: int) -> None:
    if [line.seq for line in lines] != list(range(after + 1, after + 1 + len(lines))):
        raise Conflict(f"the lines do not follow seq {after} without a gap", reason="gap")


def _existing(db: Database, new: NewTask) -> str | None:
    """The id of the task that `new` would double."""
    same = db.one("SELECT task FROM task WHERE task = ?", new.task)
    if same is None and new.key:
        # Only what leaves empty keys out may use the index of keys.
        same = db.one("SELECT task FROM task WHERE parent = ? AND key = ? AND key != ''", new.parent, new.key)
    return None if same is None else str(same[0])
