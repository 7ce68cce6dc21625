"""Looks at a database with nothing but sqlite3, and compares it with what the processes wrote down.

`structure` needs the tables alone. `audit` also knows what was asked of the store and what it answered. Both
give sentences, none when all is well. No code of the store is used.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

REFUSED = {"Fenced", "Conflict"}
COUNTERS = """
SELECT task.task, posts, unread, last_seq - through, status,
    (SELECT count(*) FROM inbox WHERE inbox.task = task.id),
    (SELECT max(n) FROM inbox WHERE inbox.task = task.id),
    (SELECT count(*) FROM inbox WHERE inbox.task = task.id AND body IS NOT NULL),
    (SELECT count(*) FROM record WHERE record.id BETWEEN first AND last),
    (SELECT min(seq) - through FROM record WHERE record.id BETWEEN first AND last),
    (SELECT max(seq) - through FROM record WHERE record.id BETWEEN first AND last)
FROM (SELECT *, id << 32 AS first, (id << 32) + 4294967295 AS last FROM task) AS task
"""
NOBODY = """
SELECT 'task ' || task || ' waits, and has unread mail' FROM task WHERE status = 'waiting' AND unread > 0
UNION ALL
SELECT 'task ' || task || ' is running, and nobody holds it' FROM task
WHERE status = 'running' AND token IS NULL
UNION ALL
SELECT 'task ' || task || ' is ' || status || ' with turn ' || coalesce(turn, 'none') FROM task
WHERE (turn IS NOT NULL) != (token IS NULL AND (status = 'ready' OR (status = 'ended' AND unread > 0)))
UNION ALL
SELECT 'task ' || task || ' is held by ' || worker || ', who has no lease' FROM task
WHERE token IS NOT NULL AND worker NOT IN (SELECT worker FROM worker)
UNION ALL
SELECT 'task ' || task || ' has a holder and no claim' FROM task WHERE token IS NULL AND worker != ''
UNION ALL
SELECT 'task ' || task || ' has a retry and is ' || status FROM task
WHERE retry_at IS NOT NULL AND status != 'waiting'
UNION ALL
SELECT 'ended task ' || task.task || ' has a timer' FROM task JOIN timer ON timer.task = task.id
WHERE status = 'ended'
UNION ALL
SELECT 'key ' || key || ' of ' || parent || ' has ' || count(*) || ' children' FROM task WHERE key != ''
GROUP BY parent, key HAVING count(*) > 1
UNION ALL
SELECT 'task ' || task || ' has key ' || key || ' ' || count(*) || ' times' FROM inbox GROUP BY task, key
HAVING count(*) > 1
UNION ALL
SELECT 'there is a row of ' || what || ' without its task' FROM (
    SELECT 'record' AS what, task FROM record UNION SELECT 'inbox', task FROM inbox
    UNION SELECT 'timer', task FROM timer UNION SELECT 'part', task FROM part
    UNION SELECT 'hold', task FROM hold
) WHERE task NOT IN (SELECT id FROM task)
UNION ALL
SELECT 'blob ' || sha256 || ' is held and not there' FROM hold WHERE sha256 NOT IN (SELECT sha256 FROM blob)
"""
LINES = """
SELECT task.task, fence, line FROM record JOIN task ON task.id = record.task ORDER BY record.id
"""


def structure(db: sqlite3.Connection) -> Iterator[str]:
    """What is wrong whatever was asked of the store."""
    for name, posts, unread, length, status, rows, last, left, records, first, end in db.execute(COUNTERS):
        if not posts == rows == (last or 0):
            yield f"task {name} counts {posts} posts, and has {rows} of which the last is number {last}"
        if unread != left:
            yield f"task {name} counts {unread} unread items, and has {left}"
        if not length == records == (end or 0) or (first or 1) != 1:
            yield f"task {name} has {records} records from {first} to {end}, and counts {length}"
        if status not in {"ready", "running", "waiting", "ended"}:
            yield f"task {name} is {status}"
    for (sentence,) in db.execute(NOBODY):
        yield str(sentence)
    fences: dict[str, int] = {}
    for name, fence, line in db.execute(LINES):
        written = json.loads(line).get("fence", 0)
        if not fences.get(name, 0) <= written <= fence:
            yield f"task {name} at fence {fence} has a record of fence {written} after {fences.get(name, 0)}"
        fences[name] = written


def audit(path: Path, entries: Iterable[dict[str, Any]], *, drained: bool = False) -> list[str]:
    """Everything that is wrong with the database at `path`, given what its processes wrote down."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        found = [
            f"integrity_check: {row[0]}" for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"
        ]
        return found or [*structure(db), *_Audit(db, list(entries)).run(drained)]
    except sqlite3.DatabaseError as error:
        return [f"integrity_check: {error}"]
    finally:
        db.close()


