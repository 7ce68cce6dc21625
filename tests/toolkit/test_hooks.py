"""Calling hooks: each combines by its rule, and a failure costs what the table says and nothing more."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, cast

import anyio
import pytest
from msgspec.structs import replace

from noeta.core.codec import encode
from noeta.core.errors import PluginFailure, RequestStale, Signal, TurnDone, TurnFailed
from noeta.core.extension import Extension
from noeta.core.gates import Allow, Ask, Deny, Rewrite
from noeta.core.messages import Message, ToolUse, user
from noeta.core.parts import Command, CommandContext, ContextPart, Reminder, ToolChanges
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Recorded
from noeta.core.state import Problem, TaskState
from noeta.core.tool import ToolContext, ToolOutput, text_output
from noeta.core.view import TaskView, Views
from noeta.host.registry import Registry
from noeta.toolkit.dispatch import LOGGED, Hooks
from noeta.toolkit.hooks import HOOKS, Hook
from noeta.toolkit.limits import unlimited

CALL = ToolUse(id="c1", name="write", input={})
REQUEST = ModelRequest(model="m")
RESPONSE = ModelResponse(message=Message(role="assistant", content=[]))
RECORDED = Recorded(seq=1, at=0.0, extension="core", kind="turn_done")
CONTEXT = CommandContext("/work")
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "tools": (),
    "tool_changes": ((),),
    "context": (),
    "reminders": (),
    "inherit": (TaskState(),),
    "on_start": (),
    "before_model": (REQUEST,),
    "on_context_overflow": (REQUEST,),
    "on_empty_reply": (RESPONSE,),
    "before_tool": (CALL,),
    "resolve_ask": (CALL, (Ask(),)),
    "after_tool": (CALL, text_output("secret")),
    "on_event": (RECORDED,),
    "delivered_through": (),
    "before_compact": ("auto", ""),
    "resident": (),
    "lead_resident": (),
    "commands": (CONTEXT,),
    "run_command": ("bad", CONTEXT, "go", ""),
}


class Stub:
    """A tool, but for what is said otherwise."""

    name = description = "x"
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    read_only = clearable = False

    def __init__(self, **members: Any) -> None:
        vars(self).update(members)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return text_output("")


CALLED = [hook for hook in HOOKS.values() if hook.name in ARGUMENTS]


class Desk(Views):
    """The views of a task, with what came of staged work and of failures."""

    def __init__(self, hooks: Hooks, **fields: Any) -> None:
        self.kept: list[str] = []
        self.failures: list[tuple[str, ...]] = []
        super().__init__(hooks, **{"state": TaskState(task="t"), **fields})

    def settled(self, view: TaskView) -> None:
        self.kept += [f"{made.line.name} by {view.plugin}" for made in view.pending]

    def failed(self, *failure: str) -> None:
        self.failures.append(failure)


def composed(*extensions: Extension) -> tuple[Hooks, Desk]:
    hooks = Registry().compose(extensions)
    return hooks, Desk(hooks)


async def call(hooks: Hooks, desk: Desk, hook: str) -> Any:
    """Call a hook of the table with arguments that fit."""
    if hook in ("resident", "lead_resident"):
        return await hooks.residents(desk, lead=hook == "lead_resident")
    answer = getattr(hooks, hook)(desk, *ARGUMENTS[hook])
    return await answer if inspect.isawaitable(answer) else answer


def made(hook: Hook, name: str, body: Callable[..., Any], **attributes: Any) -> Extension:
    """A plugin that overrides one hook with `body(view or first argument)`."""
    names = list(inspect.signature(hook.spec).parameters)
    head = f"{'async ' * inspect.iscoroutinefunction(hook.spec)}def {hook.name}({', '.join(names)}):"
    awaited = "await body" if inspect.iscoroutinefunction(body) else "body"
    space: dict[str, Any] = {"body": body}
    exec(f"{head}\n    return {awaited}({names[1]})", space)
    cls = type(name.title(), (Extension,), {"name": name, hook.name: space[hook.name], **attributes})
    return cls()  # type: ignore[no-any-return]


def boom(view: Any) -> Any:
    if isinstance(view, TaskView):
        view.record("bad", "staged")
    raise ValueError("boom")


# ---- rules


class Texts(Extension):
    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self._log = name, log

    def context(self, view: TaskView) -> Sequence[ContextPart]:
        return [ContextPart(self.name)]

    async def on_start(self, view: TaskView) -> None:
        self._log.append(self.name)

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        return replace(request, system=request.system + self.name)

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        return text_output(output.text + self.name)

    async def before_tool(self, view: TaskView, call: ToolUse) -> Allow | None:
        self._log.append(self.name)
        return None if self.name == "b" else Allow()

    async def on_empty_reply(self, view: TaskView, response: ModelResponse) -> Message | None:
        self._log.append(self.name)
        return user(self.name) if self.name != "a" else None

    async def on_context_overflow(self, view: TaskView, request: ModelRequest) -> bool:
        self._log.append(self.name)
        return self.name == "b"

    async def resident(self, view: TaskView) -> Sequence[Message]:
        return [user(self.name)]


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def three(asked: list[str]) -> tuple[Hooks, Desk]:
    return composed(*(Texts(name, asked) for name in "abc"))


@pytest.mark.anyio
async def test_collected_answers_come_in_the_agents_order(three: tuple[Hooks, Desk]) -> None:
    hooks, desk = three
    assert hooks.context(desk) == [(name, [ContextPart(name)]) for name in "abc"]
    assert [message.text for message in await hooks.residents(desk)] == ["a", "b", "c"]


@pytest.mark.anyio
async def test_a_chain_hands_each_plugin_what_the_one_before_gave(three: tuple[Hooks, Desk]) -> None:
    hooks, desk = three
    steps = await hooks.before_model(desk, REQUEST)
    assert [(by, request.system) for by, request in steps] == [("a", "a"), ("b", "ab"), ("c", "abc")]
    assert (await hooks.after_tool(desk, CALL, text_output("x"))).text == "xabc"


@pytest.mark.anyio
async def test_what_a_plugin_does_to_an_output_in_place_counts_for_nobody() -> None:
    def spoil(called: str, then: Callable[[], Any]) -> Extension:
        class Spoils(Extension):
            name = called
            on_error: ClassVar[dict[str, str]] = {"after_tool": "open"}

            async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> Any:
                output.content.clear()
                output.meta["deep"]["list"].append(self.name)
                output.is_error = True
                return then()

        return Spoils()

    output = text_output("whole", deep={"list": []})
    hooks, desk = composed(spoil("silent", lambda: None), spoil("fails", lambda: 1 / 0))
    assert await hooks.after_tool(desk, CALL, output) == text_output("whole", deep={"list": []})


@pytest.mark.anyio
async def test_the_first_answer_ends_the_round(three: tuple[Hooks, Desk], asked: list[str]) -> None:
    hooks, desk = three
    assert await hooks.on_empty_reply(desk, RESPONSE) == ("b", user("b"))
    assert await hooks.on_context_overflow(desk, REQUEST)
    assert asked == ["a", "b", "a", "b"]


@pytest.mark.anyio
async def test_every_plugin_has_its_vote_and_none_is_no_opinion(
    three: tuple[Hooks, Desk], asked: list[str]
) -> None:
    hooks, desk = three
    assert await hooks.before_tool(desk, CALL) == [("a", Allow()), ("c", Allow())]
    assert asked == ["a", "b", "c"]


@pytest.mark.anyio
async def test_everyone_is_notified(three: tuple[Hooks, Desk], asked: list[str]) -> None:
    hooks, desk = three
    await hooks.on_start(desk)
    assert asked == ["a", "b", "c"]


@pytest.mark.anyio
async def test_a_hook_that_nobody_overrides_gives_what_came_in() -> None:
    hooks, desk = composed(Extension.__new__(type("Idle", (Extension,), {"name": "idle"})))
    assert not any(hooks.impls.values())
    assert await hooks.before_model(desk, REQUEST) == []
    assert await hooks.before_tool(desk, CALL) == []
    assert await hooks.on_empty_reply(desk, RESPONSE) is None
    assert not await hooks.on_context_overflow(desk, REQUEST)


@pytest.mark.anyio
async def test_an_event_is_not_told_to_the_plugin_whose_own_on_event_made_it() -> None:
    told: list[str] = []
    row = HOOKS["on_event"]
    hooks, desk = composed(*(made(row, name, lambda view: told.append(view.plugin)) for name in "ab"))
    await hooks.on_event(desk, replace(RECORDED, by="a", hook="on_event"))
    await hooks.on_event(desk, replace(RECORDED, by="a", hook="before_tool"))
    await hooks.on_event(desk, RECORDED, only="a")
    assert told == ["b", "a", "b", "a"]


@pytest.mark.anyio
async def test_later_plugins_win_what_a_child_inherits() -> None:
    row = HOOKS["inherit"]
    first, second = made(row, "a", lambda state: {"x": 1, "y": 1}), made(row, "b", lambda state: {"y": 2})
    hooks, desk = composed(first, second)
    assert hooks.inherit(desk, TaskState()) == {"x": 1, "y": 2}


@pytest.mark.anyio
async def test_a_command_goes_to_its_plugin_alone() -> None:
    row = HOOKS["run_command"]
    hooks, desk = composed(made(row, "a", lambda ctx: "from a"), made(row, "b", lambda ctx: "from b"))
    assert await hooks.run_command(desk, "b", CONTEXT, "go", "") == "from b"
    assert await hooks.run_command(desk, "c", CONTEXT, "go", "") is None


# ---- failures


def skipped(hook: str, answer: Any) -> bool:
    """Whether `answer` is what the hook gives when no plugin has said anything."""
    nothing = {"after_tool": ARGUMENTS["after_tool"][1]}
    return bool(answer == nothing.get(hook) or (hook not in nothing and not answer))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("hook", "policy"),
    [pytest.param(h, p, id=f"{h.name}-{p}") for h in CALLED for p in h.choices or (h.on_error,)],
)
async def test_a_failure_costs_what_the_policy_says(hook: Hook, policy: str) -> None:
    attributes = {} if policy == hook.on_error else {"on_error": {hook.name: policy}}
    hooks, desk = composed(made(hook, "bad", boom, **attributes))
    if policy == "open":
        assert skipped(hook.name, await call(hooks, desk, hook.name))
    elif policy == "closed" and hook.name == "after_tool":
        answer = await call(hooks, desk, hook.name)
        assert answer.is_error
        assert "secret" not in answer.text
        assert "did run" in answer.text
    elif policy == "closed" and hook.name in ("before_tool", "resolve_ask"):
        answer = await call(hooks, desk, hook.name)
        [(by, gate)] = [answer] if hook.name == "resolve_ask" else answer
        assert (by, type(gate)) == ("bad", Deny)
        assert "bad" in gate.reason
    else:
        with pytest.raises(PluginFailure) as caught:
            await call(hooks, desk, hook.name)
        failure = caught.value
        assert (failure.plugin, failure.hook, failure.policy) == ("bad", hook.name, policy)
    assert desk.failures == [("bad", hook.name, "ValueError: boom", policy)]
    assert desk.kept == []


@pytest.mark.anyio
@pytest.mark.parametrize("hook", CALLED, ids=lambda hook: hook.name)
async def test_a_failing_plugin_costs_the_others_nothing(hook: Hook) -> None:
    if "open" not in hook.choices:
        return
    good: dict[str, Any] = {
        "tool_changes": ToolChanges(),
        "context": [ContextPart("x")],
        "reminders": [Reminder("x")],
        "before_model": replace(REQUEST, system="x"),
        "on_context_overflow": True,
        "on_empty_reply": user("x"),
        "after_tool": text_output("x"),
        "before_compact": "x",
        "resident": [user("x")],
        "lead_resident": [user("x")],
        "commands": [Command("x", "")],
    }
    ran: list[str] = []

    def answer(view: Any) -> Any:
        ran.append("good")
        return good.get(hook.name, () if hook.many else None)

    bad = made(hook, "bad", boom, on_error={hook.name: "open"})
    hooks, desk = composed(bad, made(hook, "good", answer))
    given = await call(hooks, desk, hook.name)
    assert ran == ["good"]
    if hook.name in good:
        assert not skipped(hook.name, given)


@pytest.mark.anyio
@pytest.mark.parametrize("hook", [h for h in CALLED if h.gives or h.many], ids=lambda hook: hook.name)
async def test_an_answer_of_another_type_is_a_failure(hook: Hook) -> None:
    hooks, desk = composed(made(hook, "bad", lambda view: object()))
    with suppress(PluginFailure):
        await call(hooks, desk, hook.name)
    assert [failure[:2] for failure in desk.failures] == [("bad", hook.name)]
    assert "TypeError: its answer is of type object, not " in desk.failures[0][2]


@pytest.mark.anyio
@pytest.mark.parametrize("hook", [h for h in CALLED if h.many and h.gives], ids=lambda hook: hook.name)
async def test_a_wrong_item_among_good_ones_is_a_failure(hook: Hook) -> None:
    hooks, desk = composed(made(hook, "bad", lambda view: ["text"]))
    assert await call(hooks, desk, hook.name) == []
    assert len(desk.failures) == 1


UNSOUND: dict[str, list[Any]] = {
    "before_tool": [
        Deny("\ud800"),
        Deny(cast("str", 5)),
        Ask(detail={"a": object()}),
        Rewrite(cast("Any", 0)),
    ],
    "resolve_ask": [Ask(cast("str", None)), Allow(cast("bool", "yes"))],
    "reminders": [
        [Reminder("x", data=object())],
        [Reminder(cast("str", 5))],
        [Reminder(" ")],
        [Reminder("x", role=cast("Any", "tool"))],
    ],
    "context": [[ContextPart("\ud800")], [ContextPart(cast("str", None))]],
    "on_empty_reply": [Message(role=cast("str", 5), content=[]), Message(role="user", content=[]), user("")],
    "after_tool": [
        text_output("\ud800"),
        ToolOutput(content=cast("Any", ["x"])),
        text_output("x", y=object()),
    ],
    "inherit": [{"x": object()}, {(1, 2): 3}],
    "tools": [[None], ["Bash"], [Stub(name=5)], [Stub(name=[])], [Stub(read_only=None)], [Stub(flags=None)]],
    "tool_changes": [
        ToolChanges(add=cast("Any", None)),
        ToolChanges(add=[Stub(description=None)]),
        ToolChanges(withhold=cast("Any", ["x"])),
        ToolChanges(withhold={"x": cast("str", None)}),
        ToolChanges(entries=[cast("Any", 1)]),
    ],
}


def test_a_tool_is_looked_over_once() -> None:
    looked: list[str] = []

    class Looked(Stub):
        def __getattribute__(self, name: str) -> Any:
            if name == "input_schema":
                looked.append(name)
            return super().__getattribute__(name)

    tool = Looked()
    hooks, desk = composed(made(HOOKS["tools"], "p", lambda _: [tool]))
    for _ in range(3):
        assert hooks.tools(desk) == [("p", [tool])]
    assert looked == ["input_schema"]


@pytest.mark.anyio
@pytest.mark.parametrize("hook", UNSOUND)
async def test_an_answer_that_no_log_can_hold_or_that_is_no_tool_is_a_failure(hook: str) -> None:
    for answer in UNSOUND[hook]:
        hooks, desk = composed(made(HOOKS[hook], "bad", lambda _, answer=answer: answer))
        with suppress(PluginFailure):
            await call(hooks, desk, hook)
        assert [failure[:2] for failure in desk.failures] == [("bad", hook)], answer


@pytest.mark.anyio
async def test_a_list_is_taken_as_it_is_when_the_hook_returns() -> None:
    parts = [ContextPart("x")]
    hooks, desk = composed(made(HOOKS["context"], "a", lambda view: parts))
    given = hooks.context(desk)
    parts.append(ContextPart("later"))
    assert given == [("a", [ContextPart("x")])]


@pytest.mark.anyio
async def test_what_an_error_says_is_told_as_far_as_a_log_can_hold_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # What is logged besides would be a report that no other process can be sent.
    caplog.set_level(logging.CRITICAL, "noeta")

    def raises(view: TaskView) -> None:
        raise ValueError("\ud800" + 10_000 * "x")

    hooks, desk = composed(made(HOOKS["before_tool"], "a", raises))
    [(_, gate)] = await hooks.before_tool(desk, CALL)
    assert isinstance(gate, Deny)
    encode(1, 0.0, "a", "told", gate.reason)
    assert len(gate.reason) < 3_000


@pytest.mark.anyio
@pytest.mark.parametrize("signal", [TurnDone(), RequestStale(), TurnFailed("why", "detail")], ids=repr)
@pytest.mark.parametrize("hook", [h for h in CALLED if h.spec.__name__ != "inherit"], ids=lambda h: h.name)
async def test_a_signal_steers_the_turn_where_the_hook_may_give_it_and_is_a_failure_elsewhere(
    hook: Hook, signal: Signal
) -> None:
    def steer(view: Any) -> Any:
        if isinstance(view, TaskView):
            view.record("bad", "staged")
        raise signal

    hooks, desk = composed(made(hook, "bad", steer, on_error={}))
    if isinstance(signal, hook.signals):
        with pytest.raises(type(signal)) as caught:
            await call(hooks, desk, hook.name)
        assert caught.value.plugin == "bad"
        assert (desk.kept, desk.failures) == (["bad.staged by bad"], [])
        return
    with suppress(PluginFailure):
        await call(hooks, desk, hook.name)
    assert desk.kept == []
    assert len(desk.failures) == 1


@pytest.mark.anyio
async def test_gates_of_a_plugin_whose_state_is_broken_deny_without_being_asked() -> None:
    asked: list[Any] = []
    hooks = Registry().compose([made(HOOKS["before_tool"], "bad", asked.append)])
    state = TaskState(task="t", broken={"bad": Problem(seq=3, why="reduce of x: KeyError")})
    desk = Desk(hooks, state=state)
    [(by, gate)] = await hooks.before_tool(desk, CALL)
    assert (by, type(gate), asked) == ("bad", Deny, [])
    assert "reduce of x: KeyError" in desk.failures[0][2]


# ---- time and cancellation


def hurried(hooks: Hooks, seconds: float = 0.02) -> Hooks:
    """The same hooks with a time limit that a test can wait for."""
    impls = {
        name: tuple(impl._replace(hook=replace(impl.hook, seconds=seconds)) for impl in found)
        for name, found in hooks.impls.items()
    }
    return Hooks(hooks.extensions, impls)


async def hang(view: TaskView) -> None:
    view.record(view.plugin, "staged")
    await anyio.sleep_forever()


@pytest.mark.anyio
async def test_a_hook_that_takes_too_long_fails_alone() -> None:
    row = HOOKS["before_tool"]
    hooks, desk = composed(made(row, "a", hang), made(row, "b", hang), made(row, "c", lambda view: Allow()))
    answers = await hurried(hooks).before_tool(desk, CALL)
    assert [(by, type(gate)) for by, gate in answers] == [("a", Deny), ("b", Deny), ("c", Allow)]
    assert desk.failures[0] == ("a", "before_tool", "TimeoutError: it took longer than 0.02 s", "closed")
    assert desk.kept == []


@pytest.mark.anyio
async def test_an_answer_that_comes_after_the_limit_counts_as_none() -> None:
    async def stubborn(view: TaskView) -> Allow:
        with suppress(BaseException):
            await hang(view)
        return Allow(approve=True)

    row = HOOKS["before_tool"]
    hooks, desk = composed(made(row, "a", stubborn), made(row, "b", stubborn))
    answers = await hurried(hooks).before_tool(desk, CALL)
    assert [type(gate) for _, gate in answers] == [Deny, Deny]
    assert [failure[2] for failure in desk.failures] == ["TimeoutError: it took longer than 0.02 s"] * 2
    assert desk.kept == []


@pytest.mark.anyio
async def test_what_else_goes_wrong_at_the_limit_stays_inside_the_round() -> None:
    async def untidy() -> None:
        try:
            await anyio.sleep_forever()
        except BaseException:
            raise ValueError("untidy") from None

    async def two(view: TaskView) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(untidy)
            group.start_soon(anyio.sleep_forever)

    row = HOOKS["before_tool"]
    hooks, desk = composed(made(row, "a", two), made(row, "b", lambda view: Allow()))
    (_, gate), answer = await hurried(hooks).before_tool(desk, CALL)
    assert isinstance(gate, Deny)
    assert answer == ("b", Allow())
    assert len(desk.failures) == 1


@pytest.mark.anyio
async def test_an_error_or_a_signal_in_a_task_group_counts_as_itself() -> None:
    def inside(error: Exception) -> Callable[[TaskView], Any]:
        async def raises(view: TaskView) -> None:
            async with anyio.create_task_group():
                raise error

        return raises

    row = HOOKS["before_model"]
    hooks, desk = composed(made(row, "a", inside(TurnDone())))
    with pytest.raises(TurnDone):
        await hooks.before_model(desk, REQUEST)
    hooks, desk = composed(made(row, "a", inside(ValueError("boom"))))
    with pytest.raises(PluginFailure, match="ValueError: boom"):
        await hooks.before_model(desk, REQUEST)


@pytest.mark.anyio
async def test_the_limit_stands_still_until_the_last_of_several_waits_is_over() -> None:
    async def wait(seconds: float) -> None:
        with unlimited():
            await anyio.sleep(seconds)

    async def waits(view: TaskView) -> Allow:
        async with anyio.create_task_group() as group:
            group.start_soon(wait, 0.05)
            group.start_soon(wait, 0.5)
        return Allow()

    hooks, desk = composed(made(HOOKS["before_tool"], "a", waits))
    assert await hurried(hooks, 0.2).before_tool(desk, CALL) == [("a", Allow())]


@pytest.mark.anyio
async def test_a_hook_that_asks_other_plugins_loses_none_of_its_time() -> None:
    async def asks(view: TaskView) -> Allow:
        await view.residents()
        return Allow()

    async def slow(view: TaskView) -> list[Message]:
        await anyio.sleep(0.15)
        return []

    others = [made(HOOKS["resident"], name, slow) for name in "bcd"]
    hooks, desk = composed(made(HOOKS["before_tool"], "a", asks), *others)
    desk.hooks = hurried(hooks, 0.3)
    assert await desk.hooks.before_tool(desk, CALL) == [("a", Allow())]


@pytest.mark.anyio
async def test_each_plugin_has_the_whole_limit() -> None:
    async def slow(view: TaskView) -> Allow:
        await anyio.sleep(0.3)
        return Allow()

    row = HOOKS["before_tool"]
    hooks, desk = composed(*(made(row, name, slow) for name in "abc"))
    answers = await hurried(hooks, 0.6).before_tool(desk, CALL)
    assert [gate for _, gate in answers] == [Allow(), Allow(), Allow()]


@pytest.mark.anyio
async def test_the_limit_stands_still_while_a_hook_waits_for_a_model_or_a_person() -> None:
    async def waits(view: TaskView) -> Allow:
        with unlimited():
            await anyio.sleep(0.1)
        return Allow()

    hooks, desk = composed(made(HOOKS["before_tool"], "a", waits))
    assert await hurried(hooks).before_tool(desk, CALL) == [("a", Allow())]


@pytest.mark.anyio
async def test_the_limit_goes_on_when_the_wait_is_over() -> None:
    async def waits(view: TaskView) -> None:
        with unlimited():
            await anyio.sleep(0.05)
        await anyio.sleep_forever()

    hooks, desk = composed(made(HOOKS["before_tool"], "a", waits))
    [(_, gate)] = await hurried(hooks).before_tool(desk, CALL)
    assert isinstance(gate, Deny)


@pytest.mark.anyio
async def test_outside_a_hook_there_is_no_limit_to_stop() -> None:
    with unlimited():
        await anyio.lowlevel.checkpoint()


@pytest.mark.anyio
async def test_a_cancelled_round_drops_what_was_staged_and_records_no_failure() -> None:
    hooks, desk = composed(made(HOOKS["on_start"], "a", hang))
    started = anyio.Event()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def run() -> None:
                started.set()
                await hooks.on_start(desk)

            group.start_soon(run)
            await started.wait()
            await anyio.lowlevel.checkpoint()
            scope.cancel()
    assert (desk.kept, desk.failures) == ([], [])
    with pytest.raises(RuntimeError, match="only while a hook runs"):
        desk.by_plugin["a"].record("a", "late")


@pytest.mark.anyio
async def test_a_plain_method_where_the_hook_is_async_is_called_all_the_same() -> None:
    class Plain(Extension):
        name = "plain"

        def before_tool(self, view, call):  # type: ignore[no-untyped-def,override]
            return Allow()

    hooks, desk = composed(Plain())
    assert await hooks.before_tool(desk, CALL) == [("plain", Allow())]


@pytest.mark.anyio
async def test_a_hook_may_take_fewer_arguments_in_any_order() -> None:
    class Fewer(Extension):
        name = "fewer"

        async def on_context_overflow(self, view):  # type: ignore[no-untyped-def,override]
            return view.task_id == "t"

        async def before_tool(self, call):  # type: ignore[no-untyped-def,override]
            return Deny(call.name)

        async def after_tool(self, output, view):  # type: ignore[no-untyped-def,override]
            return text_output(output.text + view.task_id)

    hooks, desk = composed(Fewer())
    assert await hooks.on_context_overflow(desk, REQUEST)
    assert await hooks.before_tool(desk, CALL) == [("fewer", Deny("write"))]
    assert (await hooks.after_tool(desk, CALL, text_output("x"))).text == "xt"


# ---- the table


def test_the_table_holds_every_method_of_extension_in_its_order() -> None:
    methods = [name for name, value in vars(Extension).items() if inspect.isfunction(value)]
    assert list(HOOKS) == [name for name in methods if name != "__init__"]


@pytest.mark.parametrize("hook", HOOKS.values(), ids=lambda hook: hook.name)
def test_each_row_of_the_table_fits_its_method(hook: Hook) -> None:
    waits = inspect.iscoroutinefunction(hook.spec)
    assert waits == (hook.seconds is not None)
    assert hook.on_error in (hook.choices or {"broken", "open", "raised"})
    parameters = list(inspect.signature(hook.spec).parameters.values())[1:]
    assert all(parameter.default is parameter.empty for parameter in parameters)
    assert hook.name in ARGUMENTS or hook.on_error == "broken"


def test_a_failure_is_logged_once_with_its_place_in_the_code(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("noeta.toolkit.dispatch._logged", set())
    hooks, desk = composed(made(HOOKS["context"], "bad", boom))
    for _ in range(3):
        hooks.context(desk)
    [record] = caplog.records
    assert (record.name, record.levelname) == ("noeta", "WARNING")
    assert record.getMessage() == "plugin 'bad' failed in context: ValueError: boom"
    assert "in boom" in caplog.text
    assert len(desk.failures) == 3


def test_what_is_remembered_of_logged_failures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = {("p", "context", str(number)) for number in range(LOGGED)}
    monkeypatch.setattr("noeta.toolkit.dispatch._logged", logged)
    hooks, desk = composed(made(HOOKS["context"], "bad", boom))
    hooks.context(desk)
    assert logged == {("bad", "context", "ValueError: boom")}
