"""Calling hooks: awaiting, chaining, time limits, and the policy for failures."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import anyio
from msgspec.structs import replace

from noeta.core.errors import PluginFailure, RequestStale, told
from noeta.core.extension import Extension
from noeta.core.gates import Answers, Ask, Deny, Gate
from noeta.core.messages import Message, ToolUse
from noeta.core.parts import Command, CommandContext, ContextPart, Reminder, ToolChanges
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Recorded
from noeta.core.state import TaskState
from noeta.core.text import storable_text
from noeta.core.tool import Tool, ToolOutput, text_output
from noeta.core.view import Views
from noeta.toolkit.answers import checked
from noeta.toolkit.hooks import GATES, Hook
from noeta.toolkit.limits import LIMIT, Limit, unlimited
from noeta.toolkit.strays import stray

WHY_CHARS = 2_000
"""How much of what an error says is recorded and told."""
LOGGED = 1_000
"""How many failures are remembered as logged. One that comes at every step is logged once."""

_log = logging.getLogger("noeta")
_logged: set[tuple[str, str, str]] = set()


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

    def tools(self, desk: Views) -> list[tuple[str, Sequence[Tool]]]:
        """Each plugin's tools."""
        return self._collect("tools", desk)

    def tool_changes(self, desk: Views, offered: Sequence[Tool]) -> list[tuple[str, ToolChanges]]:
        """Each plugin's changes to what is offered."""
        return self._collect("tool_changes", desk, offered)

    def context(self, desk: Views) -> list[tuple[str, Sequence[ContextPart]]]:
        """Each plugin's parts of the system prompt."""
        return self._collect("context", desk)

    def inherit(self, desk: Views, state: TaskState) -> dict[str, Any]:
        """The config entries for a child, later plugins winning. Raises `PluginFailure`."""
        given = self._collect("inherit", desk, state)
        return {key: value for _, entries in given for key, value in entries.items()}

    async def reminders(self, desk: Views) -> list[tuple[str, Sequence[Reminder]]]:
        """Each plugin's reminders. Raises `TurnDone` and `TurnFailed`."""
        return await self._ask("reminders", desk)

    async def on_start(self, desk: Views) -> None:
        """Tell every plugin that a worker took the task up."""
        await self._ask("on_start", desk)

    async def before_model(self, desk: Views, request: ModelRequest) -> list[tuple[str, ModelRequest]]:
        """The request as each plugin gave it on. Raises the hook's signals and `PluginFailure`."""
        return await self._chain("before_model", desk, (), request)

    async def on_context_overflow(self, desk: Views, request: ModelRequest) -> bool:
        """Whether some plugin made room. Raises `TurnFailed` and `PluginFailure`."""
        return bool(await self._ask("on_context_overflow", desk, request, first=True))

    async def on_empty_reply(self, desk: Views, response: ModelResponse) -> tuple[str, Message] | None:
        """The first message to go on with, and its plugin."""
        return next(iter(await self._ask("on_empty_reply", desk, response, first=True)), None)

    async def before_tool(self, desk: Views, call: ToolUse) -> Answers:
        """Each plugin's opinion about the call."""
        return await self._ask("before_tool", desk, call)

    async def resolve_ask(self, desk: Views, call: ToolUse, asks: Sequence[Ask]) -> tuple[str, Gate] | None:
        """The first answer in the person's place, and its plugin."""
        return next(iter(await self._ask("resolve_ask", desk, call, asks, first=True)), None)

    async def after_tool(self, desk: Views, call: ToolUse, output: ToolOutput) -> ToolOutput:
        """The output as the last plugin gave it."""
        steps = await self._chain("after_tool", desk, (call,), output, _copied)
        return steps[-1][1] if steps else output

    async def on_event(self, desk: Views, recorded: Recorded, *, only: str = "") -> None:
        """Tell every plugin, or `only` one, of a durable record; not the one whose `on_event` made it.

        Who asks for redelivery gets records in order: after a failure no later one in this claim.
        """
        maker, behind = recorded.by if recorded.hook == "on_event" else None, set(desk.behind)
        skipped = behind | {maker}
        try:
            await self._ask(
                "on_event", desk, recorded, among=lambda by: by not in skipped and only in ("", by)
            )
        finally:
            # Also when the task is to wait for the one that failed.
            if desk.behind != behind:
                desk.behind &= behind | self.delivered_through(desk).keys()

    def delivered_through(self, desk: Views) -> dict[str, int]:
        """For each plugin with redelivery, the seq through which it has handled its events."""
        return dict(self._collect("delivered_through", desk))

    async def before_compact(
        self, desk: Views, trigger: Literal["manual", "auto"], instructions: str
    ) -> list[tuple[str, str | Deny]]:
        """What plugins say about a compaction."""
        return await self._ask("before_compact", desk, trigger, instructions)

    async def residents(self, desk: Views, *, lead: bool = False) -> list[Message]:
        """What plugins attach again around a summary."""
        given = await self._ask("lead_resident" if lead else "resident", desk)
        return [message for _, messages in given for message in messages]

    async def commands(self, desk: Views, ctx: CommandContext) -> list[tuple[str, Sequence[Command]]]:
        """Each plugin's slash commands."""
        return await self._ask("commands", desk, ctx)

    async def run_command(
        self, desk: Views, by: str, ctx: CommandContext, name: str, args: str
    ) -> str | None:
        """The message of a command of the plugin `by`, None when that runs none. Raises `PluginFailure`."""
        given = await self._ask("run_command", desk, ctx, name, args, among=by.__eq__)
        return given[0][1] if given else None

    def _collect(self, hook: str, desk: Views, *args: Any) -> list[tuple[str, Any]]:
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
        desk: Views,
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
        self,
        hook: str,
        desk: Views,
        before: tuple[Any, ...],
        value: Any,
        hand: Callable[[Any], Any] = lambda value: value,
    ) -> list[tuple[str, Any]]:
        """What each plugin made of `value`, in turn. `hand` makes what one is handed."""
        steps: list[tuple[str, Any]] = []

        def take(by: str, given: Any) -> bool:
            if given is not None:
                steps.append((by, given))
            return False

        if impls := self.impls[hook]:
            await _round(impls, desk, lambda: (*before, hand(steps[-1][1] if steps else value)), take)
        return steps


