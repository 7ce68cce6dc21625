"""A plain list of tools as a plugin."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isfunction

from noeta.core.extension import Extension
from noeta.core.tool import Tool
from noeta.core.view import TaskView


class ToolSet(Extension):
    """A plain list of tools as a plugin."""

    def __init__(self, tools: Sequence[Tool], name: str = "tools") -> None:
        """Take the tools, and the name of the plugin that they make.

        Raises `TypeError` for a function that is no tool yet, and `ValueError` for two tools of one name.
        """
        self.name = name
        self._tools = tuple(tools)
        names: set[str] = set()
        given: tuple[object, ...] = self._tools
        for tool in given:
            if isfunction(tool):
                raise TypeError(f"{tool.__name__!r} is a function and no tool; write @function_tool above it")
            # One without a name is refused where every plugin's tools are, with the name of the plugin.
            if (known := getattr(tool, "name", None)) in names:
                raise ValueError(f"two tools have the name {known!r}; rename or drop one of them")
            if known is not None:
                names.add(known)

    def tools(self, view: TaskView) -> Sequence[Tool]:
        """The tools of the list."""
        return self._tools
