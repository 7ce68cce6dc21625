"""Leases end with the machine's start, and watching takes nothing from those who write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from noeta.toolkit.store import Post
from noeta_sqlite.opening import in_turn

pytestmark = pytest.mark.anyio


def mail(task: str) -> list[Post]:
    return [Post(task=task, key="k", kind="message", body=b"{}")]


def workers(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [worker for (worker,) in connection.execute("SELECT worker FROM worker ORDER BY worker")]


async def test_after_a_start_of_the_machine_all_leases_are_over_and_forgotten_once_taken(
    path: Path, opened: Any, new_task: Any
) -> None:
    async with opened(path) as store:
        for name in ("one", "two"):
            await store.create(new_task(name, posts=mail(name)))
        assert len(await store.claim("before", limit=2, lease=1e9)) == 2
        await store.create(new_task("three", posts=mail("three")))
        assert len(await store.claim("gone", lease=-1.0)) == 1
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE worker SET boot = 'earlier' WHERE worker = 'before'")
    async with opened(path) as store:
        claims = [(await store.claim("after"))[0] for _ in range(3)]
        # Who was lost before the start has been lost for longer.
        assert [claim.task for claim in claims] == ["one", "two", "three"]
        assert all(claim.unreleased for claim in claims)
        # Whoever ran out since the start may come back, and has to be told.
        assert workers(path) == ["after", "gone"]
        assert not await store.renew("gone")


async def test_who_watches_needs_no_lock(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store, opened(path) as other:
        await store.create(new_task("task"))
        async with store.watch("task") as watch:
            await other.post(mail("task")[0])
            with anyio.fail_after(30), in_turn(path):
                while not await watch.wait(0.2):
                    pass
