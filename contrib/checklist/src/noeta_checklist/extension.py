"""The plugin: which hook does what."""

from typing import Any

from noeta import ContextPart, Deny, Extension, Gate, TaskView, Tool, ToolUse
from noeta_checklist.records import NAME, RECORD_TYPES, Used
from noeta_checklist.settings import ChecklistSettings
from noeta_checklist.state import Ticks, folded
from noeta_checklist.tick import Tick


class Checklist(Extension):
    """Calls that cannot be undone wait until a list is done, each call for itself."""

    name = NAME
    folds = ("core",)
    Settings = ChecklistSettings
    settings: ChecklistSettings
    record_types = RECORD_TYPES
    State = Ticks

    def __init__(self, **settings: Any) -> None:
        """Take the settings. Raises `SettingsError`."""
        super().__init__(**settings)
        self._tick = Tick(self.settings)

    def initial_state(self) -> Ticks:
        """Nothing is ticked off."""
        return Ticks()

    def reduce(self, state: Ticks, kind: str, data: Any) -> Ticks:
        """Tick off, or begin again."""
        return folded(state, kind, data)

    def tools(self, view: TaskView) -> list[Tool]:
        """The tool `tick`."""
        return [self._tick]

    def context(self, view: TaskView) -> list[ContextPart]:
        """The list. It is the same for the whole task, so it costs no prompt cache."""
        items = "\n".join(f"- {item}" for item in self.settings.left(Ticks()))
        tools = ", ".join(self.settings.tools)
        return [ContextPart(f"Before you call one of {tools}, do this and tick it off with tick:\n{items}")]

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        """Refuse a call that waits while an item is open. One that is let through uses the list up."""
        ticks: Ticks = view.ext_state(NAME)
        # A call is judged again right before it starts, and after a crash. It needs the list once.
        if not self.settings.waits(call.name) or call.id == ticks.used_by:
            return None
        if left := self.settings.left(ticks):
            return Deny(f"First do this and tick it off: {' '.join(left)}", source=f"{NAME}: items")
        view.record(NAME, "used", Used(call.id, call.name))
        return None
