"""The tables of a noeta database, and how an older one becomes a newer one.

Records, posts and blobs are BLOBs, never TEXT: they hold any bytes. Names that the store selects by are TEXT.
A task's rows are keyed by a small integer, and the (extension, kind) of a record by another, so a record
costs a few bytes more than its line.

A record's key is one number, made of its task and its seq. SQLite keeps rows in the order of such a key and
needs no index for it. When rows come in order it fills each page, and a row has a page to itself rather than
a chain of them until it is as large as one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

APPLICATION_ID = 0x6E6F6574
"""What `PRAGMA application_id` says of a database of ours: the letters "noet"."""

TABLES = """
CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    task TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    parent TEXT NOT NULL,
    key TEXT NOT NULL,
    agent TEXT NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT NOT NULL,
    base TEXT NOT NULL,
    through INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    last_append BLOB,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    retry_at REAL,
    posts INTEGER NOT NULL DEFAULT 0,
    unread INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    token BLOB,
    worker TEXT NOT NULL DEFAULT '',
    attempts INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL,
    -- The place among the tasks that want a worker, NULL for all others.
    turn INTEGER
) STRICT;
CREATE UNIQUE INDEX task_key ON task (parent, key) WHERE key != '';
CREATE INDEX task_turn ON task (turn) WHERE turn IS NOT NULL;
CREATE INDEX task_worker ON task (worker) WHERE token IS NOT NULL;
CREATE INDEX task_retry ON task (retry_at) WHERE retry_at IS NOT NULL;
-- Most tasks of a store wait: the others are looked for.
CREATE INDEX task_status ON task (status, created_at, task) WHERE status != 'waiting';
CREATE INDEX task_created ON task (created_at, task);
CREATE INDEX task_root ON task (root);
CREATE INDEX task_ended ON task (updated_at) WHERE status = 'ended';
CREATE INDEX task_parent ON task (parent) WHERE parent != '';
CREATE INDEX task_base ON task (base) WHERE base != '';

CREATE TABLE name (
    id INTEGER PRIMARY KEY,
    extension TEXT NOT NULL,
    kind TEXT NOT NULL,
    UNIQUE (extension, kind)
) STRICT;

CREATE TABLE record (
    -- See `place`.
    id INTEGER PRIMARY KEY,
    task INTEGER AS (id >> 32),
    seq INTEGER AS (id & 4294967295),
    name INTEGER NOT NULL,
    message INTEGER NOT NULL,
    line BLOB NOT NULL
) STRICT;

CREATE TABLE inbox (
    task INTEGER NOT NULL,
    n INTEGER NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- NULL once consumed: the key alone stays.
    body BLOB,
    PRIMARY KEY (task, n),
    UNIQUE (task, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_unread ON inbox (task, n) WHERE body IS NOT NULL;

CREATE TABLE timer (
    task INTEGER NOT NULL,
    name TEXT NOT NULL,
    gen INTEGER NOT NULL,
    at REAL NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (task, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX timer_at ON timer (at);

CREATE TABLE part (
    task INTEGER NOT NULL,
    name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    seq INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (task, name)
) STRICT;

CREATE TABLE blob (
    sha256 TEXT PRIMARY KEY,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE hold (
    sha256 TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (sha256, task)
) STRICT, WITHOUT ROWID;
CREATE INDEX hold_task ON hold (task);

-- A lease is a point of the machine's clock since it was started, so another start ends it.
CREATE TABLE worker (
    worker TEXT PRIMARY KEY,
    boot TEXT NOT NULL,
    until REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Holds a row of an erasure until no byte of what was erased is left in unused parts of the file.
CREATE TABLE leftover (
    id INTEGER PRIMARY KEY AUTOINCREMENT
) STRICT;

-- For people. No code of ours reads these.
CREATE VIEW tasks AS SELECT
    task, status, reason, agent, queue, parent, root, base, last_seq, unread, worker, attempts,
    datetime(created_at, 'unixepoch') AS created_utc,
    datetime(updated_at, 'unixepoch') AS updated_utc,
    datetime(retry_at, 'unixepoch') AS retry_utc
FROM task ORDER BY created_at, task;

CREATE VIEW records AS SELECT
    task.task AS task, seq,
    strftime('%Y-%m-%d %H:%M:%f', CASE WHEN json_valid(text) THEN json_extract(text, '$.at') END, 'unixepoch')
        AS utc,
    extension, kind, text
FROM (SELECT id, task AS of, seq, name, CAST(line AS TEXT) AS text FROM record) AS record
JOIN task ON task.id = of JOIN name ON name.id = record.name
ORDER BY record.id;

CREATE VIEW inboxes AS SELECT
    task.task AS task, n, inbox.key AS key, kind, body IS NULL AS consumed, CAST(body AS TEXT) AS text
FROM inbox JOIN task ON task.id = inbox.task ORDER BY task.id, n;

CREATE VIEW timers AS SELECT
    task.task AS task, name, datetime(at, 'unixepoch') AS due_utc, text
FROM timer JOIN task ON task.id = timer.task ORDER BY at;
"""

STEPS: Sequence[str] = (TABLES,)
"""Step n, from 0, makes format n + 1 of format n. A step that was released never changes."""

VERSION = len(STEPS)
"""What `PRAGMA user_version` says: the newest format that this version reads and writes."""


LAST_SEQ = 2**32 - 1
"""The largest seq there can be."""


def place(task: int, seq: int) -> int:
    """The key of a record. A seq that no record can have comes as the one nearest to it."""
    return task << 32 | min(max(seq, 0), LAST_SEQ)


def upgrade(connection: sqlite3.Connection, steps: Sequence[str] = STEPS) -> None:
    """Bring the database up to the newest format, in one transaction: after a crash it has the old one."""
    if connection.execute("PRAGMA user_version").fetchone() == (len(steps),):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for step in steps[version:]:
            for statement in statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        # An error may have ended the transaction already.
        connection.rollback()
        raise


def statements(script: str) -> list[str]:
    """The statements of a script, each with its semicolon. (`executescript` would commit first.)"""
    found, rest = [], ""
    for part in script.split(";"):
        rest += part + ";"
        if sqlite3.complete_statement(rest):
            found += [rest.strip()] * (rest.strip() != ";")
            rest = ""
    return found
