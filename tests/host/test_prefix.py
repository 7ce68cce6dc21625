"""A request that does not repeat the one before is noticed, and so is the plugin that broke the prefix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
import pytest
from msgspec.structs import replace

from noeta.core.errors import ProviderError, RequestStale
from noeta.core.extension import Extension
from noeta.core.messages import user
from noeta.core.parts import ContextPart, Reminder
from noeta.core.ports import ModelRequest
from noeta.core.records import Compacted
from noeta.core.tool import ToolContext, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.host.prefix import Change, PrefixBreak, prefix_breaks
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import ScriptedProvider, call, reply

pytestmark = pytest.mark.anyio


class Tool:
    description = "A tool."
    clearable = False
    read_only = True
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return text_output("seen")


class Left(Extension):
    name = "left"

    def __init__(self, *offered: str) -> None:
        self.offered: Sequence[str] = offered
        self.parts: list[str] = []
        self.edit: Callable[[ModelRequest], ModelRequest] = lambda request: request
        self.once: list[Callable[[TaskView], None]] = []

    def tools(self, view: TaskView) -> list[Tool]:
        return [Tool(name) for name in self.offered]

    def context(self, view: TaskView) -> list[ContextPart]:
        return [ContextPart(text) for text in self.parts]

    async def reminders(self, view: TaskView) -> list[Reminder]:
        return [Reminder(f"It is {view.state.seq}.")]

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        if self.once:
            self.once.pop()(view)
            raise RequestStale
        return self.edit(request)


class Right(Left):
    name = "right"


class Bench(Harness):
    """A task that says one thing after the other, with two plugins."""

    def __init__(self) -> None:
        self.left, self.right = Left("look"), Right("other")
        super().__init__([self.left, self.right], provider=ScriptedProvider(respond=lambda request: "done"))

    async def say(self, *texts: str) -> None:
        for text in texts:
            if not hasattr(self, "task"):
                self.task = await self.start(text)
            else:
                await self.post(self.task, text)
            await self.run()

    async def only(self) -> PrefixBreak:
        [found] = await prefix_breaks(self.store, self.task)
        return found


async def test_requests_that_only_add_break_nothing() -> None:
    bench = Bench()
    bench.provider._script = [reply("", call("look"), call("other")), "Done."]
    await bench.say("a", "b", "c")
    assert len(bench.provider.requests) == 4
    assert await prefix_breaks(bench.store, bench.task) == []


async def test_a_changed_tool_list_names_the_tools_and_their_plugins() -> None:
    bench = Bench()
    await bench.say("a")
    bench.right.offered = ("another",)
    await bench.say("b")
    found = await bench.only()
    assert found.changes == [Change(part="tools", at=1, by=["right"], names=["another", "other"])]
    first, second = await bench.log(bench.task, "model_replied")
    assert (found.before, found.seq, found.exact) == (first.seq, second.seq, True)
    # The messages themselves were only added to.
    assert (found.shared, found.messages) == (3, 3)
    assert found.sentences == [
        f"The request of record {second.seq} repeats 3 of 3 messages of that of record {first.seq}.",
        "The tools differ from place 1 on: another, other, by plugin 'right'.",
    ]


async def test_tools_in_another_order_are_a_break() -> None:
    bench = Bench()
    bench.left.offered = ("a", "b", "c")
    await bench.say("a")
    bench.left.offered = ("a", "c", "b")
    await bench.say("b")
    [change] = (await bench.only()).changes
    assert (change.at, change.by) == (1, ["left", "right"])
    assert set(change.names) == {"b", "c", "other"}


async def test_a_changed_prompt_names_its_plugin() -> None:
    bench = Bench()
    bench.left.parts, bench.right.parts = ["stays"], ["noon"]
    await bench.say("a")
    bench.right.parts = ["one o'clock"]
    await bench.say("b")
    found = await bench.only()
    assert found.changes == [Change(part="system", at=2, by=["right"])]
    assert found.sentences[1] == "The system prompt differs from piece 2 on, by plugin 'right'."


async def test_the_same_prompt_in_other_pieces_breaks_nothing() -> None:
    bench = Bench()
    bench.left.parts, bench.right.parts = ["a\nb"], []
    await bench.say("a")
    bench.left.parts, bench.right.parts = ["a"], ["b"]
    await bench.say("b")
    assert await prefix_breaks(bench.store, bench.task) == []


async def test_another_model_is_a_break() -> None:
    bench = Bench()
    await bench.say("a")
    bench.right.edit = lambda request: replace(request, model="small")
    await bench.say("b")
    found = await bench.only()
    assert found.changes == [Change(part="model", names=["model", "small"])]
    assert found.sentences[1] == "The model is another one: model, small."


async def test_an_edit_is_the_plugins_that_made_it_and_so_is_its_end() -> None:
    bench = Bench()
    await bench.say("a", "b")
    bench.right.edit = lambda request: replace(request, messages=[user("old"), *request.messages[1:]])
    await bench.say("c", "d")
    bench.right.edit = lambda request: request
    await bench.say("e")
    begun, ended = await prefix_breaks(bench.store, bench.task)
    edited = Change(part="messages", at=0, by=["right"], cause="edited")
    assert (begun.changes, begun.shared) == ([edited], 0)
    assert (ended.changes, ended.shared) == ([edited], 0)
    assert begun.sentences[1] == "Message 0 was edited before sending, by plugin 'right'."


async def test_a_message_left_out_is_the_plugins_that_left_it_out() -> None:
    bench = Bench()
    await bench.say("a", "b")
    bench.left.edit = lambda request: replace(
        request, messages=[*request.messages[:1], *request.messages[3:]]
    )
    await bench.say("c")
    found = await bench.only()
    assert found.changes == [Change(part="messages", at=1, by=["left"], cause="edited")]


async def test_a_message_put_behind_the_last_one_moves_with_each_request() -> None:
    bench = Bench()
    bench.left.edit = lambda request: replace(request, messages=[*request.messages, user("be brief")])
    await bench.say("a", "b")
    found = await bench.only()
    assert found.changes == [Change(part="messages", at=3, by=["left"], cause="edited")]
    assert (found.shared, found.messages) == (3, 4)


async def test_a_compaction_names_its_plugin() -> None:
    bench = Bench()
    await bench.say("a", "b")
    bench.right.once = [
        lambda view: view.compacted(Compacted(through=view.state.seq, summary=[user("so far")]))
    ]
    await bench.say("c")
    found = await bench.only()
    assert found.changes == [Change(part="messages", at=0, by=["right"], cause="compacted")]
    assert found.sentences[1] == "The conversation was compacted, from message 0 on, by plugin 'right'."


async def test_a_compaction_that_keeps_the_beginning_breaks_behind_it() -> None:
    bench = Bench()
    await bench.say("a", "b")
    [first, *_] = [item.seq for item in (await bench.state(bench.task)).conversation]
    bench.right.once = [lambda view: view.compacted(Compacted(through=view.state.seq, keep=[first]))]
    await bench.say("c")
    found = await bench.only()
    assert found.changes == [Change(part="messages", at=1, by=["right"], cause="compacted")]


async def test_an_erasure_names_the_person_or_the_plugin() -> None:
    bench = Bench()
    await bench.say("a", "b", "c")
    [_, told, third] = await bench.log(bench.task, "received")
    await bench.erase(bench.task, told.seq)
    await bench.say("d")
    bench.left.once = [lambda view: view.erase_messages([third.seq])]
    await bench.say("e")
    by_person, by_plugin = await prefix_breaks(bench.store, bench.task)
    at = by_person.shared
    assert by_person.changes == [Change(part="messages", at=at, person="ann", cause="erased")]
    assert by_person.sentences[1] == f"Message {at} was erased, by ann."
    [change] = by_plugin.changes
    assert (change.by, change.cause, change.person) == (["left"], "erased", "")
    # The messages are gone, so what was sent cannot be proven.
    assert not by_person.exact


async def test_what_a_fork_never_had_was_erased_before_it() -> None:
    bench = Bench()
    await bench.say("a", "b")
    through = (await bench.row(bench.task)).last_seq
    [_, told] = await bench.log(bench.task, "received")
    await bench.erase(bench.task, told.seq)
    await bench.run()
    fork = await bench.start("c", history_from=bench.task, history_through=through)
    await bench.run()
    [found] = await prefix_breaks(bench.store, fork)
    [change] = found.changes
    assert (change.cause, found.shared, found.exact) == ("erased", 4, False)
    assert change.sentence == "Message 4 was erased."


async def test_what_stood_in_for_the_last_message_is_gone_with_the_next_one() -> None:
    bench = Bench()
    await bench.say("a")
    bench.provider._script = [ProviderError("overloaded", "busy", retry_at=bench.clock.now() + 60)]
    await bench.say("b")
    [_, told] = await bench.log(bench.task, "received")
    await bench.erase(bench.task, told.seq)
    bench.clock.advance(61)
    bench.left.reminders = nothing  # type: ignore[method-assign]
    await bench.run()
    found = [change for one in await prefix_breaks(bench.store, bench.task) for change in one.changes]
    assert found
    assert {change.cause for change in found} == {"erased"}


async def nothing(view: TaskView) -> list[Reminder]:
    return []


async def test_a_failed_call_counts_as_a_request() -> None:
    bench = Bench()
    await bench.say("a")
    bench.provider._script = [ProviderError("overloaded", "busy", retry_at=bench.clock.now() + 60)]
    bench.left.parts = ["new"]
    await bench.say("b")
    bench.clock.advance(61)
    await bench.run()
    found = await bench.only()
    [failed] = await bench.log(bench.task, "model_failed")
    assert found.seq == failed.seq


async def test_a_break_goes_into_json() -> None:
    bench = Bench()
    await bench.say("a")
    bench.right.parts = ["more"]
    await bench.say("b")
    found = await prefix_breaks(bench.store, bench.task)
    assert msgspec.json.decode(msgspec.json.encode(found), type=list[PrefixBreak]) == found
