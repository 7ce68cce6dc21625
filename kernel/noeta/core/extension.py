"""`Extension`: what a plugin can do. Every method is a hook, every hook is optional, the defaults do nothing.

How the answers of several plugins combine, and what a failing hook costs, is said by each docstring in the
words of the table `noeta.toolkit.hooks.HOOKS`. Plugins are asked in the agent's order. Whatever a hook raises
besides the signals it may raise is recorded as `plugin_failed`, and what it staged is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from noeta.core.errors import SettingsError
from noeta.core.gates import Ask, Deny, Gate
from noeta.core.messages import Message, ToolUse
from noeta.core.parts import Command, CommandContext, ContextPart, Reminder, ToolChanges
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Recorded
from noeta.core.text import meant
from noeta.core.tool import Tool, ToolOutput

if TYPE_CHECKING:
    from noeta.core.state import TaskState
    from noeta.core.view import TaskView


class Extension:
    """A plugin. Subclass it, name it, and override the hooks it needs.

    An instance serves many tasks at once, so it keeps nothing about any of them: what a plugin knows of a
    task is the fold of its records (`initial_state`, `reduce`).

    - `name`: the registry name, and the one its records are written under; unique within an agent, no dots.
    - `add_to`: for a plugin file, the agents it joins by itself (``"*"``: every agent), after their own.
    - `folds`: other record names whose records `reduce` also folds into this plugin's state.
    - `before`, `after`: names of plugins that this one stands before or after in the agent's list.
    - `version`: recorded with the task; a plugin in a package has that of its distribution.
    - `required`: the agent does not start, and a task does not run, without this plugin.
    - `on_error`: per hook, what a failure costs instead of its default: ``open``, ``closed`` or ``park``.
    - `record_types`: its kinds and what their data decodes as; without it data comes as builtins.
    - `State`: the type of its state, for snapshots. Without it a state of builtins is kept as well.
    - `Settings`: a msgspec struct of what the constructor takes by keyword. `settings` is its value.
    """

    name: str
    add_to: ClassVar[tuple[str, ...]] = ()
    folds: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ()
    required: ClassVar[bool] = False
    version: ClassVar[str] = ""
    on_error: ClassVar[Mapping[str, str]] = {}
    record_types: ClassVar[Mapping[str, Any] | None] = None
    State: ClassVar[Any] = None
    Settings: ClassVar[type[msgspec.Struct] | None] = None
    settings: Any = None

    def __init__(self, **settings: Any) -> None:
        """Take the settings.

        Raises `SettingsError` for one that `Settings` does not have, does not take, or cannot do without.
        """
        if self.Settings is None and not settings:
            return
        known: tuple[str, ...] = getattr(self.Settings, "__struct_fields__", ())
        takes = f"It takes {', '.join(known) or 'none'}"
        for given in settings:
            if given not in known:
                why = f"there is no such setting{meant(given, known)}. {takes}"
                raise SettingsError(self.name, given, why)
        try:
            self.settings = msgspec.convert(settings, self.Settings)
        except msgspec.ValidationError as error:
            why, _, place = str(error).partition(" - at `$.")
            missing = why.partition("missing required field `")[2]
            place, why = (missing, f"it is missing. {takes}") if missing and not place else (place, why)
            raise SettingsError(self.name, place.strip("`"), why.rstrip(".")) from None

    def initial_state(self) -> Any:
        """The state before any record. Once per fold. A failure freezes the state; its gates then deny."""

    def reduce(self, state: Any, kind: str, data: Any) -> Any:
        """The state after a record of this plugin, or of a name in `folds`; in log order, on every fold.

        Also with kind ``core.erased`` and the erased seqs when a person's messages are erased. Must be pure:
        return a new state and never change the one given. A failure freezes the state; its gates then deny.
        """
        return state

    def continue_state(self, state: Any) -> Any:
        """What a task that continues this one's conversation starts from. Default: all of it.

        A failure freezes the state; its gates then deny.
        """
        return state

    def tools(self, view: TaskView) -> Sequence[Tool]:
        """The plugin's tools, every step. The first plugin that offers a name wins. Failing: none of them."""
        return ()

    def tool_changes(self, view: TaskView, offered: Sequence[Tool]) -> ToolChanges | None:
        """Changes to what is offered, every step, after every plugin's `tools`.

        `offered` are the plugins' tools after the agent's lists, the same for every plugin. An added tool
        that the agent's lists refuse drops the whole answer. Failing: no changes.
        """
        return None

    def context(self, view: TaskView) -> Sequence[ContextPart]:
        """Text for the system prompt, every model call. Must be stable. Failing: left out."""
        return ()

    async def reminders(self, view: TaskView) -> Sequence[Reminder]:
        """Notes before every model call, recorded and put behind the recorded messages of this request.

        Ahead of every plugin's `before_model`. May raise `TurnDone` or `TurnFailed`. Failing: left out.
        """
        return ()

    def inherit(self, state: TaskState) -> Mapping[str, Any]:
        """Config entries laid over the config that a spawning tool gave its child, for each child.

        Later plugins win. Failing: the spawn is an error result.
        """
        return {}

    async def on_start(self, view: TaskView) -> None:
        """A worker took the task up; before the first step. Failing: skipped."""

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        """The request to send, before every model call, after the reminders; each gets the one before's.

        May raise `TurnDone`, `RequestStale` or `TurnFailed`. Failing: the turn fails with ``plugin_error``.
        """
        return request

    async def on_context_overflow(self, view: TaskView, request: ModelRequest) -> bool:
        """The model refused `request` as too long. True after making room: the call is made again.

        The first True ends the round. When nobody made room the turn fails with ``context_overflow``. May
        raise `TurnFailed`. Failing: the turn fails with ``plugin_error``.
        """
        return False

    async def on_empty_reply(self, view: TaskView, response: ModelResponse) -> Message | None:
        """The reply ended with no text and no call. A message to go on with; the first one wins.

        It is recorded as ``continue``. Without one the turn ends without an answer. Failing: skipped.
        """
        return None

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        """An opinion about a call; every plugin is asked. None is no opinion.

        Any Deny wins, then the first Rewrite (the new call is gated again), then the first Ask.
        Failing: Deny.
        """
        return None

    async def resolve_ask(self, view: TaskView, call: ToolUse, asks: Sequence[Ask]) -> Gate | None:
        """The call is about to park on `asks`, and nobody denied it. The first answer wins.

        Allow or Deny answers in the person's place, Rewrite runs it with other input (gated again), Ask
        replaces the asks. After a restart a call can be gated again, so record an answer that cost something.
        Failing: Deny.
        """
        return None

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        """The output to record, after the call ran; each gets the one before's.

        Failing: an error result that holds nothing of the output, since this hook may have been redacting.
        """
        return output

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        """A record became durable; the state is that of its append. Failing: skipped.

        Records made here are appended right after; those made on the `TaskEnded` that ends the task are
        dropped. A plugin is not told of entries that its own `on_event` made. Each record comes once and is
        lost on a crash, unless `delivered_through` says otherwise.
        """

    def delivered_through(self, view: TaskView) -> int | None:
        """The seq through which this plugin has handled its events, read from its own state.

        Whenever the task is claimed, the records after it go to `on_event` again: at least once, in order. A
        failing `on_event` gets no later one first, and is told again from a minute on. None: no redelivery.
        Failing: none in this claim.
        """
        return None

    async def before_compact(
        self, view: TaskView, trigger: Literal["manual", "auto"], instructions: str
    ) -> str | Deny | None:
        """Asked by the compaction plugin before it summarizes. Every plugin is asked.

        Text is added to the summary's instructions; a Deny skips this compaction. Failing: skipped.
        """
        return None

    async def resident(self, view: TaskView) -> Sequence[Message]:
        """While compacting: content to attach again after the kept messages. Failing: left out."""
        return ()

    async def lead_resident(self, view: TaskView) -> Sequence[Message]:
        """While compacting: content to build again ahead of the summary. Failing: left out."""
        return ()

    async def commands(self, ctx: CommandContext) -> Sequence[Command]:
        """The plugin's slash commands, when a front end lists them. Failing: left out."""
        return ()

    async def run_command(self, ctx: CommandContext, name: str, args: str) -> str:
        """The message text of ``/name args``, a command of this plugin without a template.

        Failing: the front end that ran it gets the error.
        """
        raise NotImplementedError(f"plugin {self.name!r} has no command {name!r} to run")
