"""Tasks at work over a file: worlds that a seed decides, and a death before and after each effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest

from noeta import (
    Ask,
    Extension,
    Gate,
    Park,
    TaskView,
    ToolContext,
    ToolFlags,
    ToolOutput,
    ToolUse,
    text_output,
)
from noeta.testing import Outside, call, check_crashes, reply
from noeta.testing.simulation import simulate
from noeta_sqlite import SqliteStore


@pytest.fixture
def make_store(tmp_path: Path) -> Callable[[Any, Any], SqliteStore]:
    numbers = count()

    def make(clock: Any, ids: Any) -> SqliteStore:
        return SqliteStore(tmp_path / f"{next(numbers)}.db", clock=clock, ids=ids, synchronous="NORMAL")

    return make


def test_worlds_in_which_anybody_dies_keep_every_promise_in_a_file(make_store: Any) -> None:
    for seed in range(5_000, 5_030):
        simulate(seed, make_store)


class Sends:
    """Sends something outside, once for each key."""

    name, description, read_only, clearable = "send", "Send it.", False, False
    input_schema: ClassVar[Any] = {"type": "object"}
    flags = ToolFlags(retry_safe=True)

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        self._outside.act(ctx.idempotency_key, input)
        return text_output("sent")


class Delegates(Sends):
    """Waits for a child."""

    name = "delegate"

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return ToolOutput(park=Park(on="children", keys=[ctx.spawn("agent", "part")]))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output(" ".join(end.text for end in (outcome or {}).values()))


class Office(Extension):
    name = "office"

    def __init__(self, outside: Outside) -> None:
        self._tools = [Sends(outside), Delegates(outside)]

    def tools(self, view: TaskView) -> Sequence[Any]:
        return self._tools

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        return Ask("Send it?") if call.name == "send" and not view.state.parent else None


async def approve(bench: Any, task: str) -> None:
    await bench.run()
    for waiting in (await bench.state(task)).open_calls:
        await bench.answer(task, waiting.id, waiting.park, by="ann", verdict="allow")
    await bench.run()


@pytest.mark.anyio
async def test_a_death_before_or_after_each_effect_changes_nothing_in_a_file(make_store: Any) -> None:
    script = {
        "go": [reply("", call("delegate"), call("send", n=1)), "Done."],
        "part": [reply("", call("send", n=2)), "Part done."],
    }
    effects = await check_crashes(
        lambda outside: [Office(outside)], script, "go", drive=approve, make_store=make_store
    )
    assert effects > 30
