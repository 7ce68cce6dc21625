"""Calling hooks: the table of how answers combine and what a failure costs, and the typed dispatcher.

`HOOKS` is the one place that says it. pluggy checks, names and blocks plugins (`noeta.host.registry`); it
calls nothing. Awaiting, chaining, time limits and the policy for failures are here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import anyio
from msgspec import Struct

from noeta.core.answers import NONE, checked
from noeta.core.errors import NoetaError, RequestStale, Signal, TurnDone, TurnFailed, told
from noeta.core.extension import Extension
from noeta.core.gates import Allow, Answers, Ask, Deny, Gate, Rewrite
from noeta.core.limits import LIMIT, Limit
from noeta.core.messages import Message, ToolUse
from noeta.core.parts import Command, CommandContext, ContextPart, Reminder, ToolChanges
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Recorded
from noeta.core.text import storable_text
from noeta.core.tool import Tool, ToolOutput, text_output

if TYPE_CHECKING:
    from noeta.core.state import TaskState
    from noeta.core.view import TaskView

Rule = Literal["collect", "chain", "first", "vote", "notify", "addressed"]
ANY = ("open", "closed", "park")
SHUT = ("closed", "park")
GATES = (Allow, Deny, Ask, Rewrite, NONE)
WHY_CHARS = 2_000
"""How much of what an error says is recorded and told."""


class Hook(Struct, frozen=True):
    """One row of the table: a hook, its combining rule, and what a failure costs.

    - `rule`: ``collect`` every answer, ``chain`` one value through all, the ``first`` answer wins, everyone
      has a ``vote``, ``notify`` everyone, or ``addressed`` to one plugin.
    - `on_error`: ``open`` leaves the plugin out this time, ``closed`` makes what the hook is about fail,
      ``park`` lets the task wait, ``broken`` freezes the plugin's state, ``raised`` tells the caller.
    - `choices`: what a plugin may set instead.
    - `gives`: the types of an answer; with `many` it is a sequence of them.
    - `seconds`: the time limit, None for a hook that cannot wait.
    - `signals`: what it may raise to steer the turn.
    """

    name: str
    rule: Rule
    on_error: str
    choices: tuple[str, ...] = ()
    gives: tuple[type, ...] = ()
    many: bool = False
    seconds: float | None = None
    signals: tuple[type[Signal], ...] = ()

    @property
    def spec(self) -> Callable[..., Any]:
        """The method of `Extension` that says its arguments and whether it is awaited."""
        method: Callable[..., Any] = getattr(Extension, self.name)
        return method


HOOKS: Mapping[str, Hook] = {
    hook.name: hook
    for hook in (
        Hook("initial_state", "addressed", "broken"),
        Hook("reduce", "addressed", "broken"),
        Hook("continue_state", "addressed", "broken"),
        Hook("tools", "collect", "open", ANY, (), True),
        Hook("tool_changes", "collect", "open", ANY, (ToolChanges, NONE)),
        Hook("context", "collect", "open", ANY, (ContextPart,), True),
        Hook("reminders", "collect", "open", ANY, (Reminder,), True, 30.0, (TurnDone, TurnFailed)),
        Hook("inherit", "collect", "closed", SHUT, (Mapping,)),
        Hook("on_start", "notify", "open", ANY, (NONE,), False, 30.0),
        Hook(
            *("before_model", "chain", "closed", ANY, (ModelRequest,), False, 30.0),
            (TurnDone, RequestStale, TurnFailed),
        ),
        Hook("on_context_overflow", "first", "closed", ANY, (bool, NONE), False, 30.0, (TurnFailed,)),
        Hook("on_empty_reply", "first", "open", ANY, (Message, NONE), False, 30.0),
        Hook("before_tool", "vote", "closed", SHUT, GATES, False, 600.0),
        Hook("resolve_ask", "first", "closed", SHUT, GATES, False, 600.0),
        Hook("after_tool", "chain", "closed", ANY, (ToolOutput,), False, 30.0),
        Hook("on_event", "notify", "open", ANY, (NONE,), False, 30.0),
        Hook("delivered_through", "addressed", "open", (), (int, NONE)),
        Hook("before_compact", "vote", "open", ANY, (str, Deny, NONE), False, 30.0),
        Hook("resident", "collect", "open", ANY, (Message,), True, 30.0),
        Hook("lead_resident", "collect", "open", ANY, (Message,), True, 30.0),
        Hook("commands", "collect", "open", ("open", "closed"), (Command,), True, 30.0),
        Hook("run_command", "addressed", "raised", (), (str,), False, 30.0),
    )
}
"""Every hook by name, in the order of `Extension`."""


class PluginFailure(NoetaError):
    """A hook failed, and what it is about must not go on (`policy` ``closed``) or must wait (``park``)."""

    def __init__(self, plugin: str, hook: str, error: str, policy: str) -> None:
        self.plugin: str = plugin
        self.hook: str = hook
        self.error: str = error
        self.policy: str = policy
        super().__init__(f"Plugin {plugin!r} failed in {hook}: {error}")


class Desk(Protocol):
    """What the dispatcher works with for one task: the plugins' views and what becomes of staged work."""

    def view(self, plugin: str, hook: str) -> TaskView:
        """The plugin's view, ready to stage work for `hook`."""

    def settle(self, plugin: str, hook: str) -> None:
        """What the hook staged takes its place in the log and in the state."""

    def drop(self, plugin: str, hook: str) -> None:
        """What the hook staged is gone."""

    def failed(self, plugin: str, hook: str, error: str, policy: str) -> None:
        """Record that a hook failed and what was done about it."""

    def broken(self, plugin: str) -> str:
        """Why the plugin's state is frozen, else the empty text."""


