"""What a hook gives and no log can hold is a failure of its plugin, and the task goes on without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from noeta.core.extension import Extension
from noeta.core.gates import Ask, Rewrite
from noeta.core.messages import Message, Text, ToolUse
from noeta.core.parts import Reminder
from noeta.core.ports import ModelRequest
from noeta.core.tool import ToolContext, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply

pytestmark = pytest.mark.anyio


def nested(deep: int) -> list[Any]:
    return [nested(deep - 1)] if deep else []


class Act:
    name, description, read_only, clearable = "act", "A tool.", True, False

    def __init__(self, **other: Any) -> None:
        self.input_schema: Any = {"type": "object"}
        vars(self).update(other)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return text_output("done")


class Odd(Extension):
    name = "odd"

    def __init__(self, *tools: Any) -> None:
        self._tools = [Act(), *tools]

    def tools(self, view: TaskView) -> Any:
        return self._tools


TOOLS: dict[str, dict[str, Any]] = {
    "a schema of objects": {"input_schema": {"type": "object", "default": object()}},
    "a schema that is no number": {"input_schema": {"type": "object", "default": float("nan")}},
    "a schema without end": {"input_schema": {"type": "object", "default": nested(80)}},
    "a name that no model can say": {"name": "a b"},
}


@pytest.mark.parametrize("other", TOOLS.values(), ids=TOOLS)
async def test_a_tool_that_cannot_be_listed_is_left_out_alone(other: dict[str, Any]) -> None:
    bench = Harness([Odd(Act(**{"name": "bad", **other}))], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert [spec.name for spec in bench.provider.requests[0].tools] == ["act"]
    [failed] = await bench.log(task, "plugin_failed")
    assert (failed.data.plugin, failed.data.hook, failed.data.policy) == ("odd", "tools", "open")
    assert "is left out" in failed.data.error


@pytest.mark.parametrize("kind", ["", "a.b", 5])
async def test_a_reminder_of_a_kind_that_no_record_has_is_left_out(kind: Any) -> None:
    class Reminds(Odd):
        async def reminders(self, view: TaskView) -> list[Reminder]:
            return [Reminder("Mind.", kind=kind)]

    bench = Harness([Reminds()], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    [failed] = await bench.log(task, "plugin_failed")
    assert failed.data.hook == "reminders"
    assert (await bench.row(task)).reason == "idle"


BAD = Message(role="user", content=[Text(text="\ud800")])
REQUESTS: dict[str, Callable[[ModelRequest], ModelRequest]] = {
    "extras of objects": lambda given: replace(given, extra={"x": object()}),
    "no tools": lambda given: replace(given, tools=None),  # type: ignore[arg-type]
    "tools of numbers": lambda given: replace(given, tools=[1]),  # type: ignore[list-item]
    "messages of numbers": lambda given: replace(given, messages=[1]),  # type: ignore[list-item]
    "a message that is no text": lambda given: replace(given, messages=[*given.messages, BAD]),
    "a prompt that is no text": lambda given: replace(given, system="\ud800"),
}


@pytest.mark.parametrize("spoil", REQUESTS.values(), ids=REQUESTS)
async def test_a_request_that_cannot_be_recorded_fails_the_turn_and_names_the_plugin(
    spoil: Callable[[ModelRequest], ModelRequest],
) -> None:
    class Spoils(Odd):
        async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
            return spoil(request)

    bench = Harness([Spoils()])
    task = await bench.start("hi")
    await bench.run()
    [failed] = await bench.log(task, "turn_failed")
    assert failed.data.reason == "plugin_error"
    assert "'odd' failed in before_model: its request cannot be recorded" in failed.data.detail
    assert len(await bench.log(task, "plugin_failed")) == 1


OPINIONS: dict[str, Callable[[Any], Any]] = {
    "ask": lambda x: Ask("Sure?", detail={"x": x}),
    "rewrite": lambda x: Rewrite({"x": x}),
}


@pytest.mark.parametrize("deep", range(58, 73))
@pytest.mark.parametrize("make", OPINIONS.values(), ids=OPINIONS)
async def test_an_opinion_is_as_deep_as_it_can_be_recorded_or_refuses_the_call(
    make: Callable[[Any], Any], deep: int
) -> None:
    class Judges(Odd):
        async def before_tool(self, view: TaskView, call: ToolUse) -> Any:
            return make(nested(deep))

    bench = Harness([Judges()], [reply("", call("act")), "Done."])
    task = await bench.start("hi")
    await bench.run()
    assert (await bench.row(task)).reason in ("idle", "question")