class _Task:
    """A task and all its rows."""

    def __init__(self, db: sqlite3.Connection, row: sqlite3.Row) -> None:
        self.row, self.name, id = row, str(row["task"]), row["id"]
        self.lines: dict[int, bytes] = dict(
            db.execute("SELECT seq, line FROM record WHERE id >> 32 = ?", (id,))
        )
        self.items = {
            key: (n, body)
            for n, key, body in db.execute("SELECT n, key, body FROM inbox WHERE task = ?", (id,))
        }
        self.timers = {
            name: (gen, at)
            for name, gen, at in db.execute("SELECT name, gen, at FROM timer WHERE task = ?", (id,))
        }
        self.parts = {
            name: (seq, bytes(data))
            for name, seq, data in db.execute("SELECT name, seq, data FROM part WHERE task = ?", (id,))
        }
        self.blobs = {name for (name,) in db.execute("SELECT sha256 FROM hold WHERE task = ?", (id,))}
        self.landed: list[dict[str, Any]] = []


class _Audit:
    def __init__(self, db: sqlite3.Connection, entries: list[dict[str, Any]]) -> None:
        db.row_factory = sqlite3.Row
        self.tasks = {row["task"]: _Task(db, row) for row in db.execute("SELECT * FROM task").fetchall()}
        db.row_factory = None
        self.children: dict[str, list[_Task]] = defaultdict(list)
        for task in self.tasks.values():
            self.children[task.row["parent"]].append(task)
        self.blobs = {name: bytes(data) for name, data in db.execute("SELECT sha256, data FROM blob")}
        self.of: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for entry in entries:
            self.of[entry["what"]].append(entry)
        # The bodies that a key of a task may stand for, and the lines that a seq of a task may have.
        self.bodies: dict[tuple[str, str], set[bytes]] = defaultdict(set)
        self.explained: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        self.accepted: Counter[tuple[str, str]] = Counter()
        self.told: list[str] = []

    def run(self, drained: bool) -> list[str]:
        self._claims()
        self._creations()
        self._appends()
        self._posts()
        for task in self.tasks.values():
            self._children(task)
            self._after_all(task)
            self._inbox(task)
            # Nobody has to claim an ended task to free it from a worker that died.
            held = task.row["token"] and task.row["status"] != "ended"
            if drained and (task.row["status"] in {"ready", "running"} or task.row["unread"] or held):
                self._say(
                    f"{task.name} is {task.row['status']} with {task.row['unread']} unread when all is done"
                )
        return self.told

    def _say(self, sentence: str) -> None:
        self.told.append(sentence)

    def _claims(self) -> None:
        seen: dict[tuple[str, int], str] = {}
        for entry in self.of["claim"]:
            for claim in (claim for answer in entry["answers"] for claim in answer.get("claims", ())):
                key = (claim["task"], claim["fence"])
                if key in seen:
                    self._say(
                        f"fence {key[1]} of {key[0]} was given twice, to {seen[key]} and {claim['worker']}"
                    )
                seen[key] = claim["worker"]
                task = self.tasks.get(key[0])
                if task is None or task.row["fence"] < key[1]:
                    self._say(f"{key[0]} was claimed with fence {key[1]}, and has a lower one or none")

    def _creations(self) -> None:
        for entry in self.of["create"]:
            new = entry["given"]
            task = self.tasks.get(new["task"])
            answer = _first(entry)
            if answer in {"ok", "Duplicate"} and task is None:
                self._say(f"task {new['task']} was created, and is not there")
            self._new(new)

    def _new(self, new: dict[str, Any]) -> None:
        """What a task to create, if it is there, may be seen by."""
        for seq, line, *_ in new["lines"]:
            self.explained[new["task"], seq].append(b64decode(line))
        for post in new.get("posts", ()):
            self.bodies[post["task"], post["key"]].add(b64decode(post["body"]))

    def _appends(self) -> None:
        by_id: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for entry in self.of["append"]:
            by_id[entry["append"]["id"]].append(entry)
        for entries in by_id.values():
            append, claim = entries[0]["append"], entries[0]["claim"]
            answers = [answer for entry in entries for answer in entry["answers"]]
            task = self.tasks.get(claim["task"])
            if task is None:
                continue
            where = f"append {append['id']} of {task.name} at {append['expected_seq']}"
            lines = [(seq, b64decode(line)) for seq, line, *_ in append["lines"]]
            there = [task.lines.get(seq) == line for seq, line in lines]
            landed = all(there)
            if any(there) and not landed:
                self._say(f"{where} is there in part")
            # Who was killed before the answer leaves it open whether the first try landed.
            told = [answer["answer"] for answer in answers]
            if "ok" in told and not landed:
                self._say(f"{where} was acknowledged, and is not there")
            if landed and told and told[0] in REFUSED and entries[0]["answers"]:
                self._say(f"{where} was refused ({told[0]}), and is there")
            if landed and "Conflict" in told:
                self._say(f"{where} is there, and was answered Conflict when it was repeated")
            for answer in answers:
                if answer["answer"] == "ok" and answer["done"]["last_seq"] != lines[-1][0]:
                    self._say(f"{where} was told that the log is at {answer['done']['last_seq']}")
            if landed:
                task.landed.append(append)
                for seq, line in lines:
                    self.explained[task.name, seq].append(line)
            self._reached(where, append, task, landed, _done(entries[0]["answers"]))

    def _reached(
        self, where: str, append: dict[str, Any], task: _Task, landed: bool, done: dict[str, Any] | None
    ) -> None:
        """Whether the posts and children of an append are there exactly if it is."""
        undelivered = {(post["task"], post["key"]) for post in done["undelivered"]} if done else None
        for post in append.get("posts", ()):
            target, key = self.tasks.get(post["task"]), post["key"]
            there = target is not None and key in target.items
            alone = not key.startswith("child:")
            if landed:
                self.bodies[post["task"], key].add(b64decode(post["body"]))
                lost = target is None or target.row["status"] == "ended"
                gone = lost if undelivered is None else (post["task"], key) in undelivered
                if not there and not gone:
                    self._say(f"{where} is there, and its post {key} to {post['task']} is not")
                if there and alone and undelivered is not None and gone:
                    self._say(f"the post {key} of {where} was called undelivered, and is there")
            elif there and alone:
                self._say(f"{where} is not there, and its post {key} to {post['task']} is")
        for new in append.get("spawn", ()):
            if landed:
                self._new(new)
                if not any(
                    t.row["parent"] == task.name and t.row["key"] == new["key"]
                    for t in self.children[task.name]
                ):
                    self._say(f"{where} is there, and its child {new['key']} is not")
        if landed:
            for sha, data in append.get("blobs", ()):
                if sha not in task.blobs or self.blobs.get(sha) != b64decode(data):
                    self._say(f"{where} is there, and its blob {sha} is not")

    def _children(self, task: _Task) -> None:
        """Each line has an origin, and a child comes from the first append that spawned its key."""
        for seq, line in task.lines.items():
            if self.explained[task.name, seq].count(line) < 1:
                self._say(f"nothing that was asked for explains record {seq} of {task.name}")
        task.landed.sort(key=lambda append: append["expected_seq"])
        first: dict[str, str] = {}
        for append in task.landed:
            for new in append.get("spawn", ()):
                first.setdefault(new["key"], b64decode(append["id"]).hex())
        for child in self.children[task.name]:
            if first.get(child.row["key"]) != json.loads(child.lines[1]).get("spawn"):
                self._say(
                    f"child {child.name} of {task.name} does not come from the first append with its key"
                )

    def _posts(self) -> None:
        for entry in self.of["post"]:
            post, answer = entry["given"], _first(entry)
            key = (post["task"], post["key"])
            target = self.tasks.get(post["task"])
            there = target is not None and post["key"] in target.items
            if answer in {"ok", "Duplicate"} and not there:
                self._say(f"post {key} was answered {answer}, and is not in the inbox")
            if answer in {"ok", None, "Unavailable"}:
                self.bodies[key].add(b64decode(post["body"]))
            self.accepted[key] += answer == "ok"
        for key, count in self.accepted.items():
            if count > 1:
                self._say(f"post {key} was accepted {count} times")

    def _inbox(self, task: _Task) -> None:
        consumed: dict[int, list[Any]] = defaultdict(list)
        last = 0
        for seq in sorted(task.lines):
            line = json.loads(task.lines[seq])
            for n, key, sha in line.get("consumes", ()):
                consumed[n].append((key, sha, line["at"]))
                if n != last + 1:
                    self._say(f"record {seq} of {task.name} consumes item {n} after {last}")
                last = n
        set_at = {
            (timer["name"], timer["gen"]): timer["at"]
            for append in task.landed
            for timer in append.get("set_timers", ())
        }
        for key, (n, body) in task.items.items():
            kept = {hashlib.sha256(each).hexdigest() for each in self.bodies[task.name, key]}
            records = consumed.pop(n, [])
            timer = key.removeprefix("timer:").rpartition(":") if key.startswith("timer:") else None
            if len(records) != (body is None):
                self._say(f"item {n} of {task.name} is in {len(records)} records; unread: {body is not None}")
            if timer is not None and (timer[0], int(timer[2])) not in set_at:
                self._say(f"{task.name} got {key}, and nothing set that timer")
            elif timer is not None and records and records[0][2] < set_at[timer[0], int(timer[2])]:
                self._say(f"{key} of {task.name} fired before its time")
            elif timer is None:
                for name, sha, _ in records:
                    if name != key or sha not in kept:
                        self._say(
                            f"item {n} of {task.name} was consumed as {name}, with a body nobody posted"
                        )
                if body is not None and bytes(body) not in self.bodies[task.name, key]:
                    self._say(f"nobody posted item {n} ({key}) of {task.name} as it is")
        for n in consumed:
            self._say(f"{task.name} consumed item {n}, which is not in its inbox")

    def _after_all(self, task: _Task) -> None:
        """What the appends that landed, one after the other, must have left."""
        timers: dict[str, tuple[int, float]] = {}
        parts: dict[str, tuple[int, bytes]] = {}
        ended = False
        for append in task.landed:
            timers.update(
                {timer["name"]: (timer["gen"], timer["at"]) for timer in append.get("set_timers", ())}
            )
            for name in append.get("clear_timers", ()):
                timers.pop(name, None)
            ended = ended or append["status"] == "ended"
            if ended:
                timers.clear()
            parts.update(
                {part["name"]: (part["seq"], b64decode(part["data"])) for part in append["snapshot"]}
            )
        if ended != (task.row["status"] == "ended"):
            self._say(f"task {task.name} is {task.row['status']}; an append that landed ended it: {ended}")
        if parts != task.parts:
            self._say(f"the snapshot of {task.name} is not what its appends left")
        if not task.timers.items() <= timers.items():
            self._say(f"task {task.name} has timers that nothing left there")
        for name, (gen, _) in timers.items():
            fired = f"timer:{name}:{gen}" in task.items
            if fired == (name in task.timers):
                self._say(
                    f"timer {name}:{gen} of {task.name} is there: {name in task.timers}, fired: {fired}"
                )


def _first(entry: dict[str, Any]) -> str | None:
    """The first answer, None when the process was killed before it came."""
    return entry["answers"][0]["answer"] if entry["answers"] else None


def _done(answers: list[dict[str, Any]]) -> dict[str, Any] | None:
    """What the store said of an append that it did then and there, given the answers to who asked first.

    None when nobody heard it: a repeat does not say it again.
    """
    return answers[0]["done"] if answers and answers[0]["answer"] == "ok" else None