class Impl(NamedTuple):
    """One plugin's implementation of a hook.

    `call` takes all of the hook's arguments in order; the first is the plugin's view if it is `viewed`.
    """

    plugin: str
    hook: Hook
    call: Callable[..., Any]
    on_error: str
    viewed: bool


class Hooks:
    """The hooks of one agent, compiled once: for each a tuple of implementations, in order.

    A method asks every plugin that overrides the hook and combines the answers by its rule. `desk` is the
    task's; hooks of one task run one at a time.
    """

    def __init__(self, extensions: Sequence[Extension], impls: Mapping[str, tuple[Impl, ...]]) -> None:
        self.extensions: tuple[Extension, ...] = tuple(extensions)
        self.impls: Mapping[str, tuple[Impl, ...]] = impls

    def tools(self, desk: Desk) -> list[tuple[str, Sequence[Tool]]]:
        """Each plugin's tools."""
        return self._collect("tools", desk)

    def tool_changes(self, desk: Desk, offered: Sequence[Tool]) -> list[tuple[str, ToolChanges]]:
        """Each plugin's changes to what is offered."""
        return self._collect("tool_changes", desk, offered)

    def context(self, desk: Desk) -> list[tuple[str, Sequence[ContextPart]]]:
        """Each plugin's parts of the system prompt."""
        return self._collect("context", desk)

    def inherit(self, desk: Desk, state: TaskState) -> dict[str, Any]:
        """The config entries for a child, later plugins winning. Raises `PluginFailure`."""
        given = self._collect("inherit", desk, state)
        return {key: value for _, entries in given for key, value in entries.items()}

    async def reminders(self, desk: Desk) -> list[tuple[str, Sequence[Reminder]]]:
        """Each plugin's reminders. Raises `TurnDone` and `TurnFailed`."""
        return await self._ask("reminders", desk)

    async def on_start(self, desk: Desk) -> None:
        """Tell every plugin that a worker took the task up."""
        await self._ask("on_start", desk)

    async def before_model(self, desk: Desk, request: ModelRequest) -> list[tuple[str, ModelRequest]]:
        """The request as each plugin gave it on. Raises the hook's signals and `PluginFailure`."""
        return await self._chain("before_model", desk, (), request)

    async def on_context_overflow(self, desk: Desk, request: ModelRequest) -> bool:
        """Whether some plugin made room. Raises `TurnFailed` and `PluginFailure`."""
        return bool(await self._ask("on_context_overflow", desk, request, first=True))

    async def on_empty_reply(self, desk: Desk, response: ModelResponse) -> tuple[str, Message] | None:
        """The first message to go on with, and its plugin."""
        return next(iter(await self._ask("on_empty_reply", desk, response, first=True)), None)

    async def before_tool(self, desk: Desk, call: ToolUse) -> Answers:
        """Each plugin's opinion about the call."""
        return await self._ask("before_tool", desk, call)

    async def resolve_ask(self, desk: Desk, call: ToolUse, asks: Sequence[Ask]) -> tuple[str, Gate] | None:
        """The first answer in the person's place, and its plugin."""
        return next(iter(await self._ask("resolve_ask", desk, call, asks, first=True)), None)

    async def after_tool(self, desk: Desk, call: ToolUse, output: ToolOutput) -> ToolOutput:
        """The output as the last plugin gave it."""
        steps = await self._chain("after_tool", desk, (call,), output)
        return steps[-1][1] if steps else output

    async def on_event(self, desk: Desk, recorded: Recorded, *, only: str = "") -> None:
        """Tell every plugin, or `only` one, of a durable record; not the one whose `on_event` made it."""
        maker = recorded.by if recorded.hook == "on_event" else None
        await self._ask("on_event", desk, recorded, among=lambda by: by != maker and only in ("", by))

    def delivered_through(self, desk: Desk) -> dict[str, int]:
        """For each plugin with redelivery, the seq through which it has handled its events."""
        return dict(self._collect("delivered_through", desk))

    async def before_compact(
        self, desk: Desk, trigger: Literal["manual", "auto"], instructions: str
    ) -> list[tuple[str, str | Deny]]:
        """What plugins say about a compaction."""
        return await self._ask("before_compact", desk, trigger, instructions)

    async def residents(self, desk: Desk, *, lead: bool = False) -> list[Message]:
        """What plugins attach again around a summary."""
        given = await self._ask("lead_resident" if lead else "resident", desk)
        return [message for _, messages in given for message in messages]

    async def commands(self, desk: Desk, ctx: CommandContext) -> list[tuple[str, Sequence[Command]]]:
        """Each plugin's slash commands."""
        return await self._ask("commands", desk, ctx)

    async def run_command(self, desk: Desk, by: str, ctx: CommandContext, name: str, args: str) -> str | None:
        """The message of a command of the plugin `by`, None when that runs none. Raises `PluginFailure`."""
        given = await self._ask("run_command", desk, ctx, name, args, among=by.__eq__)
        return given[0][1] if given else None

    def _collect(self, hook: str, desk: Desk, *args: Any) -> list[tuple[str, Any]]:
        answers = []
        for impl in self.impls[hook]:
            given = (desk.view(impl.plugin, hook), *args) if impl.viewed else args
            try:
                value = checked(impl.plugin, impl.hook, impl.call(*given))
            except BaseException as error:
                value = _raised(impl, desk, error)
            else:
                _returned(impl, desk)
            if value is not None:
                answers.append((impl.plugin, value))
        return answers

    async def _ask(
        self,
        hook: str,
        desk: Desk,
        *args: Any,
        first: bool = False,
        among: Callable[[str], bool] | None = None,
    ) -> list[tuple[str, Any]]:
        """The answers of those `among` the plugins that have one; with `first`, of the first that has."""
        answers: list[tuple[str, Any]] = []

        def take(by: str, value: Any) -> bool:
            if value is not None and value is not False:
                answers.append((by, value))
            return first and bool(answers)

        impls = [impl for impl in self.impls[hook] if among is None or among(impl.plugin)]
        if impls:
            await _round(impls, desk, lambda: args, take)
        return answers

    async def _chain(
        self, hook: str, desk: Desk, before: tuple[Any, ...], value: Any
    ) -> list[tuple[str, Any]]:
        """What each plugin made of `value`, in turn."""
        steps: list[tuple[str, Any]] = []

        def take(by: str, given: Any) -> bool:
            if given is not None:
                steps.append((by, given))
            return False

        if impls := self.impls[hook]:
            await _round(impls, desk, lambda: (*before, steps[-1][1] if steps else value), take)
        return steps


