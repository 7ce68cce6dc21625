"""The crash kit passes what is right wherever it dies, and says what is wrong of what is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest

from noeta import Ask, Extension, Gate, Message, Recorded, Reminder, TaskView, ToolContext, ToolUse
from noeta.core.messages import Text, user
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Compacted
from noeta.core.tool import Park, ToolFlags, ToolOutput, text_output
from noeta.testing.crash import CrashBench, Outside, check_crashes
from noeta.testing.scripted_provider import call, reply
from noeta.toolkit.outbox import Outbox
from noeta.toolkit.questions import Question, ask, read_answer

pytestmark = pytest.mark.anyio


class Tool:
    description = "A tool."
    clearable = False

    def __init__(self, name: str, run: Callable[..., Any], *, read_only: bool = False, **flags: Any) -> None:
        self.name, self._run, self.read_only = name, run, read_only
        self.input_schema = {"type": "object"}
        self.flags = ToolFlags(**flags)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output: ToolOutput = self._run(input, ctx)
        return output


class Tools(Extension):
    name = "tools"

    def __init__(self, *tools: Any) -> None:
        self._tools = tools

    def tools(self, view: TaskView) -> Any:
        return self._tools


def acting(outside: Outside, name: str = "send", **flags: Any) -> Tool:
    """Acts outside under the call's key, as a tool should."""

    def run(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        outside.act(ctx.idempotency_key, input)
        return text_output(f"sent {input}")

    return Tool(name, run, **flags)


GO = [reply("", call("send", to="ann"), call("send", to="bob")), "Done."]


# ---- what is right


async def test_a_turn_without_plugins_is_the_same_wherever_it_dies() -> None:
    assert await check_crashes(lambda outside: [], ["Hello."], "hi") == 7


async def test_a_tool_that_acts_under_its_key_acts_once() -> None:
    await check_crashes(lambda outside: [Tools(acting(outside))], GO, "go")


async def test_a_retry_safe_tool_acts_once_under_the_key_of_its_call_wherever_the_worker_dies() -> None:
    await check_crashes(lambda outside: [Tools(acting(outside, retry_safe=True))], GO, "go")


@pytest.mark.parametrize("flags", [{"retry_safe": True}, {"read_only": True}], ids=str)
async def test_a_tool_that_may_run_twice_acts_under_a_key_of_what_it_does(flags: dict[str, Any]) -> None:
    def run(outside: Outside, input: dict[str, Any]) -> ToolOutput:
        outside.act(input["to"], input)
        return text_output("sent")

    await check_crashes(
        lambda outside: [Tools(Tool("send", lambda input, ctx: run(outside, input), **flags))], GO, "go"
    )


async def test_a_lost_call_is_looked_up_when_its_tool_can_recover_it() -> None:
    class Recovering(Tool):
        def __init__(self, outside: Outside) -> None:
            super().__init__("send", acting(outside)._run)
            self._outside = outside

        async def recover(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput | None:
            sent = ctx.idempotency_key in dict(self._outside.acts)
            return text_output(f"sent {input}") if sent else await self.run(input, ctx)

    await check_crashes(lambda outside: [Tools(Recovering(outside))], GO, "go")


class Asks(Tool):
    QUESTION: ClassVar[Question] = {"question": "Which colour?"}

    def __init__(self) -> None:
        super().__init__("ask", lambda input, ctx: ToolOutput(park=ask(self.QUESTION)), retry_safe=True)

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output(f"colour: {read_answer(outcome, self.QUESTION)}")


async def answer_everything(bench: CrashBench, task: str) -> None:
    """Say yes and red until nothing waits for a person."""
    await bench.run()
    while (await bench.row(task)).reason == "question":
        for waiting in (await bench.state(task)).open_calls:
            said = {"verdict": "allow"} if waiting.on == "approval" else {"values": {"Which colour?": "red"}}
            await bench.answer(task, waiting.id, waiting.park, by="ann", **said)
        await bench.run()


async def test_questions_and_approvals_that_are_answered_after_a_restart() -> None:
    class Gates(Extension):
        name = "gates"

        async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
            return Ask("sure?")

    script = [reply("", call("ask"), call("send"), call("ask")), "Done."]
    made = lambda outside: [Tools(Asks(), acting(outside)), Gates()]  # noqa: E731
    await check_crashes(made, script, "go", drive=answer_everything)


class Parent(Tool):
    def __init__(self) -> None:
        super().__init__("spawn", self._spawn, retry_safe=True)

    @staticmethod
    def _spawn(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return ToolOutput(park=Park(on="children", keys=[ctx.spawn("agent", p) for p in input["parts"]]))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output(" ".join(sorted(end.text for end in (outcome or {}).values())))


async def test_children_that_act_are_made_once_and_end_once() -> None:
    script = {
        "go": [reply("", call("spawn", parts=["one", "two"])), "Done."],
        "one": [reply("", call("send", part=1)), "first"],
        "two": ["second"],
    }
    await check_crashes(lambda outside: [Tools(Parent(), acting(outside))], script, "go")


async def test_a_timer_fires_once() -> None:
    def plugins(outside: Outside) -> Sequence[Extension]:
        def run(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
            ctx.set_timer("later", 1_700_000_100.0, "time is up")
            return text_output("set")

        return [Tools(Tool("wake", run, read_only=True))]

    async def drive(bench: CrashBench, task: str) -> None:
        await bench.run()
        bench.clock.advance(200)
        await bench.run()

    await check_crashes(plugins, [reply("", call("wake")), "Hello.", "Yes."], "hi", drive=drive)


class Mail(Outbox):
    name = "mail"

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def deliver(self, view: TaskView, key: str, body: Any) -> None:
        self._outside.act(key, body)

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        self.stage(view, {"about": call.name, "text": output.text})
        return output


async def test_what_an_outbox_sends_is_sent_once() -> None:
    read = Tool("send", lambda input, ctx: text_output(input["to"]), read_only=True)
    waiting = lambda name, state: name == "mail" and state.waiting  # noqa: E731
    await check_crashes(lambda outside: [Tools(read), Mail(outside)], GO, "go", seen=waiting)


async def test_a_plugin_that_reminds_compacts_and_thinks() -> None:
    class Busy(Extension):
        name = "busy"

        def initial_state(self) -> int:
            return 0

        def reduce(self, state: int, kind: str, data: Any) -> int:
            return state + 1

        async def reminders(self, view: TaskView) -> list[Reminder]:
            return [] if view.ext_state("busy") else [Reminder("be brief", kind="reminded")]

        async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
            from noeta.core.errors import RequestStale

            if len(request.messages) > 3:
                assert view.complete
                said = await view.complete(ModelRequest(model="small", messages=[user("sum up")]))
                view.compacted(Compacted(through=view.state.seq, summary=[user(said.message.text)]))
                raise RequestStale
            return request

        async def on_empty_reply(self, view: TaskView, response: ModelResponse) -> Message:
            return user("go on")

    async def drive(bench: CrashBench, task: str) -> None:
        await bench.run()
        await bench.post(task, "more")
        await bench.run()

    empty = ModelResponse(message=Message(role="assistant", content=[Text(text=" ")]))
    read = Tool("send", lambda input, ctx: text_output("sent"), read_only=True)
    await check_crashes(
        lambda outside: [Tools(read), Busy()], [*GO[:1], "Done.", empty, "Well."], "go", drive=drive
    )


async def test_interrupts_cancels_and_erasures() -> None:
    async def drive(bench: CrashBench, task: str) -> None:
        await bench.run()
        await bench.interrupt(task)
        await bench.post(task, "my secret")
        await bench.run()
        secret = [record for record in await bench.log(task, "received") if record.message][-1]
        await bench.erase(task, secret.seq)
        await bench.run()
        await bench.cancel(task)
        await bench.run()

    await check_crashes(
        lambda outside: [Tools(Asks(), acting(outside))],
        [reply("", call("ask"), call("send")), "Noted."],
        "go",
        drive=drive,
    )


# ---- what is wrong


class Remembers(Extension):
    """Keeps on itself what it was told."""

    name = "remembers"

    def __init__(self) -> None:
        self._seen: list[str] = []

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        self._seen.append(call.id)
        return None

    async def reminders(self, view: TaskView) -> list[Reminder]:
        return [Reminder(f"{len(self._seen)} calls so far")]


class ActsAtOnce(Extension):
    """Acts in a hook under a key it makes up, before anything of it is in the log."""

    name = "acts"

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        self._outside.act(view.new_id(), call.name)
        return output


class ActsOnEvent(ActsAtOnce):
    """Acts when told of an event, which a death drops."""

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        return output

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        if recorded.kind == "turn_done":
            self._outside.act(f"{view.task_id}:{recorded.seq}", "mail")


class CountsClaims(Extension):
    """Records something each time a worker comes."""

    name = "counts"

    def initial_state(self) -> int:
        return 0

    def reduce(self, state: int, kind: str, data: Any) -> int:
        return state + 1

    async def on_start(self, view: TaskView) -> None:
        view.record("counts", "started")


class Impure(Extension):
    """Folds to something else each time."""

    name = "impure"

    def initial_state(self) -> object:
        return object()


def own_key(outside: Outside) -> Tool:
    """Acts under a key that is another one at each try."""

    def run(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        outside.act(f"{len(outside.acts)}", input)
        return text_output("sent")

    return Tool("send", run, retry_safe=True)


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        (lambda outside: [Tools(acting(outside)), Remembers()], "calls so far"),
        (
            lambda outside: [Tools(acting(outside, retry_safe=True)), ActsAtOnce(outside)],
            "under one key more",
        ),
        (lambda outside: [Tools(acting(outside)), ActsOnEvent(outside)], "'mail' was not done outside"),
        (lambda outside: [Tools(acting(outside)), CountsClaims()], "plugin counts: 2"),
        (lambda outside: [Tools(acting(outside)), Impure()], "does not fold to the same state twice"),
        (lambda outside: [Tools(own_key(outside))], "under one key more"),
    ],
    ids=["self", "at-once", "on-event", "claims", "impure", "own-key"],
)
async def test_what_a_death_would_spoil_is_named(
    plugins: Callable[[Outside], Sequence[Extension]], says: str
) -> None:
    with pytest.raises(AssertionError) as raised:
        await check_crashes(plugins, GO, "go")
    assert says in str(raised.value)
    assert "effect" in str(raised.value) or "Without any death" in str(raised.value)


async def test_a_script_that_is_too_short_is_named() -> None:
    with pytest.raises(AssertionError, match="Without any death: ScriptError: The script has no reply 1"):
        await check_crashes(lambda outside: [], [], "hi")
