"""What a step costs in this file: commits, statements and looks at it, counted through a host."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest

from noeta import Agent, Extension, Host, TaskView, ToolContext, ToolOutput
from noeta.testing import FrozenClock, ScriptedProvider, call, reply
from noeta.toolkit.results import output_of
from noeta_sqlite import SqliteStore

pytestmark = pytest.mark.anyio


class Echo:
    name = "echo"
    description = "Gives back a text."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    clearable = False

    def __init__(self, read_only: bool) -> None:
        self.read_only = read_only

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return output_of("text")


class Tools(Extension):
    name = "tools"

    def __init__(self, read_only: bool) -> None:
        self._tools = [Echo(read_only)]

    def tools(self, view: TaskView) -> Any:
        return self._tools


async def turn(path: Path, opened: Any, steps: int, *, read_only: bool) -> list[Counter[str]]:
    """What was counted at each call of the model: commits, statements that write, looks of the reader."""
    counts: Counter[str] = Counter()
    marks: list[Counter[str]] = []

    def respond(request: Any) -> Any:
        marks.append(counts + Counter(commits=store._writer.commits))
        return reply("again", call("echo")) if len(marks) <= steps else "done"

    def looking(work: Any) -> Any:
        counts["looks"] += 1
        return look(work)

    def traced(sql: str) -> None:
        # The look for what others wrote comes when it comes.
        counts["statements"] += not sql.startswith("PRAGMA data_version")

    provider = ScriptedProvider(respond=respond)
    agent = Agent("agent", model="model", plugins=[Tools(read_only)])
    async with opened(path) as store:
        store._writer._db.connection.set_trace_callback(traced)
        look, store._reader.do = store._reader.do, looking
        # Time stands still, so that nothing is done only since a second has passed.
        async with Host([agent], providers={"": provider}, store=store, clock=FrozenClock()) as host:
            assert (await host.run("agent", "go")).text == "done"
    return marks


# Each append begins, reads the task's row, writes its records, changes the row and commits.
@pytest.mark.parametrize(
    ("read_only", "commits", "statements"), [(False, 2, 2 * 4 + 3), (True, 1, 4 + 2)], ids=["acts", "reads"]
)
async def test_a_step_commits_twice_or_once_and_asks_for_nothing_else(
    read_only: bool, commits: int, statements: int, path: Path, opened: Any
) -> None:
    marks = await turn(path, opened, 15, read_only=read_only)
    each = {name: (marks[15][name] - marks[5][name]) / 10 for name in ("commits", "statements", "looks")}
    assert each == {"commits": commits, "statements": statements, "looks": 0}


async def test_who_watches_asks_nothing_of_the_file_while_nothing_is_written(
    path: Path, opened: Any, new_task: Any
) -> None:
    store: SqliteStore
    async with opened(path, clock=FrozenClock()) as store:
        await store.create(new_task("task"))
        asked: list[str] = []
        store._writer._db.connection.set_trace_callback(asked.append)
        async with store.watch("task") as one, store.watch() as other:
            await one.wait(0)
            await other.wait(0)
            await store.task("task")
        # One thread looks for what others wrote, for all who watch, and by no more than this.
        assert set(asked) <= {"PRAGMA data_version"}
