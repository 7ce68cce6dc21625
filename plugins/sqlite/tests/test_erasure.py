"""What was erased is found nowhere on disk."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from noeta.toolkit.store import Append, Blob, Claim, Line, Post, SnapshotPart
from noeta_sqlite import SqliteReader, SqliteStore, checkpoints

pytestmark = pytest.mark.anyio

CANARY = b"canary"
Erasable = dict[str, tuple[Claim, list[int]]]


def found(folder: Path) -> dict[str, int]:
    """In which files the canary is, and how often."""
    counts = {file.name: file.read_bytes().count(CANARY) for file in folder.iterdir()}
    return {name: count for name, count in counts.items() if count}


async def filled(store: SqliteStore, new_task: Any) -> Erasable:
    """Tasks whose records lie mixed on the pages, some with a canary in line, snapshot, blob and mail."""
    dice = random.Random(7)
    erasable: Erasable = {}
    for number in range(8):
        name = f"task {number}"
        await store.create(new_task(name, posts=[Post(task=name, key="k", kind="message", body=CANARY * 9)]))
        (claim,) = await store.claim("worker", task=name)
        erasable[name] = claim, []
    last = dict.fromkeys(erasable, 1)
    for _ in range(600):
        name = dice.choice(list(erasable))
        claim, seqs = erasable[name]
        last[name] = seq = last[name] + 1
        secret = dice.random() < 0.2
        text = (CANARY if secret else b"plain") + b" " * dice.choice([20, 200, 700, 1500, 5000])
        if secret:
            seqs.append(seq)
        append = Append(
            expected_seq=seq - 1,
            id=dice.randbytes(16),
            lines=[Line(seq, text, "probe.noted")],
            consume=[1] if seq == 2 else [],
            blobs=[Blob(name, CANARY * 2000)],
            snapshot=[SnapshotPart(name="part", fingerprint="f", seq=seq, data=text * 3)],
        )
        await store.append(claim, append)
    return erasable


async def erase(store: SqliteStore, erasable: Erasable) -> None:
    for name, (claim, seqs) in erasable.items():
        await store.purge(claim, [Line(seq, b"{}", "probe.noted") for seq in seqs], [name])


async def test_no_byte_is_left_in_file_log_and_backup(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        erasable = await filled(store, new_task)
        assert found(path.parent)
        await erase(store, erasable)
        assert found(path.parent) == {}
        assert not (await store.stats()).leftovers
        await store.backup(path.parent / "backup.db")
        assert (await store.read("task 1"))[0].data
    assert found(path.parent) == {}


async def test_a_reader_delays_it_until_its_end(
    path: Path, opened: Any, new_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "PATIENCE", 1)
    monkeypatch.setattr(checkpoints, "RETRY", 0.0)
    async with opened(path) as store:
        erasable = await filled(store, new_task)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM record").fetchone()
            await erase(store, erasable)
            assert found(path.parent)
            assert (await store.stats()).leftovers
            SqliteReader(path).backup(path.parent / "backup.db")
            assert "backup.db" not in found(path.parent)
        await store.renew("worker")
        assert found(path.parent) == {}
        assert not (await store.stats()).leftovers


async def test_a_large_file_is_rewritten_when_somebody_asks(
    path: Path, opened: Any, new_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "REWRITTEN", 0)
    async with opened(path) as store:
        await erase(store, await filled(store, new_task))
        assert (await store.stats()).leftovers
        await store.backup(path.parent / "backup.db")
        assert "backup.db" not in found(path.parent)
        await store.compact()
        assert found(path.parent) == {}
        stats = await store.stats()
        assert (stats.leftovers, stats.free) == (False, 0)
        await store.create(new_task("later"))


async def test_what_a_dead_process_left_the_next_one_takes_out(
    path: Path, opened: Any, new_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path) as store:
        erasable = await filled(store, new_task)
        # As if it died between the commit and the rewriting.
        monkeypatch.setattr(checkpoints.Checkpoints, "_scrub", lambda _: None)
        await erase(store, erasable)
    monkeypatch.undo()
    async with opened(path) as store:
        assert (await store.stats()).leftovers
        await store.create(new_task("next"))
        assert not (await store.stats()).leftovers
        assert found(path.parent) == {}
