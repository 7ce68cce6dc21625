"""The agent that ships: `coder`, with what is installed of the standard plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from noeta.core.errors import ProviderError
from noeta.core.extension import Extension
from noeta.core.gates import Deny, Gate
from noeta.core.messages import ToolUse
from noeta.core.parts import ToolChanges
from noeta.core.ports import ModelRequest
from noeta.core.tool import Tool
from noeta.core.view import TaskView
from noeta.host.catalog import Catalog
from noeta.toolkit.agent import Agent
from noeta.toolkit.provider import ModelInfo

if TYPE_CHECKING:
    from noeta.host.agents import Composed

NAME = "coder"
PERMISSIONS = "permissions"
SMALL_PARAMETERS = 1_000_000_000
SMALL_TOOLS = ("Read", "Glob")
"""A model with fewer parameters than that picks the right one of two tools, and not of more."""

STANDARD = (
    "environment",
    "fs",
    "search",
    "shell",
    "web",
    "todo",
    "ask",
    "plan",
    "agents",
    "skills",
    "memory",
    "mcp",
    "hooks",
    "toolsearch",
    "compaction",
    "clearing",
    "checkpoints",
    PERMISSIONS,
)
"""The plugins of the agent, as far as they are installed."""

PROMPT = """\
You are a careful engineer who works in the person's project.
Look before you act: read what you are going to change, and what uses it.
Do what was asked, in the way the project does things, and nothing besides.
Check what you did by running it or its tests when you can, and say plainly what you did not check.
When something is unclear and a wrong guess would cost much, ask. Answer briefly."""

NO_PERMISSIONS = (
    "This agent has no plugin 'permissions' that could ask the person, so it only reads. "
    "Tell the person that installing it lets the agent change things."
)
SMALL = f"The model is small, so only {' and '.join(SMALL_TOOLS)} are offered."


class Bounds(Extension):
    """Keeps the agent to reading while nobody decides about its calls, and small models to two tools.

    It looks at the plugins and the model that a task has at that step, so settings that take `permissions`
    out are met too. Tools that others add late are covered: what is not offered is denied as well.
    """

    name = "coder"
    version = "1"

    def __init__(self) -> None:
        super().__init__()
        self._info: Callable[[str], ModelInfo] | None = None

    def lend(self, info: Callable[[str], ModelInfo]) -> None:
        """Ask `info` about models from now on."""
        self._info = info

    def tool_changes(self, view: TaskView, offered: Sequence[Tool]) -> ToolChanges | None:
        """Withhold what is out of bounds, so that a call to it is told why."""
        found = {tool.name: why for tool in offered if (why := self._why(view, tool.name, tool))}
        return ToolChanges(withhold=found) if found else None

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        """Leave out what other plugins added."""
        kept = [s for s in request.tools if not s.name or not self._why(view, s.name, view.find_tool(s.name))]
        return request if len(kept) == len(request.tools) else replace(request, tools=tuple(kept))

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        """Deny what is out of bounds, however the call came about."""
        why = self._why(view, call.name, view.find_tool(call.name))
        return Deny(why) if why else None

    def _why(self, view: TaskView, name: str, tool: Tool | None) -> str:
        """Why a tool is out of bounds, else the empty text."""
        asks = any(extension.name == PERMISSIONS for extension in view.extensions)
        if not asks and (tool is None or not tool.read_only):
            return NO_PERMISSIONS
        return SMALL if name not in SMALL_TOOLS and self._is_small(view.model) else ""

    def _is_small(self, model: str) -> bool:
        if self._info is None:
            return False
        try:
            parameters = self._info(model).parameters
        except ProviderError:
            # The call of the model says what is wrong with it.
            return False
        return parameters is not None and parameters < SMALL_PARAMETERS


def coder(catalog: Catalog) -> Agent:
    """The agent `coder` with those of the standard plugins that `catalog` has. Imports none of them."""
    installed = [name for name in STANDARD if catalog.find(name) is not None]
    about = "Works on code and files of a project: reads, changes, runs, checks."
    return Agent(NAME, prompt=PROMPT, plugins=[*installed, Bounds()], description=about)


def lend(agents: Mapping[str, Composed], info: Callable[[str], ModelInfo]) -> None:
    """Let those plugins of the agents that look at models ask `info`."""
    for composed in agents.values():
        for extension in composed.hooks.extensions:
            if isinstance(extension, Bounds):
                extension.lend(info)