async def _round(
    impls: Sequence[Impl],
    desk: Desk,
    args: Callable[[], tuple[Any, ...]],
    take: Callable[[str, Any], bool],
) -> None:
    """Ask `impls` in turn until `take` has enough. One cancel scope serves them all, up to a time-out."""
    left = list(reversed(impls))
    while left:
        with anyio.CancelScope() as scope:
            before = LIMIT.set(Limit(scope))
            try:
                while left and not scope.cancel_called:
                    impl = left.pop()
                    _extend(scope, impl.hook.seconds or 0.0)
                    given = (desk.view(impl.plugin, impl.hook.name), *args()) if impl.viewed else args()
                    try:
                        value = await _answer(impl, desk, given, scope)
                    except BaseException as error:
                        value = _raised(impl, desk, _alone(error))
                    else:
                        _returned(impl, desk)
                    if take(impl.plugin, value):
                        return
            finally:
                LIMIT.reset(before)
        if scope.cancelled_caught:
            value = _failed(impl, desk, _late(impl))
            if take(impl.plugin, value):
                return


def _extend(scope: anyio.CancelScope, seconds: float) -> None:
    # Moving a deadline costs as much as a short hook, so what is left of it may be a twentieth less.
    now = anyio.current_time()
    if not now + 0.95 * seconds <= scope.deadline <= now + seconds:
        scope.deadline = now + seconds


