"""Faults that people met in other agents, each with the smallest case that would show it here."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, ClassVar

import anyio
import msgspec
import pytest
from msgspec import Raw

from noeta.core.codec import MAX_NESTING
from noeta.core.errors import Fenced, NotStorable, ProviderError, RequestStale
from noeta.core.extension import Extension
from noeta.core.items import Entry, NewEntry, Post, encode_body
from noeta.core.log import Append
from noeta.core.messages import Message, Text, ToolResult, ToolUse, user
from noeta.core.parts import Reminder
from noeta.core.ports import ModelRequest
from noeta.core.records import Answer, Compacted, Recorded
from noeta.core.tool import ToolContext, ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply
from noeta.toolkit.errors import Duplicate, TaskOver
from noeta.toolkit.questions import ask, read_answer

pytestmark = pytest.mark.anyio


class Tool:
    description, clearable = "A tool.", False
    input_schema: ClassVar[Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}

    def __init__(
        self, name: str, run: Callable[..., Any], *, read_only: bool = False, schema: Any = None, **flags: Any
    ) -> None:
        self.name, self._run, self.read_only, self.flags = name, run, read_only, ToolFlags(**flags)
        if schema:
            self.input_schema = schema  # type: ignore[misc]

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output = self._run(input, ctx)
        return await output if hasattr(output, "__await__") else output


class Asks(Tool):
    """Asks a person, and counts how often it was run and resumed."""

    def __init__(self) -> None:
        super().__init__("ask", self._asks)
        self.ran = self.resumed = 0

    def _asks(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        self.ran += 1
        return ToolOutput(park=ask({"question": f"Which {input['n']}?"}))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        self.resumed += 1
        return text_output(str(read_answer(outcome, {"question": f"Which {input['n']}?"})))


class Tools(Extension):
    name = "tools"

    def __init__(self, *tools: Any) -> None:
        self._tools = tools

    def tools(self, view: TaskView) -> Any:
        return self._tools


def results(request: ModelRequest) -> list[str]:
    blocks = [block for message in request.messages for block in message.content]
    return [b.content[0].text for b in blocks if isinstance(b, ToolResult)]  # type: ignore[union-attr]


# ---- calls and their results


async def test_a_person_who_stops_the_second_of_three_calls_can_go_on() -> None:
    async def second(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        if input["n"] != 2:
            return text_output(f"done {input['n']}")
        await bench.interrupt(task)
        runner.halt()
        await anyio.sleep_forever()
        raise AssertionError

    bench = Harness([Tools(Tool("step", second))])
    bench.provider._script = [reply("", *(call("step", n=n) for n in (1, 2, 3))), "Fine."]
    task = await bench.start("go")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim)
    await runner.run()
    await bench.post(task, "go on")
    await bench.run()
    first, *stopped = results(bench.provider.requests[1])
    assert first == "done 1"
    assert stopped == ["The person stopped the turn before this call was finished."] * 2


async def test_the_result_of_a_worker_that_was_taken_for_dead_is_refused() -> None:
    async def slow(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        if not bench.clock.monotonic():
            # Meanwhile the lease runs out, and another worker settles the call.
            bench.clock.advance(31)
            world: Any = {"store": bench.store, "clock": bench.clock, "ids": bench.ids}
            await Harness([Tools(Tool("slow", slow))], ["Done."], **world).run()
        return text_output("late")

    bench = Harness([Tools(Tool("slow", slow))], [reply("", call("slow"))])
    task = await bench.start("go")
    with pytest.raises(Fenced):
        await bench.run()
    [finished] = await bench.log(task, "tool_finished")
    assert "unknown" in finished.message.content[0].content[0].text
    assert (await bench.row(task)).reason == "idle"


async def test_answering_one_of_six_calls_that_wait_runs_none_of_the_others_again() -> None:
    asks = Asks()
    bench = Harness([Tools(asks)], [reply("", *(call("ask", n=n) for n in range(6)))])
    task = await bench.start("go")
    await bench.run()
    first, *_ = await bench.log(task, "tool_parked")
    await bench.answer(task, first.data.call, values={"Which 0?": "a"})
    await bench.run()
    assert (asks.ran, asks.resumed) == (6, 1)
    assert (await bench.row(task)).reason == "question"
    assert len((await bench.state(task)).open_calls) == 5


async def test_three_questions_are_answered_in_any_order() -> None:
    asks = Asks()
    bench = Harness([Tools(asks)], [reply("", *(call("ask", n=n) for n in range(3))), "Done."])
    task = await bench.start("go")
    await bench.run()
    parked = await bench.log(task, "tool_parked")
    for n in (2, 0, 1):
        await bench.answer(task, parked[n].data.call, values={f"Which {n}?": f"answer {n}"})
        await bench.run()
    assert results(bench.provider.requests[1]) == ["answer 0", "answer 1", "answer 2"]
    assert (asks.ran, asks.resumed) == (3, 3)


async def test_one_missing_file_costs_four_other_reads_nothing() -> None:
    def read(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        if input["n"] == 2:
            raise FileNotFoundError("no such file")
        return text_output(f"file {input['n']}", n=input["n"])

    tool = Tool("read", read, read_only=True)
    bench = Harness([Tools(tool)], [reply("", *(call("read", n=n) for n in range(5))), "Done."])
    task = await bench.start("go")
    await bench.run()
    said = results(bench.provider.requests[1])
    assert [said[n] for n in (0, 1, 3, 4)] == [f"file {n}" for n in (0, 1, 3, 4)]
    assert "FileNotFoundError: no such file" in said[2]
    # Nor does a result come with what belongs to another one.
    for record in await bench.log(task, "tool_finished"):
        place = int(record.data.call.split("_")[1])
        assert record.data.meta == ({} if place == 2 else {"n": place})


async def test_a_call_without_its_input_is_an_error_and_not_left_open() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = Tool("read", lambda input, ctx: text_output("read"), schema=schema)
    bench = Harness([Tools(tool)], [reply("", call("read")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert "$.path: it is required and missing" in results(bench.provider.requests[1])[0]
    assert (await bench.state(task)).open_calls == []


async def test_a_provider_that_uses_an_id_again_gives_two_calls() -> None:
    def use(n: int) -> Message:
        return Message(
            role="assistant", content=[ToolUse(id="", name="a", input={"n": n}, provider_id="id1")]
        )

    bench = Harness([Tools(Tool("a", lambda input, ctx: text_output(f"ran {input['n']}")))])
    bench.provider._script = [use(1), use(2), "Done."]
    await bench.start("go")
    await bench.run()
    request = bench.provider.requests[2]
    assert results(request) == ["ran 1", "ran 2"]
    ids = [use.id for message in request.messages for use in message.calls]
    assert len(set(ids)) == 2


# ---- turns that fail, and the one after


async def test_a_stream_that_is_cut_for_good_leaves_a_task_that_goes_on() -> None:
    bench = Harness(script=[ProviderError("content", "cut"), "Fine."])
    task = await bench.start("go")
    await bench.run()
    await bench.post(task, "go on")
    await bench.run()
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Fine."]


async def test_an_exception_in_a_tool_leaves_a_task_that_goes_on() -> None:
    bench = Harness([Tools(Tool("a", lambda input, ctx: 1 / 0))], [reply("", call("a")), "Sorry.", "Fine."])
    task = await bench.start("go")
    await bench.run()
    await bench.post(task, "go on")
    await bench.run()
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Sorry.", "Fine."]


async def test_reminders_of_a_call_that_failed_stay_so_they_look_at_their_own_state() -> None:
    class Reminds(Extension):
        name = "reminds"

        def initial_state(self) -> int:
            return 0

        def reduce(self, state: int, kind: str, data: Any) -> int:
            return state + 1

        async def reminders(self, view: TaskView) -> Any:
            return [] if view.ext_state("reminds") else [Reminder("Be brief.")]

    bench = Harness([Reminds()])
    bench.provider._script = [ProviderError("overloaded", "busy", retry_at=bench.clock.now() + 60), "Fine."]
    await bench.start("go")
    await bench.run()
    bench.clock.advance(61)
    await bench.run()
    assert [m.text for m in bench.provider.requests[1].messages].count("Be brief.") == 1


# ---- the log


async def test_events_with_pauses_of_any_length_leave_results_behind_their_calls() -> None:
    chance = Random(5)

    class Slow(Extension):
        name = "slow"

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            for _ in range(chance.randrange(5)):
                await anyio.lowlevel.checkpoint()
            view.record("slow", "heard", recorded.seq)

    tools = Tools(Tool("read", lambda input, ctx: text_output("x"), read_only=True))
    bench = Harness([tools, Slow()], [reply("", *(call("read", n=n) for n in range(4)))] * 3 + ["Done."])
    task = await bench.start("go")
    await bench.run()
    seen: set[str] = set()
    for record in await bench.log(task):
        if record.kind == "model_replied":
            seen |= {ref.id for ref in record.data.calls}
        if record.kind == "tool_finished":
            assert record.data.call in seen
    heard = [record.data for record in await bench.log(task, "heard")]
    assert heard == sorted(heard)


async def test_two_appends_in_the_same_instant_are_told_apart_by_their_place_alone() -> None:
    bench = Harness(script=["Hello.", "Fine."])
    task = await bench.start("hi")
    await bench.run()
    await bench.post(task, "more")
    await bench.run()
    assert len({record.at for record in await bench.log(task)}) == 1
    assert (await bench.row(task)).reason == "idle"


async def test_one_damaged_record_of_a_plugin_hides_none_of_the_others() -> None:
    class Notes(Extension):
        name = "notes"
        record_types: ClassVar[dict[str, Any]] = {"noted": int}

        def initial_state(self) -> int:
            return 0

        def reduce(self, state: int, kind: str, data: Any) -> int:
            return state + int(data)

    bench = Harness([Notes()], ["Hello."])
    task = await bench.start("hi")
    for n, data in enumerate([b"1", b'"no number"', b"2"]):
        entry = Entry(extension="notes", kind="noted", data=Raw(data))
        await bench.store.post(Post(task=task, key=f"k{n}", kind="entry", body=encode_body(entry)))
    await bench.run()
    state = await bench.state(task)
    assert state.states["notes"] == 3
    assert (await bench.row(task)).reason == "idle"


def nested(deep: int) -> list[Any]:
    return [nested(deep - 1)] if deep else []


@pytest.mark.parametrize("deep", range(MAX_NESTING - 5, MAX_NESTING + 1))
async def test_an_entry_is_posted_as_deep_as_it_can_be_recorded_and_no_deeper(deep: int) -> None:
    bench = Harness([], ["Hello."])
    task = await bench.start("hi")
    try:
        await bench.post(task, NewEntry("notes", "noted", nested(deep)))
    except NotStorable:
        assert deep > MAX_NESTING - 3
    await bench.run()
    assert [record.data for record in await bench.log(task, "noted")] == [nested(deep)] * (
        deep <= MAX_NESTING - 3
    )
    assert (await bench.row(task)).reason == "idle"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("entry", Entry(extension="core", kind="notice", data=Raw(b'{"text": "hi"}'))),
        ("entry", Entry(extension="a.b", kind="noted")),
        ("entry", Entry(extension="notes", kind="noted", data=Raw(msgspec.json.encode(nested(72))))),
        ("answer", Answer(call="c", park=1, values={"deep": nested(72)})),
    ],
)
async def test_an_item_that_no_log_can_hold_is_recorded_without_it(kind: str, body: Any) -> None:
    bench = Harness([], ["Hello."])
    task = await bench.start("hi")
    await bench.store.post(Post(task=task, key="k", kind=kind, body=encode_body(body)))
    await bench.run()
    assert [record.data.data for record in await bench.log(task, "received")] == [Raw(b"null")] * 2
    assert (await bench.row(task)).reason == "idle"


# ---- compaction


async def test_signed_thinking_is_kept_whole_or_dropped_whole_by_a_compaction() -> None:
    class Compacts(Extension):
        name = "compacts"

        async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
            if len(view.state.conversation) == 5:
                last = [item.seq for item in view.state.conversation][1:]
                view.compacted(Compacted(through=last[-1], keep=last, summary=[user("so far")]))
                raise RequestStale
            return request

    tools = Tools(Tool("a", lambda input, ctx: text_output("x")))
    script = [reply("", call("a"), thinking="I think."), "Well.", "Done."]
    bench = Harness([tools, Compacts()], script)
    task = await bench.start("go")
    await bench.run()
    await bench.post(task, "more")
    await bench.run()
    # The scripted model refuses thinking that is not what it signed.
    bench.provider.assert_done()
    assert bench.provider.requests[2].messages[0].text == "so far"


async def test_a_compaction_that_is_interrupted_did_nothing() -> None:
    class Compacts(Extension):
        name = "compacts"
        cut = False

        async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
            if len(view.state.conversation) == 3 and not self.cut:
                self.cut = True
                assert view.complete
                await bench.interrupt(task)
                runner.halt()
                await view.complete(ModelRequest(model="small", messages=[user("sum it up")]))
                view.compacted(Compacted(through=view.state.seq, summary=[user("so far")]))
            return request

    tools = Tools(Tool("a", lambda input, ctx: text_output("ran")))
    bench = Harness([tools, Compacts()], [reply("", call("a")), "Fine."])
    task = await bench.start("go")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim)
    await runner.run()
    assert await bench.log(task, "compacted") == []
    await bench.post(task, "go on")
    await bench.run()
    assert [m.text for m in bench.provider.requests[-1].messages] == ["go", "", "", "go on"]


# ---- waiting


async def test_sixteen_children_that_end_while_their_parent_is_at_work_are_all_heard_of() -> None:
    def spawn(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        for n in range(16):
            ctx.spawn("agent", f"part {n}", background=True)
        return text_output("spawned")

    async def work(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        # Other workers run the children to their ends meanwhile.
        for _ in range(4):
            await Harness(
                [Tools(Tool("spawn", spawn), Tool("work", work))],
                store=bench.store,
                clock=bench.clock,
                provider=bench.provider,
                ids=bench.ids,
            ).run()
        return text_output("worked")

    def answer(request: ModelRequest) -> Any:
        if request.messages[0].text != "go":
            return "part done"
        said = sum(message.role == "assistant" for message in request.messages)
        return [reply("", call("spawn")), reply("", call("work")), "All done."][said]

    bench = Harness([Tools(Tool("spawn", spawn), Tool("work", work))])
    bench.provider._respond = answer
    task = await bench.start("go")
    await bench.run()
    ends = [record.data.child for record in await bench.log(task, "child_ended")]
    assert len(set(ends)) == len(ends) == 16
    assert (await bench.state(task)).live_children == []


async def test_the_first_post_under_a_key_stands_whatever_a_second_one_says() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start()
    await bench.post(task, "first", key="k")
    with pytest.raises(Duplicate):
        await bench.post(task, "second", key="k")
    await bench.run()
    with pytest.raises(Duplicate):
        await bench.post(task, "third", key="k")
    assert [m.text for m in bench.provider.requests[0].messages] == ["first"]


async def test_a_post_to_a_task_that_is_over_is_refused() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start("hi", one_shot=True)
    await bench.run()
    with pytest.raises(TaskOver):
        await bench.post(task, "more")


async def test_an_answer_that_comes_after_the_call_was_withdrawn_has_no_effect() -> None:
    bench = Harness([Tools(Asks())], [reply("", call("ask", n=1)), "Fine."])
    task = await bench.start("go")
    await bench.run()
    [parked] = await bench.log(task, "tool_parked")
    await bench.interrupt(task)
    await bench.answer(task, parked.data.call, values={"Which 1?": "a"})
    await bench.run()
    await bench.post(task, "go on")
    await bench.run()
    assert len(await bench.log(task, "tool_finished")) == 1
    assert results(bench.provider.requests[1]) == ["None"]


async def test_a_timer_that_is_due_while_its_task_is_kept_fires() -> None:
    def timer(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        ctx.set_timer("soon", bench.clock.now() + 5, "Time is up.")
        return text_output("set")

    bench = Harness([Tools(Tool("timer", timer))], [reply("", call("timer")), "Waiting.", "I heard it."])
    task = await bench.start("go")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim, kept=lambda: len(bench.provider.requests) < 3)

    async def wake(seconds: float) -> bool:
        bench.clock.advance(1)
        await bench.store.fire_timers()
        return True

    runner.work.outside.wake = wake
    await runner.run()
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Waiting.", "I heard it."]


@pytest.mark.parametrize("size", [200_000, 5_000_000])
async def test_a_large_message_is_kept_and_the_log_stays_small(size: int) -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start(Message(role="user", content=[Text(text="x" * size)]))
    await bench.run()
    assert len(bench.provider.requests[0].messages[0].text) == size
    assert sum(len(line.data) for line in await bench.store.read(task)) < 20_000


async def test_a_crash_between_the_halves_of_a_write_leaves_nothing_of_it() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start("hi")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim)
    whole = runner.work.outside.log.append

    async def torn(claim: Any, append: Append) -> Any:
        runner.work.outside.log.append = whole  # type: ignore[method-assign]
        raise OSError("the disk is gone")

    runner.work.outside.log.append = torn  # type: ignore[method-assign]
    with pytest.raises(OSError, match="the disk is gone"):
        await runner.run()
    assert len(await bench.log(task)) == 1
    await bench.store.release(claim)
    await bench.run()
    log = [record.kind for record in await bench.log(task)]
    assert log.count("received") == 1
