"""A plugin that may not be passed over holds its task up until it works again, whatever comes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from noeta.core.extension import Extension
from noeta.core.parts import ToolChanges
from noeta.core.ports import ModelRequest
from noeta.core.view import TaskView
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply
from noeta.toolkit.function_tool import function_tool

pytestmark = pytest.mark.anyio


@function_tool(read_only=True)
def look() -> str:
    """Look."""
    return "seen"


class Away(Extension):
    """Fails in one hook as long as it is away. Before that it has somebody post, if it is given a bench."""

    name = "away"

    def __init__(self, hook: str, bench: list[Harness] | None = None) -> None:
        self.on_error = {hook: "park"}  # type: ignore[misc]
        self.away = True
        self.asked: list[str] = []
        self._hook, self._bench = hook, bench

    async def _came(self, view: TaskView, hook: str) -> None:
        if hook == self._hook and self.away and self._bench:
            bench = self._bench.pop()
            await bench.post(view.task_id, "and more")
        self._fail(hook)

    def _fail(self, hook: str) -> None:
        self.asked.append(hook)
        if hook == self._hook and self.away:
            raise RuntimeError("it is away")

    async def on_start(self, view: TaskView) -> None:
        await self._came(view, "on_start")

    async def reminders(self, view: TaskView) -> Any:
        await self._came(view, "reminders")
        return []

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        await self._came(view, "before_model")
        return request

    async def before_tool(self, view: TaskView, call: Any) -> None:
        await self._came(view, "before_tool")

    async def after_tool(self, view: TaskView, call: Any, output: Any) -> Any:
        await self._came(view, "after_tool")
        return output

    async def on_event(self, view: TaskView, recorded: Any) -> None:
        await self._came(view, "on_event")

    def tools(self, view: TaskView) -> Any:
        self._fail("tools")
        return [look]

    def tool_changes(self, view: TaskView, offered: Any) -> ToolChanges | None:
        self._fail("tool_changes")
        return None

    def context(self, view: TaskView) -> Any:
        self._fail("context")
        return []


async def works_again(bench: Harness, plugin: Away, task: str) -> None:
    """Let the plugin be there again, and the time of the next try come."""
    plugin.away = False
    bench.clock.advance(60)
    await bench.store.fire_timers()
    await bench.run()
    assert (await bench.row(task)).reason == "idle"


async def test_a_message_does_not_begin_a_turn_before_the_plugins_were_told_of_the_claim() -> None:
    plugin = Away("on_start")
    bench = Harness([plugin], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    row = await bench.row(task)
    assert (row.status, row.reason, row.retry_at) == ("waiting", "plugin", bench.clock.now() + 60)
    assert row.unread == 0
    assert set(plugin.asked) == {"on_start"}
    await works_again(bench, plugin, task)
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Hello."]


HOOKS = ["on_start", "reminders", "before_model", "before_tool", "after_tool", "on_event"]


@pytest.mark.parametrize("hook", HOOKS)
async def test_what_comes_while_a_hook_fails_waits_with_the_task(hook: str) -> None:
    benches: list[Harness] = []
    plugin = Away(hook, benches)
    bench = Harness([plugin], [reply("", call("look")), "Done.", "Done.", "Done."])
    benches.append(bench)
    task = await bench.start("hi")
    await bench.run()
    row = await bench.row(task)
    assert (row.status, row.reason, row.unread) == ("waiting", "plugin", 0)
    assert plugin.asked.count(hook) == 1
    assert [record.data.item for record in await bench.log(task, "received")] == ["message"] * 2
    await works_again(bench, plugin, task)


@pytest.mark.parametrize("hook", ["on_start", "tools", "tool_changes", "context"])
async def test_a_cancel_ends_a_task_that_waits_for_a_plugin(hook: str) -> None:
    plugin = Away(hook)
    bench = Harness([plugin], [])
    task = await bench.start("hi")
    await bench.run()
    assert (await bench.row(task)).reason == "plugin"
    await bench.cancel(task)
    await bench.run()
    row = await bench.row(task)
    assert (row.status, row.reason) == ("ended", "cancelled")


@pytest.mark.parametrize("hook", ["on_start", "tools", "tool_changes"])
async def test_an_interrupt_ends_the_turn_of_a_task_that_waits_for_a_plugin(hook: str) -> None:
    plugin = Away(hook)
    bench = Harness([plugin], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    await bench.interrupt(task)
    await bench.run()
    assert (await bench.state(task)).turn is None
    assert "interrupted" in await bench.kinds(task)
    await bench.post(task, "again")
    await works_again(bench, plugin, task)


async def test_in_a_claim_that_is_kept_the_plugins_are_told_of_it_again() -> None:
    plugin = Away("on_start")
    bench = Harness([plugin], ["Hello."])
    task = await bench.start("hi")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim, kept=lambda: plugin.away)

    async def wake(seconds: float) -> bool:
        plugin.away = False
        return True

    runner.work.outside.wake = wake
    await runner.run()
    assert plugin.asked.count("on_start") == 2
    assert plugin.asked[:2] == ["on_start"] * 2
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Hello."]
