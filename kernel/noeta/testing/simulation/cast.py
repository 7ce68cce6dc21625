"""The plugins of a simulated task: tools that do everything a tool may do, gates, and plugins that fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from noeta.core.errors import RequestStale, TurnDone, TurnFailed
from noeta.core.extension import Extension
from noeta.core.gates import Allow, Ask, Deny, Gate, Rewrite
from noeta.core.messages import Message, ToolUse, user
from noeta.core.parts import Reminder
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Compacted, Recorded
from noeta.core.tool import MAX_ATTEMPTS, Park, ToolContext, ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.toolkit.questions import Question, ask, read_answer

if TYPE_CHECKING:
    from noeta.testing.simulation.world import Simulation

QUESTION: Question = {"question": "Which colour?"}
TOLD = ("received", "model_replied", "tool_finished", "turn_done", "turn_failed")
"""The kinds that the watcher notes."""


class Tool:
    """A tool that does what `does` says."""

    description = "A tool."
    clearable = False
    input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"n": {"type": "integer"}}}

    def __init__(
        self, name: str, does: Callable[..., ToolOutput], *, read_only: bool = False, **flags: Any
    ) -> None:
        self.name: str = name
        self.read_only: bool = read_only
        self.flags: ToolFlags = ToolFlags(**flags)
        self._does = does

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        """Do it."""
        return self._does(input, ctx)


class Waiting(Tool):
    """A tool that waits, and says what came of it."""

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        """Say it, or ask once more."""
        if isinstance(outcome, dict):
            return text_output(f"{len(outcome)} children")
        if outcome is not None and input.get("n", 0) % 5 == 0 and not outcome.values.get("last"):
            return ToolOutput(park=ask(QUESTION))
        return text_output(f"colour: {read_answer(outcome, QUESTION)}")


class Acting(Tool):
    """A tool that acts outside. Each start is counted there, and must be durable."""

    def __init__(self, world: Simulation, name: str, **flags: Any) -> None:
        super().__init__(name, lambda input, ctx: text_output("acted"), **flags)
        self._world = world

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        """Act."""
        await self._world.started(ctx, self.name)
        return await super().run(input, ctx)


class Recovering(Acting):
    """Its lost calls can be looked up."""

    async def recover(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput | None:
        """What came of it, if anything did."""
        return text_output("acted") if self._world.acts[ctx.idempotency_key] else None


def _raises(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    ctx.record("tools", "lost")
    raise ValueError("boom")


def _spawns(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    assert ctx.spawn
    children = [ctx.spawn("agent", f"part {n}") for n in range(1 + input.get("n", 0) % 3)]
    return ToolOutput(park=Park(on="children", keys=children))


def _sends_off(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    assert ctx.spawn
    return text_output(ctx.spawn("agent", "on its own", background=True))


def _sets_a_timer(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    n = input.get("n", 0)
    ctx.set_timer("later", 1_700_000_000.0 + 10 * n, "time is up" if n % 2 else "")
    return text_output("set")


def _notes(input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    ctx.record("tools", "noted", input.get("n", 0), message=user("noted") if input.get("n", 0) % 2 else None)
    return text_output("noted")


class Tools(Extension):
    """All the tools. Its state counts what was noted."""

    name = "tools"

    def __init__(self, world: Simulation) -> None:
        self._world = world
        self._tools = (
            Tool("read", lambda input, ctx: text_output(f"read {input}"), read_only=True),
            Acting(world, "act"),
            Acting(world, "again", retry_safe=True),
            Recovering(world, "recovering"),
            Waiting("ask", lambda input, ctx: ToolOutput(park=ask(QUESTION))),
            Waiting("ask_safely", lambda input, ctx: ToolOutput(park=ask(QUESTION)), retry_safe=True),
            Waiting("spawn", _spawns),
            Tool("send_off", _sends_off, retry_safe=True),
            Tool("wait_badly", lambda input, ctx: ToolOutput(park=ask(QUESTION))),
            Tool("raise", _raises),
            Tool("last", lambda input, ctx: text_output(""), run_last=True),
            Tool("timer", _sets_a_timer),
            Tool("note", _notes, read_only=True),
            Tool("keep", self._keeps, retry_safe=True),
            Tool("hand_over", lambda input, ctx: ToolOutput(end_turn="handed over")),
        )

    def _keeps(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.keep
        self._world.kept(ctx.keep())
        return text_output("kept")

    def initial_state(self) -> int:
        """Nothing was noted."""
        return 0

    def reduce(self, state: int, kind: str, data: Any) -> int:
        """Count."""
        return state + 1

    def tools(self, view: TaskView) -> Sequence[Any]:
        """All of them."""
        return self._tools


class Gates(Extension):
    """Judges calls by what they are, so that it says the same of the same call."""

    name = "gates"

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        """Its opinion."""
        gates: dict[int, Gate] = {
            1: Ask("sure?"),
            2: Deny("no"),
            3: Rewrite({"n": 4}, "read"),
            4: Allow(approve=True),
            5: Ask("really?", firm=True),
        }
        return gates.get(call.input.get("n", 0) % 13)


class Watcher(Extension):
    """Notes of which records it was told; what it has not noted is told again."""

    name = "watcher"

    def __init__(self, world: Simulation) -> None:
        self._world = world

    def initial_state(self) -> int:
        """It was told of nothing."""
        return 0

    def reduce(self, state: int, kind: str, data: Any) -> int:
        """The last seq it was told of."""
        return max(state, data) if kind == "told" else state

    def delivered_through(self, view: TaskView) -> int | None:
        """That seq."""
        told: int = view.ext_state(self.name)
        return told

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        """Note it."""
        row = await self._world.store.task(view.task_id)
        assert recorded.seq <= row.last_seq, "an event was told before it was durable"
        if recorded.kind in TOLD:
            view.record(self.name, "told", recorded.seq)


class Chaos(Extension):
    """Fails, talks nonsense, steers and compacts, as the seed has it."""

    name = "chaos"

    def __init__(self, world: Simulation, rng: Random) -> None:
        self._world, self._rng = world, rng

    def _chance(self, one_in: int) -> bool:
        return self._world.wild and self._rng.randrange(one_in) == 0

    def _fail(self, one_in: int = 20) -> Any:
        """Raise or give junk now and then."""
        if self._chance(one_in):
            raise ZeroDivisionError("chaos")
        return object() if self._chance(one_in) else None

    def initial_state(self) -> int:
        """It has no record."""
        return 0

    def reduce(self, state: int, kind: str, data: Any) -> int:
        """Break at the first record of some kind."""
        if kind == "broken":
            raise ZeroDivisionError("chaos")
        return state + 1

    async def on_start(self, view: TaskView) -> None:
        """Record something, and fail or not."""
        view.record(self.name, "broken" if self._chance(20) else "fine")
        if not view.state.parent and self._chance(4):
            view.spawn("agent", "a helper", key="only")
        self._fail()

    def context(self, view: TaskView) -> Any:
        """Nothing, or junk."""
        return self._fail() or []

    async def reminders(self, view: TaskView) -> Any:
        """A reminder now and then."""
        return self._fail() or ([Reminder("remember", kind="reminded")] if self._chance(4) else [])

    async def before_model(self, view: TaskView, request: ModelRequest) -> Any:
        """Steer, compact, or leave it."""
        view.record(self.name, "fine")
        if self._chance(15):
            raise TurnDone
        if self._chance(15):
            raise TurnFailed("chaos", "as the seed has it")
        if self._chance(4) and not view.state.open_calls:
            view.compacted(Compacted(through=view.state.seq, summary=[user("so far")]))
            raise RequestStale
        return self._fail() or request

    async def on_context_overflow(self, view: TaskView, request: ModelRequest) -> Any:
        """Make room."""
        view.compacted(Compacted(through=view.state.seq, summary=[user("short")]))
        return self._fail() or True

    async def on_empty_reply(self, view: TaskView, response: ModelResponse) -> Message | None:
        """Go on, or not."""
        return self._fail() or (user("go on") if self._chance(2) else None)

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        """Post to the task itself now and then."""
        if self._chance(12):
            view.enqueue("by the way", dedupe_key=f"{call.id}-way")
        return self._fail() or output

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        """Fail, or spawn."""
        if self._chance(150):
            view.spawn("agent", "a helper", key=f"helper-{recorded.seq}")
        self._fail(40)


CAST = (Tools, Gates, Watcher, Chaos)
MOST_STARTS = MAX_ATTEMPTS
