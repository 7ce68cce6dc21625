"""What a request lists as tools, in what order, and what becomes of flags, entries and the agent's texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from noeta.core.extension import Extension
from noeta.core.messages import Image, Message, Text, ToolReference, ToolResult, user
from noeta.core.parts import ToolChanges, ToolEntry
from noeta.core.ports import ModelRequest, ToolSpec
from noeta.core.tool import ToolContext, ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply

pytestmark = pytest.mark.anyio


class Tool:
    clearable = read_only = False
    input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"n": {"type": "integer"}}}

    def __init__(self, name: str, run: Callable[..., ToolOutput] | None = None, **flags: Any) -> None:
        self.name, self.description, self._run = name, f"The tool {name}.", run
        self.flags = ToolFlags(**flags)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return self._run(input) if self._run else text_output(f"{self.name} {input}")


class Tools(Extension):
    name = "tools"

    def __init__(self, *tools: Tool, entries: Sequence[ToolEntry] = ()) -> None:
        self._tools, self._entries = tools, entries

    def tools(self, view: TaskView) -> Any:
        return self._tools

    def tool_changes(self, view: TaskView, offered: Any) -> ToolChanges:
        return ToolChanges(entries=self._entries)


def listed(request: ModelRequest) -> list[str]:
    return [spec.name or spec.extra["type"] for spec in request.tools]


async def test_tools_stand_in_the_plugins_order_with_those_listed_last_behind_all_others() -> None:
    switch, search = (
        ToolEntry(ToolSpec(extra={"type": kind}), before=at) for kind, at in [("s", ""), ("b", "c")]
    )
    tools = Tools(Tool("late", listed_last=True), Tool("a"), Tool("c"), entries=[switch, search])
    bench = Harness([tools], ["Hello."])
    await bench.start("hi")
    await bench.run()
    assert listed(bench.provider.requests[0]) == ["a", "b", "c", "s", "late"]


async def test_a_deferred_tool_is_sent_as_such_and_a_result_makes_it_known() -> None:
    found = ToolOutput(content=[ToolReference(name="hidden")])
    tools = Tools(
        Tool("search", lambda input: found),
        Tool("hidden", deferred=True, loaded_description="What it does when it is loaded."),
    )
    bench = Harness([tools], [reply("", call("search")), reply("", call("hidden", n=1)), "Done."])
    await bench.start("go")
    await bench.run()
    specs = {spec.name: spec for spec in bench.provider.requests[0].tools}
    assert (specs["search"].deferred, specs["hidden"].deferred) == (False, True)
    assert specs["hidden"].description == "What it does when it is loaded."
    # Nothing before the reference changes for it: the cached prefix stays.
    assert list(bench.provider.requests[1].tools) == list(bench.provider.requests[0].tools)
    blocks = [block for message in bench.provider.requests[2].messages for block in message.content]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    assert results[0].content == [ToolReference(name="hidden")]
    assert results[1].content == [Text(text="hidden {'n': 1}")]


async def test_a_text_may_be_sent_as_a_list_and_an_image_stands_behind_it() -> None:
    pixel = Image(media_type="image/png", data=b"\x89PNG")
    listed_text = ToolOutput(content=[Text(text="one")], block_list=True)
    both = ToolOutput(content=[Text(text="look"), pixel])
    tools = Tools(Tool("a", lambda input: listed_text), Tool("b", lambda input: both))
    bench = Harness([tools], [reply("", call("a"), call("b")), "Done."])
    await bench.start("go")
    await bench.run()
    blocks = [block for message in bench.provider.requests[1].messages for block in message.content]
    first, second = (block for block in blocks if isinstance(block, ToolResult))
    assert (first.block_list, second.block_list) == (True, False)
    assert isinstance(second.content[1], Image)


async def test_a_tool_may_take_its_input_unchecked() -> None:
    tools = Tools(Tool("strict"), Tool("loose", unchecked_input=True))
    bench = Harness([tools], [reply("", call("strict", n="x"), call("loose", n="x")), "Done."])
    await bench.start("go")
    await bench.run()
    blocks = [block for message in bench.provider.requests[1].messages for block in message.content]
    strict, loose = (block for block in blocks if isinstance(block, ToolResult))
    assert strict.is_error
    assert loose.content == [Text(text="loose {'n': 'x'}")]


async def test_the_agents_texts_stand_in_for_a_tools_description() -> None:
    bench = Harness([Tools(Tool("a"), Tool("b"))], ["Hello."], prompts={"tool/a": "Do it well."})
    await bench.start("hi")
    await bench.run()
    assert [spec.description for spec in bench.provider.requests[0].tools] == ["Do it well.", "The tool b."]


async def test_what_a_plugin_says_before_the_person_is_a_request_that_a_model_takes() -> None:
    class Welcomes(Extension):
        name = "welcomes"

        async def on_start(self, view: TaskView) -> None:
            said = Message(role="system", content=[Text(text="Mind the language.")])
            view.record("welcomes", "said", message=said)

    bench = Harness([Welcomes()], ["Hello."])
    await bench.start("hi")
    await bench.run()
    # APIs want a person to speak first, so a word stands in for one.
    assert [message.role for message in bench.provider.requests[0].messages] == ["user", "system", "user"]


async def test_a_tool_that_would_have_every_request_refused_is_left_out_and_the_others_stay() -> None:
    odd, spaced, fine = Tool("odd"), Tool("two words"), Tool("fine")
    odd.input_schema = {"anyOf": [{"type": "object"}]}  # type: ignore[misc]
    bench = Harness([Tools(odd, spaced, fine)], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert listed(bench.provider.requests[0]) == ["fine"]
    said = [record.data.error for record in await bench.log(task, "plugin_failed")]
    assert len(said) == 2
    assert "the tool 'odd' is left out, since its input is of type None" in said[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda request: replace(request, system="\ud800"),
        lambda request: replace(
            request, messages=[*request.messages, Message(role="user", content=[Text(text="\ud800")])]
        ),
        lambda request: replace(request, extra={"x": object()}),
        lambda request: replace(request, tools=[ToolSpec(name="a", input_schema={"x": object()})]),
        lambda request: replace(request, messages=[5]),
        lambda request: replace(request, temperature=float("nan")),
        lambda request: replace(request, temperature=float("-inf")),
        lambda request: replace(request, extra={"x": [{"top_p": float("inf")}]}),
        lambda request: replace(request, output_schema={"default": float("nan")}),
        lambda request: replace(request, tools=[ToolSpec(name="a", input_schema={"x": float("nan")})]),
    ],
    ids="system messages parameters tools junk nan inf deep-inf nan-in-schema nan-in-tool".split(),
)
async def test_a_request_that_no_log_can_hold_fails_its_turn_and_the_next_one_works(change: Any) -> None:
    class Spoils(Extension):
        name = "spoils"
        spoilt = False

        async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
            if self.spoilt:
                return request
            self.spoilt = True
            return change(request)  # type: ignore[no-any-return]

    bench = Harness([Spoils()], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    [failed] = await bench.log(task, "turn_failed")
    assert failed.data.reason == "plugin_error"
    assert "'spoils'" in failed.data.detail
    assert bench.provider.requests == []
    await bench.post(task, "more")
    await bench.run()
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Hello."]


async def test_a_parameter_that_reads_back_alike_is_taken() -> None:
    class Sets(Extension):
        name = "sets"

        async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
            return replace(request, temperature=1, cache_at=(0,), extra={"stop": ("a", "b")})

    bench = Harness([Sets()], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    [composed] = await bench.log(task, "context_composed")
    assert composed.data.parameters == {
        "model": "model",
        "temperature": 1,
        "cache_at": [0],
        "extra": {"stop": ["a", "b"]},
    }


async def test_a_plugin_cannot_ask_a_model_with_what_no_step_could_send() -> None:
    class Asks(Extension):
        name = "asks"

        async def on_start(self, view: TaskView) -> None:
            assert view.complete
            await view.complete(ModelRequest(model="model", messages=[user("hi")], temperature=float("nan")))

    bench = Harness([Asks()], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    [failed] = await bench.log(task, "plugin_failed")
    assert "request.temperature cannot be stored: it reads back as something else" in failed.data.error
    assert len(bench.provider.requests) == 1


async def test_what_a_hook_of_reminders_records_itself_is_in_the_request_that_it_is_asked_for() -> None:
    class Recalls(Extension):
        name = "recalls"

        async def reminders(self, view: TaskView) -> Any:
            view.record("recalls", "recalled", message=user("You said so before."))
            return []

    bench = Harness([Recalls()], ["Hello."])
    await bench.start("hi")
    await bench.run()
    assert [message.text for message in bench.provider.requests[0].messages] == ["hi", "You said so before."]
