"""Commits, the inbox and turns: points 1 to 11, 13, 15 to 18 and 28 to 30 of how the kernel is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import anyio
import pytest

from noeta.core import calls
from noeta.core.errors import RequestStale, TurnDone
from noeta.core.extension import Extension
from noeta.core.gates import Ask, Gate
from noeta.core.items import NewEntry
from noeta.core.messages import ToolResult, ToolUse, user
from noeta.core.ports import ModelRequest
from noeta.core.records import Compacted, Recorded
from noeta.core.tool import Park, ToolContext, ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply
from noeta.toolkit.errors import Duplicate

pytestmark = pytest.mark.anyio


class Tool:
    description, clearable = "A tool.", False
    input_schema: ClassVar[Any] = {"type": "object"}

    def __init__(self, name: str, run: Callable[..., Any], *, read_only: bool = False) -> None:
        self.name, self._run, self.read_only = name, run, read_only

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output = self._run(input, ctx)
        return await output if hasattr(output, "__await__") else output

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output("resumed")


class Plugin(Extension):
    """Tools, and hooks that do what a test says."""

    name = "plugin"

    def __init__(self, *tools: Tool, event: Any = None, before: Any = None, gate: Any = None) -> None:
        self._tools, self._event, self._before, self._gate = tools, event, before, gate

    def tools(self, view: TaskView) -> Any:
        return self._tools

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        if self._event:
            self._event(view, recorded)

    async def before_model(self, view: TaskView, request: ModelRequest) -> Any:
        return self._before(view, request) if self._before else request

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        return self._gate(call) if self._gate else None


def texts(request: ModelRequest) -> list[str]:
    found = []
    for message in request.messages:
        results = [block for block in message.content if isinstance(block, ToolResult)]
        found += [f"= {inner.text}" for block in results for inner in block.content]
        found += [message.text] if message.text else []
    return found


async def test_what_on_event_stages_changes_no_request_that_is_built_and_is_in_the_next_one() -> None:
    def event(view: TaskView, recorded: Recorded) -> None:
        if recorded.kind == "received":
            view.record("plugin", "noted", message=user("seen"))

    bench = Harness([Plugin(Tool("a", lambda input, ctx: text_output("x")), event=event)])
    bench.provider._script = [reply("", call("a")), "Done."]
    await bench.start("go")
    await bench.run()
    assert [texts(request) for request in bench.provider.requests] == [["go"], ["go", "= x", "seen"]]


async def test_a_turn_without_calls_costs_two_appends_and_the_claim_none_of_its_own() -> None:
    bench = Harness(script=["Hello."])
    task, appends = await bench.start("hi"), []
    append = bench.store.append

    async def counted(claim: Any, made: Any) -> Any:
        appends.append([line.name for line in made.lines])
        return await append(claim, made)

    bench.store.append = counted  # type: ignore[method-assign]
    await bench.run()
    names = ["core.claimed", "core.received", "core.context_composed"]
    assert appends == [names, ["core.model_replied", "core.turn_done"]]
    assert (await bench.row(task)).attempts == 0


async def test_a_post_that_comes_as_the_task_goes_to_wait_is_not_slept_over() -> None:
    class Late(Extension):
        name = "late"

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.kind == "turn_done" and not posted:
                posted.append(recorded.seq)
                await bench.post(task, "wait, there is more")

    posted: list[int] = []
    bench = Harness([Late()], ["One.", "Two."])
    task = await bench.start("hi")
    assert await bench.run() == 1
    assert len(await bench.log(task, "turn_done")) == 2


@pytest.mark.parametrize(
    ("error", "kept"), [(TurnDone(), 1), (ValueError("boom"), 0)], ids=["signal", "error"]
)
async def test_what_a_hook_staged_is_kept_with_a_signal_and_dropped_with_an_error(
    error: Exception, kept: int
) -> None:
    def before(view: TaskView, request: ModelRequest) -> Any:
        view.record("plugin", "noted")
        raise error

    bench = Harness([Plugin(before=before)])
    task = await bench.start("go")
    await bench.run()
    assert len(await bench.log(task, "noted")) == kept


async def test_a_call_that_waits_keeps_what_it_staged() -> None:
    def run(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        ctx.record("plugin", "noted")
        return ToolOutput(park=Park(on="question"))

    bench = Harness([Plugin(Tool("a", run))], [reply("", call("a"))])
    task = await bench.start("go")
    await bench.run()
    assert (await bench.kinds(task))[-2:] == ["noted", "tool_parked"]


async def test_a_plugin_is_not_told_of_what_its_own_on_event_recorded() -> None:
    told: list[str] = []

    def event(view: TaskView, recorded: Recorded) -> None:
        told.append(recorded.kind)
        view.record("plugin", "noted")

    bench = Harness([Plugin(event=event)], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert "noted" not in told
    assert len(await bench.log(task, "noted")) == len(told)


async def test_what_comes_while_a_call_runs_stands_behind_its_result() -> None:
    async def run(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        await bench.post(task, "meanwhile")
        return text_output("x")

    bench = Harness([Plugin(Tool("a", run))], [reply("", call("a")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert texts(bench.provider.requests[1]) == ["go", "= x", "meanwhile"]


async def test_an_entry_without_a_message_starts_no_turn() -> None:
    bench = Harness([Plugin()])
    task = await bench.start()
    await bench.post(task, NewEntry("plugin", "noted", 1))
    await bench.run()
    assert (await bench.row(task)).reason == "idle"
    assert len(await bench.log(task, "noted")) == 1


async def test_a_post_that_cannot_arrive_is_noted_and_fails_nothing() -> None:
    def before(view: TaskView, request: ModelRequest) -> ModelRequest:
        view.enqueue("hello?", task_id="nobody")
        return request

    bench = Harness([Plugin(before=before)], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    [notice] = await bench.log(task, "notice")
    assert "nobody" in notice.data.text
    assert (await bench.log(task, "turn_done"))[0].data.text == "Hello."


async def test_a_second_answer_to_a_question_is_refused() -> None:
    asks = Tool("a", lambda input, ctx: ToolOutput(park=Park(on="question")))
    bench = Harness([Plugin(asks)], [reply("", call("a")), "Done."])
    task = await bench.start("go")
    await bench.run()
    [parked] = await bench.log(task, "tool_parked")
    await bench.answer(task, parked.data.call)
    with pytest.raises(Duplicate):
        await bench.answer(task, parked.data.call)


async def test_an_interrupt_beats_an_approval_that_came_with_it() -> None:
    ran: list[Any] = []
    tool = Tool("a", lambda input, ctx: ran.append(input) or text_output("x"))
    bench = Harness([Plugin(tool, gate=lambda use: Ask("sure?"))], [reply("", call("a"))])
    task = await bench.start("go")
    await bench.run()
    [parked] = await bench.log(task, "tool_parked")
    await bench.answer(task, parked.data.call, verdict="allow")
    await bench.interrupt(task)
    await bench.run()
    assert (ran, (await bench.kinds(task))[-1]) == ([], "interrupted")


@pytest.mark.parametrize("again", [False, True], ids=["once", "set-again"])
async def test_a_timer_without_text_wakes_and_starts_no_turn_and_one_set_again_fires_once(
    again: bool,
) -> None:
    def run(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        ctx.set_timer("t", bench.clock.now() + 10)
        if again:
            ctx.set_timer("t", bench.clock.now() + 20)
        return text_output("set")

    bench = Harness([Plugin(Tool("a", run))], [reply("", call("a")), "Done."])
    task = await bench.start("go")
    await bench.run()
    for _ in range(3):
        bench.clock.advance(12)
        await bench.run()
    fired = [record for record in await bench.log(task, "received") if record.data.item == "timer"]
    assert len(fired) == 1
    assert len(await bench.log(task, "turn_done")) == 1


async def test_a_reply_asked_for_again_after_a_crash_gives_its_calls_other_ids() -> None:
    calls: list[str] = []

    def run(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        calls.append(ctx.call_id)
        raise KeyboardInterrupt

    def plugin() -> Plugin:
        return Plugin(Tool("a", run, read_only=True))

    bench = Harness([plugin()], [reply("", call("a"))] * 2)
    await bench.start("go")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            await bench.run()
        bench.clock.advance(31)
        bench.worker = bench.ids.new()
    assert len(set(calls)) == 2


async def test_after_a_claim_that_was_not_given_up_even_a_read_is_started_durably() -> None:
    read = Tool("a", lambda input, ctx: text_output("x"), read_only=True)
    bench = Harness([Plugin(read)], [reply("", call("a")), "Done."])
    task = await bench.start("go")
    await bench.store.claim("lost")
    bench.clock.advance(31)
    await bench.run()
    assert len(await bench.log(task, "tool_started")) == 1


async def test_a_compaction_that_would_part_a_call_from_its_result_is_refused() -> None:
    whys: list[str] = []

    def before(view: TaskView, request: ModelRequest) -> ModelRequest:
        if len(request.messages) == 3:
            reply_seq = view.state.conversation[1].seq
            try:
                view.compacted(Compacted(through=reply_seq, summary=[user("s")]))
            except ValueError as error:
                whys.append(str(error))
        return request

    bench = Harness([Plugin(Tool("a", lambda input, ctx: text_output("x")), before=before)])
    bench.provider._script = [reply("", call("a")), "Done."]
    task = await bench.start("go")
    await bench.run()
    assert "only one of call" in whys[0]
    assert await bench.log(task, "compacted") == []


async def test_the_fourth_stale_request_for_one_call_fails_the_turn() -> None:
    asked: list[int] = []

    def before(view: TaskView, request: ModelRequest) -> ModelRequest:
        asked.append(1)
        view.record("plugin", "noted")
        raise RequestStale

    bench = Harness([Plugin(before=before)])
    task = await bench.start("go")
    await bench.run()
    assert (len(asked), [r.data.reason for r in await bench.log(task, "turn_failed")]) == (
        4,
        ["request_stale"],
    )


async def test_a_request_found_stale_by_who_changed_nothing_goes_out_as_it_is() -> None:
    asked: list[str] = []

    def before(view: TaskView, request: ModelRequest) -> Any:
        asked.append("asked")
        raise RequestStale

    bench = Harness([Plugin(before=before)], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert len(asked) == 1
    assert [r.data.text for r in await bench.log(task, "turn_done")] == ["Hello."]


async def test_a_hook_that_gives_the_request_on_leaves_no_edit_in_the_log() -> None:
    bench = Harness([Plugin(before=lambda view, request: request)], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    [composed] = await bench.log(task, "context_composed")
    assert not composed.data.edits


async def test_a_view_kept_for_later_records_nothing() -> None:
    views: list[TaskView] = []
    bench = Harness([Plugin(event=lambda view, recorded: views.append(view))], ["Hello."])
    await bench.start("hi")
    await bench.run()
    for act in (lambda v: v.record("plugin", "x"), lambda v: v.enqueue("x"), lambda v: v.spawn("agent", "x")):
        with pytest.raises(RuntimeError, match="only while a hook runs"):
            act(views[0])


async def test_a_plugin_records_entries_of_the_kernel_and_none_of_its_facts() -> None:
    errors: list[str] = []

    def event(view: TaskView, recorded: Recorded) -> None:
        if recorded.kind == "received":
            view.notify("fine")
            try:
                view.record("core", "turn_done")
            except ValueError as error:
                errors.append(str(error))

    bench = Harness([Plugin(event=event)], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert len(errors) == len(await bench.log(task, "notice")) == len(await bench.log(task, "turn_done")) == 1


async def test_the_same_failure_is_recorded_once_a_turn() -> None:
    def event(view: TaskView, recorded: Recorded) -> None:
        raise ValueError("boom")

    bench = Harness([Plugin(event=event)], ["One.", "Two."])
    task = await bench.start("hi")
    await bench.run()
    await bench.post(task, "more")
    await bench.run()
    kinds = await bench.kinds(task)
    starts = [i for i, kind in enumerate(kinds) if kind == "received"]
    turns = [kinds[start : kinds.index("turn_done", start)] for start in starts]
    assert [turn.count("plugin_failed") for turn in turns] == [1, 1]


async def test_a_failed_after_tool_says_that_the_call_did_run() -> None:
    class After(Plugin):
        async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
            raise ValueError("boom")

    bench = Harness([After(Tool("a", lambda input, ctx: text_output("x")))], [reply("", call("a")), "Done."])
    await bench.start("go")
    await bench.run()
    assert texts(bench.provider.requests[1])[1].startswith("= The call did run, but plugin 'plugin' failed")


async def test_plugins_that_answer_each_others_events_stop_after_eight_rounds_and_go_on_later() -> None:
    class Echo(Extension):
        """Records something for each record of the other one."""

        def __init__(self, name: str, other: str) -> None:
            self.name, self._other, self.heard = name, other, 0

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.extension == self._other or recorded.kind == "turn_done":
                self.heard += 1
                view.record(self.name, "echo")

    bench = Harness([Echo("a", "b"), Echo("b", "a")], ["Hello.", "Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert (await bench.row(task)).reason == "idle"
    echoes = [record for record in await bench.log(task) if record.kind == "echo"]
    assert 12 <= len(echoes) <= 2 * 9
    await bench.post(task, "more")
    await bench.run()
    assert len([record for record in await bench.log(task) if record.kind == "echo"]) > 1.5 * len(echoes)


async def test_a_message_withdraws_no_ask() -> None:
    bench = Harness([Plugin(Tool("act", lambda i, c: text_output("acted")), gate=lambda c: Ask("sure?"))])
    bench.provider._script = [reply("", call("act")), "Done."]
    task = await bench.start("go")
    await bench.run()
    await bench.post(task, "by the way")
    await bench.run()
    assert (await bench.row(task)).reason == "question"
    [parked] = await bench.log(task, "tool_parked")
    await bench.answer(task, parked.data.call, verdict="allow")
    await bench.run()
    assert texts(bench.provider.requests[1]) == ["go", "= acted", "by the way"]


async def test_a_tool_that_hangs_when_its_wait_is_withdrawn_gets_a_result_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Hangs(Tool):
        async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
            assert outcome is None
            await anyio.sleep_forever()
            raise AssertionError

    monkeypatch.setattr(calls, "WITHDRAW_SECONDS", 0.01)
    bench = Harness([Plugin(Hangs("ask", lambda i, c: ToolOutput(park=Park(on="question"))))])
    bench.provider._script = [reply("", call("ask")), "Fine."]
    task = await bench.start("go")
    await bench.run()
    await bench.interrupt(task)
    await bench.run()
    assert (await bench.row(task)).reason == "idle"
    await bench.post(task, "go on")
    await bench.run()
    assert texts(bench.provider.requests[1])[1] == (
        "= The person stopped the turn before this call was finished."
    )


@pytest.mark.parametrize("outcome", ["raises", "hangs", "nothing", "junk"])
@pytest.mark.parametrize("retry_safe", [False, True], ids=["once", "again"])
async def test_a_lost_call_is_looked_up_then_run_again_if_that_is_safe_else_unknown(
    outcome: str, retry_safe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Lost(Tool):
        flags = ToolFlags(retry_safe=retry_safe)

        async def recover(self, input: dict[str, Any], ctx: ToolContext) -> Any:
            asked.append("recover")
            if outcome == "raises":
                raise ValueError("boom")
            if outcome == "hangs":
                await anyio.sleep_forever()
            return object() if outcome == "junk" else None

    def act(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        asked.append("run")
        if len(asked) == 1:
            raise KeyboardInterrupt
        return text_output("acted")

    monkeypatch.setattr(calls, "RECOVER_SECONDS", 0.01)
    bench = Harness([Plugin(Lost("act", act))], [reply("", call("act")), "Done."])
    task = await bench.start("go")
    # Behind a claim that was lost, every start is durable.
    await bench.store.claim("lost")
    bench.clock.advance(31)
    with pytest.raises(KeyboardInterrupt):
        await bench.run()
    bench.clock.advance(31)
    bench.worker = bench.ids.new()
    await bench.run()
    said = texts(bench.provider.requests[1])[1]
    if retry_safe:
        assert asked == ["run", "recover", "run"]
        assert said == "= acted"
        assert [record.data.attempt for record in await bench.log(task, "tool_started")] == [1, 2]
    else:
        assert asked == ["run", "recover"]
        assert "the outcome of the call is unknown" in said
        assert ("boom" in said) == (outcome == "raises")


async def test_what_recover_finds_is_the_result_and_the_call_is_not_run_again() -> None:
    class Found(Tool):
        async def recover(self, input: dict[str, Any], ctx: ToolContext) -> Any:
            assert ctx.idempotency_key == keys[0]
            return text_output("it had happened")

    keys: list[str] = []

    def act(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        keys.append(ctx.idempotency_key)
        raise KeyboardInterrupt

    bench = Harness([Plugin(Found("act", act))], [reply("", call("act")), "Done."])
    await bench.start("go")
    with pytest.raises(KeyboardInterrupt):
        await bench.run()
    bench.clock.advance(31)
    bench.worker = bench.ids.new()
    await bench.run()
    assert len(keys) == 1
    assert texts(bench.provider.requests[1])[1] == "= it had happened"


async def test_a_lost_call_whose_tool_is_gone_has_an_unknown_outcome() -> None:
    def act(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        raise KeyboardInterrupt

    bench = Harness([Plugin(Tool("act", act))], [reply("", call("act"))])
    await bench.start("go")
    with pytest.raises(KeyboardInterrupt):
        await bench.run()
    bench.clock.advance(31)
    again = Harness([Plugin()], ["Done."], store=bench.store, clock=bench.clock, ids=bench.ids)
    await again.run()
    assert texts(again.provider.requests[0])[1] == (
        "= The worker was lost while act ran, so the outcome of the call is unknown."
        " The tool is no longer there."
    )


async def test_a_request_in_flight_completes_when_its_message_is_erased_and_its_reply_stays() -> None:
    bench = Harness()

    async def erases(request: ModelRequest) -> str:
        [received] = await bench.log(task, "received")
        await bench.erase(task, received.seq)
        return "I know your secret."

    bench.provider._script = [erases, "What secret?"]
    task = await bench.start("my secret")
    await bench.run()
    await bench.post(task, "tell me")
    await bench.run()
    said = texts(bench.provider.requests[1])
    assert "my secret" not in said
    assert "I know your secret." in said


async def test_an_answer_is_not_lost_when_the_call_that_goes_on_from_it_is_lost_and_a_gate_asks() -> None:
    outcomes: list[Any] = []

    class Going(Tool):
        flags = ToolFlags(retry_safe=True)

        async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
            outcomes.append(outcome.values)
            if len(outcomes) == 1:
                raise KeyboardInterrupt
            return text_output("went on")

    tool = Going("ask", lambda i, c: ToolOutput(park=Park(on="question")))
    gates: list[Gate] = []
    plugin = Plugin(tool, gate=lambda call: gates[0] if gates else None)
    bench = Harness([plugin], [reply("", call("ask")), "Done."])
    task = await bench.start("go")
    await bench.run()
    [parked] = await bench.log(task, "tool_parked")
    await bench.answer(task, parked.data.call, values={"colour": "red"})
    gates.append(Ask("sure?"))
    # Behind a claim that was lost, the start of the call is durable before it goes on.
    await bench.store.claim("lost")
    bench.clock.advance(31)
    with pytest.raises(KeyboardInterrupt):
        await bench.run()
    bench.clock.advance(31)
    bench.worker = bench.ids.new()
    await bench.run()
    assert outcomes == [{"colour": "red"}] * 2
    assert texts(bench.provider.requests[1])[1] == "= went on"