def _late(impl: Impl) -> TimeoutError:
    return TimeoutError(f"it took longer than {impl.hook.seconds:g} s")


def _alone(error: BaseException) -> BaseException:
    """`error` out of the groups in which task groups put it. Beside a cancel, other errors do not count."""
    while isinstance(error, BaseExceptionGroup):
        cancels, others = error.split(anyio.get_cancelled_exc_class())
        if cancels and isinstance(others, ExceptionGroup):
            error = cancels
        if len(error.exceptions) > 1:
            break
        error = error.exceptions[0]
    return error


async def _answer(impl: Impl, desk: Desk, given: tuple[Any, ...], scope: anyio.CancelScope) -> Any:
    if impl.hook.gives is GATES and (why := desk.broken(impl.plugin)):
        raise RuntimeError(f"its state is broken: {why}")
    value = impl.call(*given)
    if inspect.isawaitable(value):
        value = await value
    if scope.cancel_called:
        # It went on after it was cancelled, and its answer may be what it makes of that.
        raise _late(impl)
    return checked(impl.plugin, impl.hook, value)


def _returned(impl: Impl, desk: Desk) -> None:
    if impl.viewed:
        desk.settle(impl.plugin, impl.hook.name)


def _raised(impl: Impl, desk: Desk, error: BaseException) -> Any:
    """What stands for the answer of a hook that raised. A signal and a cancel go on."""
    if isinstance(error, impl.hook.signals):
        error.plugin = impl.plugin
        _returned(impl, desk)
        raise error
    if impl.viewed:
        desk.drop(impl.plugin, impl.hook.name)
    if not isinstance(error, Exception):
        raise error
    return _failed(impl, desk, error)


def _failed(impl: Impl, desk: Desk, error: Exception) -> Any:
    """Record the failure; what stands for the answer under the plugin's policy. Raises `PluginFailure`."""
    plugin, hook, why = impl.plugin, impl.hook, storable_text(told(error))[:WHY_CHARS]
    desk.failed(plugin, hook.name, why, impl.on_error)
    if impl.on_error == "open":
        return None
    if impl.on_error == "closed" and hook.gives is GATES:
        return Deny(f"Plugin {plugin!r} failed in {hook.name}, so the call is refused. {why}")
    if impl.on_error == "closed" and hook.name == "after_tool":
        return text_output(
            f"The call did run, but plugin {plugin!r} failed on its output, so that is withheld. {why}",
            is_error=True,
        )
    raise PluginFailure(plugin, hook.name, why, impl.on_error) from error
