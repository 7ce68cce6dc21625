"""What a hook may answer: values of its types, that a log can hold, and tools that are tools."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from noeta.core.codec import encode
from noeta.core.gates import Ask, Rewrite
from noeta.core.messages import Message, Text, unfit
from noeta.core.parts import Reminder, ToolChanges, ToolEntry
from noeta.core.ports import ModelRequest
from noeta.core.tool import ToolFlags, tool_flags

if TYPE_CHECKING:
    from noeta.toolkit.hooks import Hook

MEMBERS: Mapping[str, type] = {
    "name": str,
    "description": str,
    "input_schema": dict,
    "read_only": bool,
    "clearable": bool,
}
"""What every tool says of itself."""
NONE = type(None)
MAX_FINE = 1_000
_fine: dict[int, Any] = {}
"""Tools that were found to be tools, by identity, which nobody else gets while they are here."""


def checked(plugin: str, hook: Hook, value: Any) -> Any:
    """The answer that `plugin` gave to `hook`, if it may be one; raises `TypeError` or `NotStorable`."""
    values: list[Any] = [value]
    if hook.many:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise TypeError(f"its answer is of type {type(value).__name__}, not a list")
        value = values = list(value)
    for given in values if hook.gives else ():
        if not isinstance(given, hook.gives):
            names = " or ".join("None" if type_ is NONE else type_.__name__ for type_ in hook.gives)
            raise TypeError(f"its answer is of type {type(given).__name__}, not {names}")
        if isinstance(given, ToolChanges):
            _check_changes(given.add, given.entries, given.withhold)
        elif not isinstance(given, ModelRequest | bool | None):
            kind = given.kind if isinstance(given, Reminder) else hook.name
            encode(0, 0.0, plugin, kind, dict(given) if isinstance(given, Mapping) else given)
            if isinstance(given, Ask | Rewrite):
                # The record of what everybody said of a call is nested deeper.
                encode(0, 0.0, plugin, kind, [[[given]]])
            if (said := _said(given)) and (why := unfit(said)):
                raise TypeError(f"its message would spoil the conversation: {why}")
    if hook.name == "tools":
        _check_tools(values)
    return value


def _said(given: object) -> Message | None:
    """The message that the answer adds to the conversation."""
    if isinstance(given, Reminder):
        return Message(role=given.role, content=[Text(text=given.text)])
    return given if isinstance(given, Message) else None


def not_yet(tool: object) -> str:
    """Why this is no tool yet but may become one, and how; the empty text for anything else."""
    if isinstance(tool, type):
        return f"is the class {tool.__name__}. Write {tool.__name__}()"
    if inspect.isroutine(tool):
        return f"is the function {tool.__name__}. Make a tool of it with function_tool"
    return ""


def _check_tools(tools: Sequence[Any]) -> None:
    for tool in tools:
        # Asked for twice a step, and nearly always the same ones.
        if id(tool) in _fine:
            continue
        if why := not_yet(tool):
            raise TypeError(f"a tool it gives {why}")
        for member, type_ in MEMBERS.items():
            if not isinstance(getattr(tool, member, None), type_):
                shown = getattr(tool, "name", None) or type(tool).__name__
                raise TypeError(f"the {member} of its tool {shown!r} is no {type_.__name__}")
        if not isinstance(tool_flags(tool), ToolFlags):
            raise TypeError(f"the flags of its tool {tool.name!r} are no ToolFlags")
        if len(_fine) >= MAX_FINE:
            _fine.clear()
        _fine[id(tool)] = tool


def _check_changes(add: Any, entries: Any, withhold: Any) -> None:
    if not isinstance(add, Sequence) or not isinstance(entries, Sequence):
        raise TypeError("what it adds and its entries are no lists")
    _check_tools(add)
    if not all(isinstance(entry, ToolEntry) for entry in entries):
        raise TypeError("its entries are not of type ToolEntry")
    if not isinstance(withhold, Mapping) or not all(
        isinstance(text, str) for text in (*withhold, *withhold.values())
    ):
        raise TypeError("what it withholds is no dict from names to texts")
