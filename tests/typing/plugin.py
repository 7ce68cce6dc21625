"""A plugin as its author writes it, with every name and hook. Checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Struct
from typing_extensions import override

from noeta import (
    ERASED_KIND,
    Agent,
    Allow,
    Answer,
    Ask,
    ChildEnded,
    Command,
    CommandContext,
    Compacted,
    ContextPart,
    Deny,
    Extension,
    Gate,
    KeptClaim,
    Message,
    ModelRequest,
    ModelResponse,
    Park,
    Recorded,
    Reminder,
    RequestStale,
    Rewrite,
    TaskEnded,
    TaskState,
    TaskView,
    Text,
    Tool,
    ToolChanges,
    ToolContext,
    ToolEntry,
    ToolFlags,
    ToolOutput,
    ToolSet,
    ToolSpec,
    ToolUse,
    TurnDone,
    TurnFailed,
    ask,
    function_tool,
    read_answer,
    text_output,
    tool_flags,
)
from noeta.toolkit.hooks import hookimpl
from noeta.toolkit.record_types import record_types


class Limits(Struct):
    calls: int = 10
    words: list[str] = []


class Counted(Struct):
    """A record of the plugin."""

    tool: str


class Count(Struct, frozen=True):
    """The plugin's state."""

    calls: int = 0
    last: str = ""


class Budget(Extension):
    name = "budget"
    add_to = ("*",)
    folds = ("core",)
    after = ("permissions",)
    required = True
    on_error = {"after_tool": "open"}  # noqa: RUF012
    record_types = record_types(Counted)
    State = Count
    Settings = Limits

    @override
    def initial_state(self) -> Count:
        return Count()

    @override
    def reduce(self, state: Count, kind: str, data: Any) -> Count:
        if kind == ERASED_KIND:
            return state
        return Count(state.calls + 1, data.tool) if isinstance(data, Counted) else state

    @override
    def continue_state(self, state: Count) -> Count:
        return Count(last=state.last)

    @override
    def tools(self, view: TaskView) -> Sequence[Tool]:
        return [Choose(), add, shout]

    @override
    def tool_changes(self, view: TaskView, offered: Sequence[Tool]) -> ToolChanges | None:
        spent = {tool.name: "No calls are left." for tool in offered if not tool_flags(tool).deferred}
        return ToolChanges(withhold=spent, entries=[ToolEntry(ToolSpec(extra={"type": "mode"}))])

    @override
    def context(self, view: TaskView) -> Sequence[ContextPart]:
        return [ContextPart("Be brief.", order=50)]

    @override
    async def reminders(self, view: TaskView) -> Sequence[Reminder]:
        state: Count = view.ext_state(self.name)
        return [Reminder(f"{state.calls} calls", role="system", origin="memory")]

    @override
    def inherit(self, state: TaskState) -> Mapping[str, Any]:
        return {"budget": state.states["budget"].calls}

    @override
    async def on_start(self, view: TaskView) -> None:
        view.set_timer("check", 0.0, "Check the budget.")

    @override
    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        if view.next_request is None:
            raise TurnDone
        if not request.messages:
            raise TurnFailed("empty", "there is nothing to say")
        if view.complete is not None:
            response: ModelResponse = await view.complete(view.next_request())
            view.compacted(Compacted(through=view.state.seq, summary=[response.message]))
            raise RequestStale
        return request

    @override
    async def on_context_overflow(self, view: TaskView, request: ModelRequest) -> bool:
        return False

    @override
    async def on_empty_reply(self, view: TaskView, response: ModelResponse) -> Message | None:
        return Message(role="user", content=[Text(text="Go on.")])

    @hookimpl(tryfirst=True)
    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        view.record(self.name, "counted", Counted(call.name))
        match call.name:
            case "rm":
                return Deny("No.", source="budget: rm")
            case "mv":
                return Rewrite({**call.input, "backup": True}, "cp")
            case "cp":
                return Ask("Copy?", {"path": call.input.get("path")}, firm=True)
        return Allow(approve=True, outright=True)

    @override
    async def resolve_ask(self, view: TaskView, call: ToolUse, asks: Sequence[Ask]) -> Gate | None:
        return None

    @override
    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        return output

    @override
    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        if isinstance(recorded.data, TaskEnded):
            view.enqueue("It is over.", dedupe_key="over", task_id=view.state.parent)
        view.spawn("helper", "Look.", config={"cwd": view.cwd}, key=f"look-{recorded.seq}")

    @override
    def delivered_through(self, view: TaskView) -> int | None:
        return None

    @override
    async def before_compact(
        self, view: TaskView, trigger: Literal["manual", "auto"], instructions: str
    ) -> str | Deny | None:
        return "Keep the count."

    @override
    async def resident(self, view: TaskView) -> Sequence[Message]:
        return []

    @override
    async def lead_resident(self, view: TaskView) -> Sequence[Message]:
        return await view.residents(lead=True, keeps_tail=True, kept=view.kept)

    @override
    async def commands(self, ctx: CommandContext) -> Sequence[Command]:
        return [Command("budget", "Show the budget.", local=True)]

    @override
    async def run_command(self, ctx: CommandContext, name: str, args: str) -> str:
        return ctx.cwd


class Choose:
    """A tool written as a class."""

    name = "choose"
    description = "Choose a colour."
    input_schema: dict[str, Any] = {"type": "object"}  # noqa: RUF012
    read_only = True
    clearable = False
    flags = ToolFlags(retry_safe=True, max_result_chars=None)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        kept: KeptClaim | None = ctx.keep() if ctx.keep else None
        if kept and not kept.lost:
            kept.release()
        if ctx.spawn:
            child = ctx.spawn("helper", "Choose.", background=False)
            return ToolOutput(park=Park(on="children", keys=[child]))
        return ToolOutput(park=ask({"question": "Which?", "options": [{"label": "red"}]}))

    async def resume(
        self, input: dict[str, Any], ctx: ToolContext, outcome: Answer | dict[str, ChildEnded] | None
    ) -> ToolOutput:
        if isinstance(outcome, dict):
            return text_output(" ".join(end.text for end in outcome.values()), children=len(outcome))
        answer = read_answer(outcome, {"question": "Which?"})
        return text_output(str(answer), is_error=answer is None)


@function_tool
def add(a: int, b: Annotated[int, "what to add"] = 1) -> str:
    """Add two numbers."""
    return str(a + b)


@function_tool(name="shout", read_only=True)
async def shout(text: str, ctx: ToolContext, mode: Literal["loud", "louder"] | None = None) -> ToolOutput:
    """Say it in capitals."""
    ctx.record("budget", "counted", Counted("shout"))
    ctx.notify("shouted")
    return text_output(text.upper(), mode=mode)


agent = Agent("coder", model="a:b", plugins=["fs", Budget(calls=3), ToolSet([add, Choose()])], denied=["rm"])
