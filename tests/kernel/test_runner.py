"""The runner over a real store: what a task does with messages, replies, calls, waits and ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import anyio
import pytest

from noeta.core.errors import ProviderError, RequestStale, TurnDone, TurnFailed
from noeta.core.extension import Extension
from noeta.core.gates import Allow, Ask, Deny, Gate, Rewrite
from noeta.core.items import NewEntry
from noeta.core.log import Append, Appended, Claim
from noeta.core.messages import Message, Text, ToolResult, ToolUse, user
from noeta.core.parts import ContextPart, Reminder, ToolChanges
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Compacted, Recorded
from noeta.core.tool import Park, ToolContext, ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply
from noeta.toolkit.agent import Agent
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.questions import Question, ask, read_answer

pytestmark = pytest.mark.anyio


class Tool:
    description = "A tool."
    clearable = False

    def __init__(
        self,
        name: str,
        run: Callable[..., Any] = lambda input, ctx: text_output(f"ran {input}"),
        *,
        read_only: bool = False,
        schema: dict[str, Any] | None = None,
        **flags: Any,
    ) -> None:
        self.name, self.read_only, self._run = name, read_only, run
        self.input_schema = schema or {"type": "object"}
        self.flags = ToolFlags(**flags)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output = self._run(input, ctx)
        return await output if hasattr(output, "__await__") else output


class Asking(Tool):
    """Asks which colour, and says what came of it."""

    QUESTION: ClassVar[Question] = {"question": "Which colour?"}

    def __init__(self, name: str = "ask") -> None:
        super().__init__(name, lambda input, ctx: ToolOutput(park=ask(self.QUESTION)))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output(f"colour: {read_answer(outcome, self.QUESTION)}")


class Tools(Extension):
    name = "tools"

    def __init__(self, *tools: Any) -> None:
        self._tools = tools

    def tools(self, view: TaskView) -> Any:
        return self._tools


def results(request: ModelRequest) -> list[str]:
    """The texts of the results in a request."""
    found = []
    for message in request.messages:
        blocks = [block for block in message.content if isinstance(block, ToolResult)]
        found += ["".join(inner.text for inner in block.content) for block in blocks]
    return found


def said(request: ModelRequest) -> list[str]:
    return [message.text for message in request.messages if message.text]


# ---- turns


async def test_a_message_starts_a_turn_and_a_reply_without_calls_ends_it() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start("hi")
    assert await bench.run() == 1
    row = await bench.row(task)
    assert (row.status, row.reason, row.worker) == ("waiting", "idle", "")
    [done] = await bench.log(task, "turn_done")
    assert (done.data.text, done.data.reason) == ("Hello.", "")
    assert [request.system for request in bench.provider.requests] == ["You are an agent."]


async def test_a_second_message_continues_the_conversation() -> None:
    bench = Harness(script=["Hello.", "Fine."])
    task = await bench.start("hi")
    await bench.run()
    await bench.post(task, "how are you?")
    await bench.run()
    assert said(bench.provider.requests[1]) == ["hi", "Hello.", "how are you?"]


async def test_a_task_without_a_message_waits() -> None:
    bench = Harness()
    task = await bench.start()
    assert await bench.run() == 0
    assert (await bench.row(task)).status == "waiting"


async def test_a_one_shot_task_ends_with_its_first_turn() -> None:
    bench = Harness(script=["Done."])
    task = await bench.start("do it", one_shot=True)
    await bench.run()
    row = await bench.row(task)
    assert (row.status, row.reason) == ("ended", "done")
    assert (await bench.kinds(task))[-2:] == ["turn_done", "task_ended"]


async def test_an_entry_in_the_inbox_becomes_a_record_of_its_plugin_and_its_message_starts_a_turn() -> None:
    bench = Harness([Tools()], script=["Seen."])
    task = await bench.start()
    await bench.post(task, NewEntry("tools", "seen", {"x": 1}, user("look")))
    await bench.run()
    [entry] = await bench.log(task, "seen")
    assert (entry.extension, entry.data) == ("tools", {"x": 1})
    assert said(bench.provider.requests[0]) == ["look"]


# ---- calls


async def test_every_call_of_a_reply_has_its_result_before_the_next_model_call() -> None:
    tools = Tools(Tool("a"), Tool("b"))
    bench = Harness([tools], [reply("", call("a", x=1), call("b"), call("a", x=2)), "Done."])
    await bench.start("go")
    await bench.run()
    assert results(bench.provider.requests[1]) == ["ran {'x': 1}", "ran {}", "ran {'x': 2}"]


async def test_calls_get_ids_of_the_kernels_own_and_keep_the_providers() -> None:
    bench = Harness([Tools(Tool("a"))], [reply("", call("a")), "Done."])
    task = await bench.start("go")
    await bench.run()
    [replied, _] = await bench.log(task, "model_replied")
    [use] = replied.message.calls
    assert use.id.startswith(f"c{replied.seq}_0_")
    assert use.provider_id
    assert replied.data.calls[0].id == use.id


async def test_a_call_that_is_not_read_only_is_started_durably_and_a_read_is_not() -> None:
    tools = Tools(Tool("write"), Tool("read", read_only=True), Tool("again", retry_safe=True))
    bench = Harness([tools], [reply("", call("write"), call("read"), call("again")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert len(await bench.log(task, "tool_started")) == 1
    assert len(await bench.log(task, "tool_finished")) == 3


async def test_read_only_calls_run_side_by_side_and_each_keeps_its_place() -> None:
    running = 0
    most = 0
    together = anyio.Event()

    async def read(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            together.set()
        await together.wait()
        running -= 1
        return text_output(str(input["n"]))

    bench = Harness(
        [Tools(Tool("read", read, read_only=True))],
        [reply("", *(call("read", n=n) for n in range(3))), "Done."],
    )
    await bench.start("go")
    await bench.run()
    assert most == 3
    assert results(bench.provider.requests[1]) == ["0", "1", "2"]


async def test_one_failing_call_costs_its_siblings_nothing() -> None:
    def read(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        if input["n"] == 1:
            raise ValueError("boom")
        return text_output(str(input["n"]))

    tools = Tools(Tool("read", read, read_only=True))
    bench = Harness([tools], [reply("", *(call("read", n=n) for n in range(3))), "Done."])
    await bench.start("go")
    await bench.run()
    assert results(bench.provider.requests[1]) == ["0", "read failed: ValueError: boom", "2"]


async def test_run_last_runs_after_the_others() -> None:
    ran: list[str] = []

    def note(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        ran.append(input["n"])
        return text_output("")

    tools = Tools(Tool("last", note, run_last=True), Tool("plain", note))
    bench = Harness([tools], [reply("", call("last", n="l"), call("plain", n="p")), "Done."])
    await bench.start("go")
    await bench.run()
    assert ran == ["p", "l"]


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (call("reed"), "There is no tool 'reed' (did you mean 'read'?)."),
        (call("read", path=3), "The input of read is not valid."),
    ],
    ids=["unknown", "schema"],
)
async def test_a_call_that_cannot_run_is_an_error_the_model_can_mend(use: ToolUse, says: str) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    bench = Harness([Tools(Tool("read", schema=schema))], [reply("", use), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert results(bench.provider.requests[1])[0].startswith(says)
    [finished] = await bench.log(task, "tool_finished")
    assert finished.data.is_error


async def test_what_a_tool_records_stands_right_before_its_end_and_is_lost_when_it_raises() -> None:
    def note(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        ctx.record("tools", "noted", input["n"])
        if input["n"] == 2:
            raise ValueError("boom")
        return text_output("")

    bench = Harness([Tools(Tool("note", note))], [reply("", call("note", n=1), call("note", n=2)), "Done."])
    task = await bench.start("go")
    await bench.run()
    kinds = await bench.kinds(task)
    assert kinds.count("noted") == 1
    assert kinds[kinds.index("noted") + 1] == "tool_finished"


async def test_a_result_that_no_log_can_hold_is_mended_and_says_so() -> None:
    bad = Tool("bad", lambda input, ctx: text_output("a\ud800b", ratio=float("nan")))
    bench = Harness([Tools(bad)], [reply("", call("bad")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert results(bench.provider.requests[1]) == ["a\ufffdb"]
    [finished] = await bench.log(task, "tool_finished")
    assert "not_storable" in finished.data.meta


async def test_a_long_result_is_spilled_unless_the_tool_bounds_it_itself() -> None:
    long = "x" * 60_000
    tools = Tools(
        Tool("long", lambda input, ctx: text_output(long)),
        Tool("own", lambda input, ctx: text_output(long), max_result_chars=None),
    )
    bench = Harness([tools], [reply("", call("long"), call("own")), "Done."])
    await bench.start("go")
    await bench.run()
    first, second = results(bench.provider.requests[1])
    assert "saved as" in first
    assert second == long


async def test_end_turn_of_an_output_ends_the_turn_with_that_text() -> None:
    tool = Tool("hand", lambda input, ctx: ToolOutput(end_turn="handed back"))
    bench = Harness([Tools(tool)], [reply("", call("hand"))])
    task = await bench.start("go")
    await bench.run()
    [done] = await bench.log(task, "turn_done")
    assert done.data.text == "handed back"
    await bench.post(task, "more")
    bench.provider._script.append("again")
    await bench.run()
    assert len(await bench.log(task, "turn_done")) == 2


# ---- gates


class Gates(Extension):
    """Answers by what a test says."""

    name = "gates"

    def __init__(self, answer: Callable[[ToolUse], Gate | None], resolve: Gate | None = None) -> None:
        self._answer, self._resolve = answer, resolve
        self.asked: list[ToolUse] = []

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        self.asked.append(call)
        return self._answer(call)

    async def resolve_ask(self, view: TaskView, call: ToolUse, asks: Any) -> Gate | None:
        return self._resolve


async def test_a_denied_call_does_not_run_and_the_model_sees_the_reason() -> None:
    ran: list[Any] = []
    tools = Tools(Tool("rm", lambda input, ctx: ran.append(input)))
    bench = Harness([tools, Gates(lambda use: Deny("not here", "rule 1"))], [reply("", call("rm")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert (ran, results(bench.provider.requests[1])) == ([], ["not here"])
    [gated] = await bench.log(task, "gated")
    assert [(o.by, o.verdict, o.source) for o in gated.data.opinions] == [("gates", "deny", "rule 1")]


async def test_a_rewritten_call_is_gated_again_and_runs_with_the_new_input() -> None:
    gates = Gates(lambda use: Rewrite({"safe": True}, "copy") if use.name == "move" else None)
    tools = Tools(Tool("move"), Tool("copy"))
    bench = Harness([tools, gates], [reply("", call("move", x=1)), "Done."])
    await bench.start("go")
    await bench.run()
    assert [use.name for use in gates.asked][:2] == ["move", "copy"]
    assert results(bench.provider.requests[1]) == ["ran {'safe': True}"]


async def test_asks_of_a_reply_wait_together_and_the_other_calls_run() -> None:
    gates = Gates(lambda use: Ask(f"{use.name}?") if use.name == "write" else None)
    tools = Tools(Tool("write"), Tool("read"))
    bench = Harness(
        [tools, gates], [reply("", call("write", n=1), call("read"), call("write", n=2)), "Done."]
    )
    task = await bench.start("go")
    await bench.run()
    row = await bench.row(task)
    assert (row.status, row.reason) == ("waiting", "question")
    parked = await bench.log(task, "tool_parked")
    assert [record.data.detail["prompt"] for record in parked] == ["write?", "write?"]
    assert len(await bench.log(task, "tool_finished")) == 1
    await bench.answer(task, parked[1].data.call, verdict="allow", by="ann")
    await bench.run()
    assert (await bench.row(task)).reason == "question"
    await bench.answer(task, parked[0].data.call, verdict="deny", reason="too risky", by="bob")
    await bench.run()
    assert results(bench.provider.requests[1]) == [
        "The person refused this call. too risky",
        "ran {}",
        "ran {'n': 2}",
    ]


async def test_after_an_approval_an_ask_is_satisfied_and_a_deny_still_counts() -> None:
    answers: list[Gate] = [Ask("sure?", firm=True)]
    gates = Gates(lambda use: answers[-1])
    bench = Harness(
        [Tools(Tool("write")), gates], [reply("", call("write")), reply("", call("write")), "Done."]
    )
    task = await bench.start("go")
    await bench.run()
    [first] = await bench.log(task, "tool_parked")
    await bench.answer(task, first.data.call, verdict="allow")
    await bench.run()
    assert results(bench.provider.requests[1]) == ["ran {}"]
    [_, second] = await bench.log(task, "tool_parked")
    answers.append(Deny("never mind"))
    await bench.answer(task, second.data.call, verdict="allow")
    await bench.run()
    assert results(bench.provider.requests[2])[1] == "never mind"


async def test_an_answer_to_a_settled_call_is_late_and_has_no_effect() -> None:
    bench = Harness([Tools(Asking())], [reply("", call("ask")), "Done."])
    task = await bench.start("go")
    await bench.run()
    [parked] = await bench.log(task, "tool_parked")
    await bench.answer(task, parked.data.call, values={"Which colour?": "red"})
    await bench.run()
    await bench.answer(task, parked.data.call, park=2, values={"Which colour?": "blue"})
    await bench.run()
    assert [record.data.late for record in await bench.log(task, "answered")] == [False, True]


async def test_a_plugin_answers_in_the_persons_place() -> None:
    gates = Gates(lambda use: Ask("sure?"), Allow(outright=True))
    seen: list[bool] = []
    tool = Tool("write", lambda input, ctx: (seen.append(ctx.allowed_outright), text_output("ok"))[1])
    bench = Harness([Tools(tool), gates], [reply("", call("write")), "Done."])
    await bench.start("go")
    await bench.run()
    assert seen == [True]


async def test_a_call_is_gated_again_when_something_was_recorded_since() -> None:
    first: list[str] = []
    gates = Gates(lambda use: Deny("changed") if first else None)
    tools = Tools(Tool("a", lambda input, ctx: (first.append("ran"), text_output("a"))[1]), Tool("b"))
    bench = Harness([tools, gates], [reply("", call("a"), call("b")), "Done."])
    await bench.start("go")
    await bench.run()
    assert results(bench.provider.requests[1]) == ["a", "changed"]


async def test_a_withheld_tool_is_answered_before_any_gate() -> None:
    class Withhold(Extension):
        name = "withhold"

        def tool_changes(self, view: TaskView, offered: Any) -> ToolChanges:
            return ToolChanges(withhold={"a": "not in this mode"})

    gates = Gates(lambda use: Deny("gate"))
    bench = Harness([Tools(Tool("a")), Withhold(), gates], [reply("", call("a")), "Done."])
    await bench.start("go")
    await bench.run()
    assert results(bench.provider.requests[1]) == ["not in this mode"]
    assert [spec.name for spec in bench.provider.requests[0].tools] == []
    assert gates.asked == []


# ---- questions, children, stops


async def test_a_question_parks_the_call_and_the_answer_resumes_it_after_a_restart() -> None:
    bench = Harness([Tools(Asking())], [reply("", call("ask"))])
    task = await bench.start("go")
    await bench.run()
    [parked] = await bench.log(task, "tool_parked")
    await bench.answer(task, parked.data.call, values={"Which colour?": "red"}, by="ann")
    again = Harness([Tools(Asking())], ["Done."], store=bench.store, clock=bench.clock, ids=bench.ids)
    await again.run()
    assert results(again.provider.requests[0]) == ["colour: red"]


async def test_an_interrupt_gives_every_open_call_a_result_and_the_next_turn_works() -> None:
    bench = Harness([Tools(Asking(), Tool("a"))], [reply("", call("ask"), call("a")), "Fine."])
    task = await bench.start("go")
    await bench.run()
    await bench.interrupt(task)
    await bench.run()
    assert (await bench.kinds(task))[-1] == "interrupted"
    await bench.post(task, "go on")
    await bench.run()
    assert results(bench.provider.requests[1]) == ["colour: None", "ran {}"]


async def test_an_interrupt_that_much_mail_follows_is_consumed_in_the_append_that_says_what_it_stopped() -> (
    None
):
    appends: list[list[str]] = []

    class Watched(InMemoryStore):
        async def append(self, claim: Claim, append: Append) -> Appended:
            appended = await super().append(claim, append)
            appends.append([line.name for line in append.lines])
            return appended

    clock, ids = FrozenClock(), SeededIds()
    bench = Harness(
        [Tools(Asking())], [reply("", call("ask")), "Fine."], store=Watched(clock, ids), clock=clock, ids=ids
    )
    task = await bench.start("go")
    await bench.run()
    await bench.interrupt(task)
    for n in range(250):
        await bench.post(task, f"message {n}")
    before = len(appends)
    await bench.run()
    [stopped] = [names for names in appends[before:] if "core.interrupted" in names]
    assert stopped.count("core.received") == 100
    assert await bench.store.inbox(task, 1) == []


async def test_an_interrupt_of_another_turn_has_no_effect() -> None:
    bench = Harness([Tools(Asking())], ["Hello.", reply("", call("ask"))])
    task = await bench.start("hi")
    await bench.interrupt(task)
    await bench.run()
    assert "interrupted" not in await bench.kinds(task)


async def test_cancelling_ends_the_task_and_its_children() -> None:
    def spawn(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return ToolOutput(park=Park(on="children", keys=[ctx.spawn("agent", "wait for me")]))

    tools = Tools(Parent("spawn", spawn), Asking())
    bench = Harness([tools], [reply("", call("spawn")), reply("", call("ask"))])
    task = await bench.start("go")
    await bench.run()
    [child] = await bench.children(task)
    await bench.cancel(task)
    await bench.run()
    assert [(await bench.row(name)).reason for name in (task, child)] == ["cancelled", "cancelled"]


class Parent(Tool):
    """Waits for children."""

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output("; ".join(f"{end.status}: {end.text}" for end in (outcome or {}).values()))


async def test_a_call_waits_for_its_children_and_gets_each_end_once() -> None:
    def spawn(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return ToolOutput(park=Park(on="children", keys=[ctx.spawn("agent", f"part {n}") for n in (1, 2)]))

    bench = Harness([Tools(Parent("spawn", spawn))], [reply("", call("spawn")), "one", "two", "Done."])
    task = await bench.start("go")
    await bench.run()
    assert results(bench.provider.requests[3]) == ["done: one; done: two"]
    assert len(await bench.log(task, "child_ended")) == 2
    assert [(await bench.row(child)).status for child in await bench.children(task)] == ["ended", "ended"]


async def test_a_background_childs_end_is_a_record_and_no_message() -> None:
    def spawn(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return text_output(ctx.spawn("agent", "later", background=True))

    bench = Harness([Tools(Tool("spawn", spawn))], [reply("", call("spawn")), "Started.", "child"])
    task = await bench.start("go")
    await bench.run()
    kinds = await bench.kinds(task)
    assert kinds.count("child_ended") == 1
    assert kinds.count("turn_done") == 1


async def test_spawning_an_unknown_agent_is_an_error_with_a_hint_and_makes_no_child() -> None:
    def spawn(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return text_output(ctx.spawn("agnet", "go"))

    bench = Harness([Tools(Tool("spawn", spawn))], [reply("", call("spawn")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert "there is no agent 'agnet' (did you mean 'agent'?)" in results(bench.provider.requests[1])[0]
    assert await bench.children(task) == []


async def test_a_childs_agent_must_have_the_plugins_its_parent_requires() -> None:
    class Guard(Extension):
        name = "guard"
        required = True

    def spawn(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return text_output(ctx.spawn("bare", "go"))

    bench = Harness(
        [Tools(Tool("spawn", spawn)), Guard()], [reply("", call("spawn")), "Done."], agents=[Agent("bare")]
    )
    task = await bench.start("go")
    await bench.run()
    assert "lacks plugin 'guard'" in results(bench.provider.requests[1])[0]
    assert await bench.children(task) == []


# ---- the model call


class Steers(Extension):
    """Does before the model what a test says."""

    name = "steers"

    def __init__(self, before: Callable[[TaskView, ModelRequest], ModelRequest]) -> None:
        self._before = before

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        return self._before(view, request)


def raising(error: Exception) -> Callable[..., Any]:
    def before(view: TaskView, request: ModelRequest) -> Any:
        raise error

    return before


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (TurnDone(), "turn_done", "hook"),
        (TurnFailed("quota", "no money"), "turn_failed", "quota"),
        (ValueError("boom"), "turn_failed", "plugin_error"),
    ],
    ids=["done", "failed", "error"],
)
async def test_what_before_model_raises_steers_the_turn(error: Exception, kind: str, reason: str) -> None:
    bench = Harness([Steers(raising(error))])
    task = await bench.start("go")
    await bench.run()
    [record] = await bench.log(task, kind)
    assert record.data.reason == reason
    assert (await bench.row(task)).reason == "idle"


async def test_a_stale_request_is_built_again_from_the_new_state() -> None:
    def compact(view: TaskView, request: ModelRequest) -> ModelRequest:
        if len(request.messages) > 1:
            view.compacted(Compacted(through=view.state.seq, summary=[user("so far")]))
            raise RequestStale
        return request

    bench = Harness([Steers(compact)], ["One.", "Two."])
    task = await bench.start("a")
    await bench.run()
    await bench.post(task, "b")
    await bench.run()
    assert said(bench.provider.requests[1]) == ["so far"]


async def test_a_plugin_that_fails_to_park_lets_the_task_wait_for_it() -> None:
    class Parks(Steers):
        on_error: ClassVar[dict[str, str]] = {"before_model": "park"}

    bench = Harness([Parks(raising(ValueError("boom")))])
    task = await bench.start("go")
    await bench.run()
    row = await bench.row(task)
    assert (row.status, row.reason) == ("waiting", "plugin")


async def test_context_and_reminders_reach_the_model_and_are_recorded_when_they_change() -> None:
    class Notes(Extension):
        name = "notes"

        def context(self, view: TaskView) -> list[ContextPart]:
            return [ContextPart("Last."), ContextPart("First.", before="You are an agent.")]

        async def reminders(self, view: TaskView) -> list[Reminder]:
            return [Reminder("system note", role="system"), Reminder("user note")]

    bench = Harness([Notes()], ["One.", "Two."])
    task = await bench.start("a")
    await bench.run()
    await bench.post(task, "b")
    await bench.run()
    first, _ = bench.provider.requests
    assert first.system == "First.\nYou are an agent.\nLast."
    assert said(first) == ["a", "user note", "system note"]
    composed = await bench.log(task, "context_composed")
    assert len(composed) == 1
    assert [part.by for part in composed[0].data.system] == ["notes", "", "notes"]


async def test_an_edit_of_the_messages_is_recorded_with_its_plugin() -> None:
    def edit(view: TaskView, request: ModelRequest) -> ModelRequest:
        import msgspec

        return msgspec.structs.replace(
            request, messages=[user("edited"), *request.messages[1:]], system="other"
        )

    bench = Harness([Steers(edit)], ["One."])
    task = await bench.start("a")
    await bench.run()
    assert said(bench.provider.requests[0]) == ["edited"]
    [composed] = await bench.log(task, "context_composed")
    [change] = composed.data.edits
    assert (change.start, change.end, change.by) == (0, 1, "steers")
    assert [(part.text, part.by) for part in composed.data.system] == [("other", "steers")]


async def test_a_model_that_fails_for_good_fails_the_turn() -> None:
    bench = Harness(script=[ProviderError("auth", "the key is not valid")])
    task = await bench.start("go")
    await bench.run()
    [failed] = await bench.log(task, "turn_failed")
    assert (failed.data.reason, failed.data.detail) == ("auth", "the key is not valid")


async def test_an_outage_is_a_durable_wait_and_the_turn_goes_on_after_it() -> None:
    bench = Harness(script=[])
    at = bench.clock.now() + 60
    bench.provider._script = [ProviderError("overloaded", "busy", retry_at=at), "Hello."]
    task = await bench.start("go")
    await bench.run()
    row = await bench.row(task)
    assert (row.status, row.reason, row.retry_at) == ("waiting", "provider", at)
    bench.clock.advance(61)
    await bench.run()
    assert (await bench.log(task, "turn_done"))[0].data.text == "Hello."


async def test_an_overflow_asks_for_room_and_the_request_must_shrink() -> None:
    class Room(Extension):
        name = "room"

        async def on_context_overflow(self, view: TaskView, request: ModelRequest) -> bool:
            if len(view.state.conversation) > 1:
                view.compacted(Compacted(through=view.state.seq, summary=[user("s")]))
            return True

    overflow = ProviderError("overflow", "too long")
    bench = Harness([Room()], ["One.", overflow, "Two.", overflow])
    task = await bench.start("a long message")
    await bench.run()
    await bench.post(task, "b")
    await bench.run()
    assert said(bench.provider.requests[2]) == ["s"]
    await bench.post(task, "c")
    bench.provider._script += [overflow, overflow, overflow]
    await bench.run()
    assert (await bench.log(task, "turn_failed"))[0].data.reason == "context_overflow"


@pytest.mark.parametrize("end", ["turn_failed", "interrupted"])
async def test_a_turn_after_one_that_was_too_long_has_all_its_rounds_of_making_room(end: str) -> None:
    class Room(Extension):
        name = "room"
        asked = 0

        async def on_context_overflow(self, view: TaskView, request: ModelRequest) -> bool:
            self.asked += 1
            if end == "interrupted" and self.asked == 3:
                await bench.interrupt(view.task_id)
            view.compacted(Compacted(through=view.state.seq, summary=[user("s" * (20 - self.asked))]))
            return True

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.kind == end:
                # The next turn begins in the same claim.
                view.enqueue("and more", dedupe_key="more")

    overflow = ProviderError("overflow", "too long")
    bench = Harness([Room()], [overflow] * (4 if end == "turn_failed" else 3) + [overflow] * 3 + ["Done."])
    task = await bench.start("a message that is too long for any model")
    await bench.run()
    assert len(await bench.log(task, end)) == 1
    assert len(await bench.log(task, "claimed")) == 1
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Done."]


async def test_an_empty_reply_goes_on_three_times_at_most() -> None:
    class GoOn(Extension):
        name = "go-on"

        async def on_empty_reply(self, view: TaskView, response: ModelResponse) -> Message:
            return user("go on")

    empty = ModelResponse(message=Message(role="assistant", content=[Text(text="  ")]))
    bench = Harness([GoOn()], [empty] * 4)
    task = await bench.start("a")
    await bench.run()
    assert len(await bench.log(task, "continue")) == 3
    [done] = await bench.log(task, "turn_done")
    assert done.data.reason == "empty_reply"
    assert said(bench.provider.requests[3]) == ["a", "go on", "go on", "go on"]


async def test_an_empty_reply_after_a_tool_that_asks_for_silence_ends_the_turn() -> None:
    empty = ModelResponse(message=Message(role="assistant", content=[]))
    bench = Harness([Tools(Tool("send", silent_reply_after="success"))], [reply("", call("send")), empty])
    task = await bench.start("a")
    await bench.run()
    assert (await bench.log(task, "turn_done"))[0].data.reason == "silent"


# ---- events, timers, erasure


async def test_events_are_told_once_durable_and_what_they_record_follows() -> None:
    class Watches(Extension):
        name = "watches"

        def __init__(self) -> None:
            self.told: list[str] = []

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            self.told.append(recorded.kind)
            if recorded.kind == "turn_done":
                view.record("watches", "saw", recorded.seq)

    watches = Watches()
    bench = Harness([watches], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert watches.told == ["claimed", "received", "context_composed", "model_replied", "turn_done"]
    assert (await bench.kinds(task))[-1] == "saw"
    assert (await bench.row(task)).status == "waiting"


async def test_a_timer_with_a_blank_text_puts_nothing_into_the_conversation() -> None:
    class Sets(Extension):
        name = "sets"

        async def on_start(self, view: TaskView) -> None:
            if view.state.turn is None and not view.state.usage.output:
                view.set_timer("t", 0.0, " ")

    bench = Harness([Sets()], ["Hello."])
    task = await bench.start()
    await bench.run()
    await bench.post(task, "hi")
    await bench.run()
    assert [item.message.text for item in (await bench.state(task)).conversation] == ["hi", "Hello."]


async def test_a_timer_with_text_starts_a_turn_once_the_task_is_idle() -> None:
    class Wakes(Extension):
        name = "wakes"

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.kind == "turn_done" and view.state.usage.output < 10_000 and not view.state.timers:
                view.set_timer("later", recorded.at + 30, "time is up")

    bench = Harness([Wakes()], ["Hello.", "Yes."])
    task = await bench.start("hi")
    await bench.run()
    assert (await bench.row(task)).status == "waiting"
    bench.clock.advance(31)
    await bench.run(limit=3)
    assert said(bench.provider.requests[1]) == ["hi", "Hello.", "time is up"]
    assert len(await bench.log(task, "turn_done")) == 2


async def test_an_erased_message_is_in_no_later_request_and_its_bytes_are_gone() -> None:
    bench = Harness(script=["Hello.", "Noted.", "Fine."])
    task = await bench.start("hi")
    await bench.run()
    await bench.post(task, "my secret is canary")
    await bench.run()
    [_, received] = await bench.log(task, "received")
    await bench.erase(task, received.seq)
    await bench.run()
    await bench.post(task, "hello")
    await bench.run()
    assert not any("canary" in text for text in said(bench.provider.requests[2]))
    assert not any(b"canary" in line.data for line in await bench.store.read(task))


async def test_the_seconds_a_plugins_model_call_costs_are_attributed_to_it() -> None:
    class Thinks(Extension):
        name = "thinks"

        async def on_start(self, view: TaskView) -> None:
            assert view.complete
            await view.complete(ModelRequest(model="small", messages=[user("think")]))

    bench = Harness([Thinks()], ["thought", "Hello."])
    task = await bench.start("hi")
    await bench.run()
    [called] = await bench.log(task, "model_called")
    assert called.data.plugin == "thinks"
