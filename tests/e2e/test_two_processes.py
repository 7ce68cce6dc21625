"""Two processes over one SQLite file, killed at random: approval, child and timer all come to their end."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from noeta import Agent, Host
from noeta.toolkit.errors import Duplicate, NotWaiting
from noeta_sqlite import SqliteReader, SqliteStore

PROGRAM = Path(__file__).with_name("office.py")
SECONDS = 90


@pytest.fixture
def anyio_backend() -> str:
    # The processes have loops of their own, so a second one here shows nothing more.
    return "asyncio"


@contextmanager
def worker(database: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "errors").open("ab") as errors:
        process = subprocess.Popen([sys.executable, str(PROGRAM), str(database), str(folder)], stderr=errors)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(2))
async def test_a_task_with_an_approval_a_child_and_a_timer_ends_well_whoever_is_killed(
    seed: int, tmp_path: Path
) -> None:
    chance, database, folder = random.Random(seed), tmp_path / "noeta.db", tmp_path
    agents = [Agent("boss", model="m:m"), Agent("clerk", model="m:m")]
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(database, folder)) for _ in range(2)]
        async with (
            aclosing(SqliteStore(database)) as store,
            Host(agents, store=store, works=False) as host,
        ):
            task = await host.start("boss", "Furnish the office.")
            until, kill_at, kills = time.monotonic() + SECONDS, 4, 0
            while True:
                assert time.monotonic() < until, lines(folder / "errors")
                state = await host.state(task)
                for open_call in state.open_calls:
                    if open_call.status == "parked" and open_call.on == "approval":
                        # Until a worker comes to it, the answer is there and the call still waits.
                        with suppress(Duplicate, NotWaiting):
                            await host.answer(task, open_call.id, "allow", by="ann", park=open_call.park)
                rows = await host.tasks()
                written = sum(row.last_seq for row in rows)
                if written >= kill_at:
                    # Somebody who works dies, and comes back.
                    kill_at, kills = written + chance.randint(2, 6), kills + 1
                    n = chance.randrange(2)
                    workers[n].kill()
                    workers[n].wait()
                    workers[n] = stack.enter_context(worker(database, folder))
                texts = [record.data.text for record in await host.log(task) if record.kind == "turn_done"]
                if len(texts) == 2 and rows[0].status == "waiting":
                    break
                await anyio.sleep(0.02)
            log = await host.log(task)
            child = next(row for row in await host.tasks() if row.parent == task)
            child_log = await host.log(child.task)
    assert kills >= 4
    assert texts == ["I wait.", "All is ordered."]
    assert (child.status, child.reason) == ("ended", "done")
    orders = [line.split() for line in lines(folder / "orders")]
    assert sorted(item for _, item in orders) == ["desk", "lamp", "paper"]
    assert len({key for key, _ in orders}) == 3
    # Each call has one result, its start is never later, and its key is the one it acted under.
    for records in (log, child_log):
        made = [ref.id for record in records if record.kind == "model_replied" for ref in record.data.calls]
        finished = [record.data.call for record in records if record.kind == "tool_finished"]
        assert sorted(made) == sorted(finished)
        results = [record for record in records if record.kind == "tool_finished"]
        assert [record.message for record in results if record.data.is_error] == []
    assert len([record for record in log if record.kind == "child_spawned"]) == 1
    assert len([record for record in log if record.kind == "child_ended"]) == 1
    fired = [record for record in log if record.kind == "received" and record.data.item == "timer"]
    assert len(fired) == 1
    # What the plugin counts is what its records say, whoever folds them.
    assert len([record for record in log if record.extension == "office"]) == 2


def restart_until(folder: Path, database: Path, reason: str, most: int) -> int:
    """Start the program again and again until the task waits for that reason; how often it died."""
    for deaths in range(most + 1):
        with worker(database, folder) as process:
            for _ in range(500):
                [row] = SqliteReader(database).tasks()
                if row.status == "waiting" and row.reason == reason:
                    return deaths
                if process.poll() is not None:
                    break
                time.sleep(0.02)
    raise AssertionError(f"the task is {row.status} ({row.reason}): {lines(folder / 'errors')}")


async def begin(database: Path, agent: str, prompt: str) -> str:
    async with (
        aclosing(SqliteStore(database)) as store,
        Host([Agent(agent, model="m:m")], store=store, works=False) as h,
    ):
        return await h.start(agent, prompt)


def test_a_task_whose_model_client_takes_the_process_down_is_laid_aside(tmp_path: Path) -> None:
    database = tmp_path / "noeta.db"
    (tmp_path / "deadly").write_text("model")
    anyio.run(begin, database, "boss", "Furnish the office.")
    assert restart_until(tmp_path, database, "quarantined", 8) in (5, 6)


def test_a_tool_that_takes_the_process_down_is_started_a_few_times_and_then_unknown(tmp_path: Path) -> None:
    database = tmp_path / "noeta.db"
    (tmp_path / "deadly").write_text("tool")
    task = anyio.run(begin, database, "clerk", "Order the paper.")
    # The first start of a tool that may run again is not written down, and then three are.
    assert restart_until(tmp_path, database, "idle", 6) == 4
    assert len(lines(tmp_path / "starts")) == 4
    said = [line.data for line in SqliteReader(database).read(task, only=["core.tool_finished"])]
    assert b"the outcome of the call is unknown" in said[0]
