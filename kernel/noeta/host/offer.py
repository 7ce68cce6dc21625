"""What a task offers its model at one step: the plugins' tools, the agent's lists, plugins' changes."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence

from noeta.core.codec import encode
from noeta.core.errors import told
from noeta.core.hooks import Hooks
from noeta.core.parts import Offer, ToolEntry
from noeta.core.tool import Tool, tool_flags
from noeta.core.view import Views
from noeta.host.fields import misnamed

_log = logging.getLogger("noeta")
_said: set[str] = set()
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What APIs let a tool be named."""
LEFT_OUT = "is left out, since"
MAX_JUDGED = 10_000
_judged: dict[int, tuple[Tool, str]] = {}
"""Why tools are left out, by identity, which nobody else gets while they are here."""


def offer(
    hooks: Hooks,
    desk: Views,
    allowed: Collection[str] | None,
    denied: Collection[str],
    prefer: Mapping[str, str] | None = None,
) -> Offer:
    """Ask the plugins what they offer. `allowed` (None: everything) and `denied` are the agent's lists.

    The first plugin that offers a name wins, unless `prefer` names another one that offers it too. A plugin's
    changes with a tool that the lists refuse are dropped. Either is logged once a process, as is a name in
    the lists that nobody offers. A tool that would have APIs refuse every request is left out, which is a
    failure of its plugin.
    """

    def listed(tool: Tool) -> bool:
        refused = tool.name in denied or (allowed is not None and tool.name not in allowed)
        return not refused or tool_flags(tool).past_agent_lists

    found: dict[str, tuple[str, Tool]] = {}
    given = hooks.tools(desk)
    for by, tools in given:
        _add(desk, found, by, [tool for tool in tools if listed(tool)], prefer or {})
    withheld: dict[str, str] = {}
    entries: list[tuple[str, ToolEntry]] = []
    added: list[tuple[str, Sequence[Tool]]] = []
    changed = hooks.tool_changes(desk, tuple(tool for _, tool in found.values()))
    for by, changes in changed:
        if refused := [tool.name for tool in changes.add if not listed(tool)]:
            _say(
                f"plugin {by!r} adds {refused[0]!r}, which the agent's lists refuse: its changes are dropped"
            )
            continue
        added.append((by, changes.add))
        withheld |= {name: why for name, why in changes.withhold.items() if name not in withheld}
        entries += [(by, entry) for entry in changes.entries]
    for by, tools in added:
        _add(desk, found, by, tools, prefer or {})
    if allowed is not None or denied:
        lists = [*(tools for _, tools in given), *(changes.add for _, changes in changed)]
        for text in misnamed(allowed, denied, {tool.name for tools in lists for tool in tools}):
            _say(text)
    return Offer(found, withheld, entries)


def _add(
    desk: Views, found: dict[str, tuple[str, Tool]], by: str, tools: Sequence[Tool], prefer: Mapping[str, str]
) -> None:
    for tool in tools:
        if why := _unfit(tool):
            desk.failed(by, "tools", f"the tool {tool.name!r} {LEFT_OUT} {why}", "open")
            continue
        first, _ = found.setdefault(tool.name, (by, tool))
        if prefer.get(tool.name) in {first, by}:
            # Kept in its place, so that the order of the tools does not depend on who is preferred.
            found[tool.name] = found[tool.name] if first == prefer[tool.name] else (by, tool)
        elif found[tool.name][1] is not tool:
            way_out = "Choose with prefer, leave one out, or change the order of the agent's plugins"
            _say(f"plugins {first!r} and {by!r} both offer {tool.name!r}: the first is used. {way_out}.")


def _unfit(tool: Tool) -> str:
    """Why APIs would refuse a request that lists this tool, else the empty text."""
    known = _judged.get(id(tool))
    if known is None or known[0] is not tool:
        if len(_judged) >= MAX_JUDGED:
            _judged.clear()
        known = _judged[id(tool)] = (tool, _judge(tool))
    return known[1]


def _judge(tool: Tool) -> str:
    if not NAME.fullmatch(tool.name):
        return "a name has 1 to 64 letters, digits, _ and - in it"
    if (given := tool.input_schema.get("type")) != "object":
        return f"its input is of type {given!r}, and has to be an 'object'"
    try:
        encode(0, 0.0, "tool", "schema", tool.input_schema)
    except Exception as error:
        return f"its schema is no JSON: {told(error)}"
    return ""


def _say(text: str) -> None:
    if text not in _said:
        _said.add(text)
        _log.warning(text)
