"""What the kernel asks of an agent's plugins, hook by hook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from noeta.core.extension import Extension
from noeta.core.gates import Answers, Ask, Deny, Gate
from noeta.core.messages import Message, ToolUse
from noeta.core.parts import ContextPart, Reminder, ToolChanges
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Recorded
from noeta.core.tool import Tool, ToolOutput

if TYPE_CHECKING:
    from noeta.core.state import TaskState
    from noeta.core.view import Views


class Hooks(Protocol):
    """The hooks of an agent's plugins, in order. `noeta.toolkit.hooks` has the one implementation.

    A method asks every plugin that overrides the hook and combines the answers by the hook's rule. `desk` is
    the task's; hooks of one task run one at a time.
    """

    @property
    def extensions(self) -> Sequence[Extension]:
        """The plugins, in order."""

    @property
    def impls(self) -> Mapping[str, Sequence[Any]]:
        """For each hook, who overrides it."""

    def tools(self, desk: Views) -> list[tuple[str, Sequence[Tool]]]:
        """Each plugin's tools."""

    def tool_changes(self, desk: Views, offered: Sequence[Tool]) -> list[tuple[str, ToolChanges]]:
        """Each plugin's changes to what is offered."""

    def context(self, desk: Views) -> list[tuple[str, Sequence[ContextPart]]]:
        """Each plugin's parts of the system prompt."""

    def inherit(self, desk: Views, state: TaskState) -> dict[str, Any]:
        """The config entries for a child, later plugins winning. Raises `PluginFailure`."""

    async def reminders(self, desk: Views) -> list[tuple[str, Sequence[Reminder]]]:
        """Each plugin's reminders. Raises `TurnDone` and `TurnFailed`."""

    async def on_start(self, desk: Views) -> None:
        """Tell every plugin that a worker took the task up."""

    async def before_model(self, desk: Views, request: ModelRequest) -> list[tuple[str, ModelRequest]]:
        """The request as each plugin gave it on. Raises the hook's signals and `PluginFailure`."""

    async def on_context_overflow(self, desk: Views, request: ModelRequest) -> bool:
        """Whether some plugin made room. Raises `TurnFailed` and `PluginFailure`."""

    async def on_empty_reply(self, desk: Views, response: ModelResponse) -> tuple[str, Message] | None:
        """The first message to go on with, and its plugin."""

    async def before_tool(self, desk: Views, call: ToolUse) -> Answers:
        """Each plugin's opinion about the call."""

    async def resolve_ask(self, desk: Views, call: ToolUse, asks: Sequence[Ask]) -> tuple[str, Gate] | None:
        """The first answer in the person's place, and its plugin."""

    async def after_tool(self, desk: Views, call: ToolUse, output: ToolOutput) -> ToolOutput:
        """The output as the last plugin gave it."""

    async def on_event(self, desk: Views, recorded: Recorded, *, only: str = "") -> None:
        """Tell every plugin, or `only` one, of a durable record; not the one whose `on_event` made it."""

    async def before_compact(
        self, desk: Views, trigger: Literal["manual", "auto"], instructions: str
    ) -> list[tuple[str, str | Deny]]:
        """What plugins say about a compaction."""

    async def residents(self, desk: Views, *, lead: bool = False) -> list[Message]:
        """What plugins attach again around a summary."""
