"""Why a call went as it did, in a struct and in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import pytest

from noeta.core import records as r
from noeta.core.extension import Extension
from noeta.core.gates import Allow, Ask, Deny, Gate, Rewrite
from noeta.core.log import NewTask
from noeta.core.messages import ToolUse
from noeta.core.tool import ToolContext, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.host.explain import Why, why
from noeta.testing.harness import Harness
from noeta.testing.log_writer import LogWriter
from noeta.testing.scripted_provider import call, reply
from noeta.toolkit.errors import UnknownCall, UnknownTask
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.questions import Park, Question, ask, read_answer

pytestmark = pytest.mark.anyio
AT = "at 2023-11-14 22:13:20 UTC"


class Tool:
    description = "A tool."
    clearable = False
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def __init__(self, name: str, *, read_only: bool = False) -> None:
        self.name, self.read_only = name, read_only

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return text_output(f"ran {input}")


class Asking(Tool):
    QUESTION: ClassVar[Question] = {"question": "Which colour?"}

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return ToolOutput(park=ask(self.QUESTION))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output(f"colour: {read_answer(outcome, self.QUESTION)}")


class Parent(Tool):
    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return ToolOutput(park=Park(on="children", keys=[ctx.spawn("agent", "a part")]))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output("all done")


class Rules(Extension):
    """Offers tools, and answers for a call what a test says."""

    name = "rules"

    def __init__(self, gate: Callable[[ToolUse], Gate | None] = lambda call: None) -> None:
        self.gate = gate

    def tools(self, view: TaskView) -> list[Tool]:
        return [Tool("act"), Tool("look", read_only=True), Asking("ask"), Parent("spawn")]

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        return self.gate(call)


class Second(Rules):
    name = "second"

    def tools(self, view: TaskView) -> list[Tool]:
        return []


async def asked(bench: Harness, *names: str) -> tuple[str, list[str]]:
    """A task that has called these tools, and the ids of the calls."""
    bench.provider._script = [reply("", *(call(name, n=1) for name in names))]
    bench.provider._respond = lambda request: "Done."
    task = await bench.start("go")
    await bench.run()
    [replied, *_] = await bench.log(task, "model_replied")
    return task, [ref.id for ref in replied.data.calls]


async def only(bench: Harness, name: str) -> tuple[Why, str, str]:
    task, [id] = await asked(bench, name)
    return await why(bench.store, task, id), task, id


async def test_a_refusal_says_which_plugin_and_which_rule() -> None:
    first = Rules(lambda call: Allow(source="allow act, rules.toml:1"))
    second = Second(lambda call: Deny("Not at night.", source="deny act, night.toml:3"))
    bench = Harness([first, second])
    found, task, id = await only(bench, "act")
    assert (found.task, found.call, found.tool, found.input) == (task, id, "act", {"n": 1})
    assert (found.status, found.attempts, found.approved, found.rewrites) == ("failed", 0, None, [])
    deny = r.Opinion(
        by="second", verdict="deny", reason="Not at night.", source="deny act, night.toml:3", detail={}
    )
    assert found.decided == deny
    [gated, finished] = found.records
    assert [opinion.by for opinion in gated.data.opinions] == ["rules", "second"]
    assert finished.kind == "tool_finished"
    assert found.sentences == [
        f'Call {id} of act, made {AT}: {{"n":1}}',
        "Plugin 'rules' says allow by allow act, rules.toml:1.",
        "Plugin 'second' decides deny by deny act, night.toml:3: Not at night.",
        f"It ends {AT} with an error: Not at night.",
    ]


async def test_an_approval_names_the_person_and_the_time() -> None:
    bench = Harness([Rules(lambda call: Ask("May I?", source="ask act"))])
    found, task, id = await only(bench, "act")
    assert (found.status, found.approved) == ("waiting", None)
    assert found.sentences[1:] == [
        "Plugin 'rules' decides ask 'May I?' by ask act.",
        "It waits for a person's approval: May I?",
        "It has no result yet.",
    ]
    bench.clock.advance(60)
    await bench.answer(task, id, verdict="allow", by="ann", reason="go ahead")
    await bench.run()
    found = await why(bench.store, task, id)
    assert found.approved is not None
    assert (found.status, found.approved.by, found.approved.at) == ("done", "ann", bench.clock.now())
    assert (found.attempts, found.decided) == (1, None)
    assert found.sentences[3:] == [
        "ann allows it at 2023-11-14 22:14:20 UTC: go ahead",
        "Plugin 'rules' says ask 'May I?' by ask act.",
        "It starts at 2023-11-14 22:14:20 UTC, attempt 1.",
        "It ends at 2023-11-14 22:14:20 UTC with a result: ran {'n': 1}",
    ]


async def test_a_person_who_refuses_has_approved_nothing() -> None:
    bench = Harness([Rules(lambda call: Ask("May I?"))])
    _, task, id = await only(bench, "act")
    await bench.answer(task, id, verdict="deny", by="ann")
    await bench.run()
    found = await why(bench.store, task, id)
    assert (found.status, found.approved) == ("failed", None)
    assert f"ann refuses it {AT}." in found.sentences


async def test_an_answer_that_came_too_late_says_so() -> None:
    bench = Harness([Rules(lambda call: Ask("May I?"))])
    _, task, id = await only(bench, "act")
    await bench.interrupt(task)
    await bench.run()
    await bench.post(task, "go on")
    await bench.run()
    await bench.answer(task, id, verdict="allow", by="bob")
    await bench.run()
    found = await why(bench.store, task, id)
    assert (found.status, found.approved) == ("failed", None)
    assert found.sentences[-2:] == [f"bob allows it {AT}.", "That came too late and had no effect."]


async def test_rewrites_are_told_in_order() -> None:
    def gate(call: ToolUse) -> Gate | None:
        return Rewrite({"n": 2}, source="twice") if call.input == {"n": 1} else None

    second = Second(lambda call: Rewrite({"n": 3}, name="look") if call.input == {"n": 2} else None)
    found, _, _ = await only(Harness([Rules(gate), second]), "act")
    assert [(rewrite.by, rewrite.detail["input"]) for rewrite in found.rewrites] == [
        ("rules", {"n": 2}),
        ("second", {"n": 3}),
    ]
    assert found.sentences[1:3] == [
        "Plugin 'rules' decides rewrite to the same tool {\"n\":2} by twice.",
        "Plugin 'second' decides rewrite to look {\"n\":3}.",
    ]
    assert (found.tool, found.input, found.status) == ("act", {"n": 1}, "done")


async def test_a_question_and_children_are_waits_of_the_call() -> None:
    bench = Harness([Rules()])
    task, ids = await asked(bench, "ask", "spawn")
    await bench.answer(task, ids[0], values={"Which colour?": "red"}, by="ann")
    await bench.run()
    question, children = [await why(bench.store, task, id) for id in ids]
    [child] = await bench.children(task)
    assert f'ann answers {AT}: {{"Which colour?":"red"}}' in question.sentences
    assert [record.kind for record in question.records] == [
        *("tool_started", "tool_parked", "answered", "tool_started", "tool_finished")
    ]
    assert question.approved is None
    assert f"It spawns the task {child} of agent agent." in children.sentences
    assert f"It waits for the tasks {child}." in children.sentences
    assert f"The task {child} ends: done." in children.sentences
    assert (question.status, children.status) == ("done", "done")


async def test_a_call_that_nobody_minds_says_so() -> None:
    found, _, _ = await only(Harness([Rules()]), "nothing")
    assert found.sentences[1] == "No plugin had an opinion about it."
    assert "There is no tool 'nothing'" in found.sentences[2]


async def test_each_attempt_is_told() -> None:
    log = LogWriter()
    log.say("go")
    [id] = log.reply("", calls=1)
    log.put(r.ToolStarted(call=id))
    log.put(r.ToolStarted(call=id, attempt=2))
    store = await stored(log)
    found = await why(store, "t", id)
    assert (found.attempts, found.status) == (2, "open")
    assert [sentence[-10:] for sentence in found.sentences[2:4]] == ["attempt 1.", "attempt 2."]


# ---- failures


async def stored(log: LogWriter) -> InMemoryStore:
    store = InMemoryStore()
    await store.create(NewTask(task="t", agent="a", root="t", lines=log.lines, blobs=log.blobs))
    return store


class Fails(Extension):
    """Fails at a hook, for the calls of one tool."""

    def __init__(self, name: str, hook: str, tool: str, policy: str = "closed") -> None:
        self.name, self._hook, self._tool = name, hook, tool
        self.on_error = {hook: policy}

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        return self._fail("before_tool", call)

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        self._fail("after_tool", call)
        return output

    def _fail(self, hook: str, call: ToolUse) -> None:
        if (hook, call.name) == (self._hook, self._tool):
            raise ValueError("boom")


@pytest.mark.parametrize("hook", ["before_tool", "after_tool"])
async def test_a_failure_is_told_of_the_call_it_was_about_and_of_no_other(hook: str) -> None:
    bench = Harness([Rules(), Fails("fails", hook, "act")])
    task, ids = await asked(bench, "look", "act", "ask")
    look, act, other = [await why(bench.store, task, id) for id in ids]
    assert [record.data.plugin for record in act.records if record.kind == "plugin_failed"] == ["fails"]
    assert f"Plugin 'fails' fails in {hook}, policy closed: ValueError: boom" in act.sentences
    for found in (look, act, other):
        assert found.unsure == []
    for found in (look, other):
        assert all(record.kind != "plugin_failed" for record in found.records)


async def test_a_failure_that_parks_the_task_may_be_about_any_open_call() -> None:
    bench = Harness([Rules(), Fails("fails", "before_tool", "act", "park")])
    bench.provider._script = [reply("", call("look"), call("act"))]
    task = await bench.start("go")
    await bench.run()
    [replied] = await bench.log(task, "model_replied")
    for ref in replied.data.calls:
        found = await why(bench.store, task, ref.id)
        [failed] = [record for record in found.records if record.kind == "plugin_failed"]
        assert found.unsure == [failed.seq]
        assert "That may have been about another call of the same reply." in found.sentences


async def test_a_failure_elsewhere_is_not_the_calls() -> None:
    log = LogWriter()
    log.say("go")
    [id] = log.reply("", calls=1)
    log.put(r.PluginFailed(plugin="p", hook="on_event", error="E", policy="open"))
    log.put(r.PluginFailed(plugin="p", hook="inherit", error="E", policy="closed"))
    log.finish(id)
    log.reply("Done.")
    log.put(r.PluginFailed(plugin="p", hook="inherit", error="E", policy="closed"))
    found = await why(await stored(log), "t", id)
    assert [record.seq for record in found.records] == [5, 6]
    assert found.unsure == [5]


# ---- around


async def test_a_fork_tells_of_the_calls_of_its_history() -> None:
    bench = Harness([Rules(lambda call: Ask("May I?"))])
    _, task, id = await only(bench, "act")
    fork = await bench.start(history_from=task, history_through=(await bench.row(task)).last_seq)
    await bench.post(fork, "go on")
    await bench.run()
    assert (await why(bench.store, fork, id)).status == "failed"
    assert (await why(bench.store, task, id)).status == "waiting"


async def test_a_call_that_is_not_there_is_refused_with_those_that_may_be_meant() -> None:
    bench = Harness([Rules()])
    task, ids = await asked(bench, *["look"] * 7)
    with pytest.raises(UnknownCall, match=ids[3]) as error:
        await why(bench.store, task, ids[3][:-1])
    assert list(error.value.near) == [ids[3]]
    with pytest.raises(UnknownCall) as error:
        await why(bench.store, task, ids[0].replace("_0_", "-0_"))
    assert error.value.near[0] == ids[0]
    with pytest.raises(UnknownCall) as error:
        await why(bench.store, task, "x")
    assert list(error.value.near) == ids[-5:]
    with pytest.raises(UnknownCall, match="It has made no call yet"):
        await why(bench.store, await bench.start(), "x")
    with pytest.raises(UnknownTask):
        await why(bench.store, "nobody", "x")


async def test_what_is_said_goes_into_json() -> None:
    bench = Harness([Rules(lambda call: Deny("No.", source="here"))])
    found, _, id = await only(bench, "act")
    plain = msgspec.json.decode(msgspec.json.encode(found))
    assert (plain["call"], plain["decided"]["source"]) == (id, "here")
    assert [record["kind"] for record in plain["records"]] == ["gated", "tool_finished"]


async def test_long_inputs_are_cut_and_no_time_is_too_strange() -> None:
    log = LogWriter(at=1e300)
    log.say("go")
    [id] = log.reply("", calls=1)
    log.finish(id, "x" * 1_000)
    found = await why(await stored(log), "t", id)
    assert found.sentences[0].startswith(f"Call {id} of echo, made at 1e+300")
    assert found.sentences[-1].endswith("x...")
    assert len(found.sentences[-1]) < 400