async def _round(
    impls: Sequence[Impl],
    desk: Views,
    args: Callable[[], tuple[Any, ...]],
    take: Callable[[str, Any], bool],
) -> None:
    """Ask `impls` in turn until `take` has enough. One cancel scope serves them all, up to a time-out."""
    left = list(reversed(impls))
    while left:
        # A round inside a hook counts against the limits of its own plugins alone.
        with unlimited(), anyio.CancelScope() as scope:
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


def _copied(value: Any) -> Any:
    """A copy to do with as one likes: what counts is what the hook returns."""
    match value:
        case ToolOutput():
            return replace(value, **{name: _copied(getattr(value, name)) for name in ("content", "meta")})
        case dict():
            return {key: _copied(inner) for key, inner in value.items()}
        case list():
            return [_copied(inner) for inner in value]
    return value


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


async def _answer(impl: Impl, desk: Views, given: tuple[Any, ...], scope: anyio.CancelScope) -> Any:
    if impl.hook.gives is GATES and (why := desk.broken(impl.plugin)):
        raise RuntimeError(f"its state is broken: {why}")
    value = impl.call(*given)
    if inspect.isawaitable(value):
        value = await value
    if scope.cancel_called:
        # It went on after it was cancelled, and its answer may be what it makes of that.
        raise _late(impl)
    return checked(impl.plugin, impl.hook, value)


def _returned(impl: Impl, desk: Views) -> bool:
    """Keep what the hook staged; whether it staged anything."""
    return impl.viewed and desk.settle(impl.plugin, impl.hook.name)


def _raised(impl: Impl, desk: Views, error: BaseException) -> Any:
    """What stands for the answer of a hook that raised. A signal and a cancel go on."""
    if isinstance(error, impl.hook.signals):
        error.plugin = impl.plugin
        if not _returned(impl, desk) and isinstance(error, RequestStale):
            # Built again, it would be the same request.
            return None
        raise error
    if impl.viewed:
        desk.drop(impl.plugin, impl.hook.name)
    if not isinstance(error, Exception) and not stray(error):
        raise error
    return _failed(impl, desk, error)


def _failed(impl: Impl, desk: Views, error: BaseException) -> Any:
    """Record the failure; what stands for the answer under the plugin's policy. Raises `PluginFailure`."""
    plugin, hook, why = impl.plugin, impl.hook, storable_text(told(error))[:WHY_CHARS]
    desk.failed(plugin, hook.name, why, impl.on_error)
    _say((plugin, hook.name, why), error)
    if hook.name == "on_event":
        desk.behind.add(plugin)
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


def _say(failure: tuple[str, str, str], error: BaseException) -> None:
    """Log a failure with its place in the code, which no record holds."""
    if failure not in _logged:
        if len(_logged) >= LOGGED:
            _logged.clear()
        _logged.add(failure)
        _log.warning("plugin %r failed in %s: %s", *failure, exc_info=error)
