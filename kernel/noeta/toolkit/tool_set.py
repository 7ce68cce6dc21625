"""A plain list of tools as a plugin."""

from __future__ import annotations

from collections.abc import Sequence

from noeta.core.extension import Extension
from noeta.core.tool import Tool
from noeta.core.view import TaskView


class ToolSet(Extension):
    """A plain list of tools as a plugin."""

    def __init__(self, tools: Sequence[Tool], name: str = "tools") -> None:
        """Take the tools, and the name of the plugin that they make."""
        self.name = name
        self._tools = tuple(tools)

    def tools(self, view: TaskView) -> Sequence[Tool]:
        """The tools of the list."""
        return self._tools
