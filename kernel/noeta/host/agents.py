"""The agents a host can run, put together: their plugins in order, checked, and ready to fold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from noeta.core.extension import Extension
from noeta.core.fold import Folder
from noeta.core.records import Plugin
from noeta.core.text import meant
from noeta.host.registry import Registry
from noeta.toolkit.agent import Agent
from noeta.toolkit.dispatch import Hooks
from noeta.toolkit.reducers import reducer


class Composed(Struct, frozen=True):
    """An agent with its hooks compiled, its plugins as a log remembers them, and its fold."""

    agent: Agent
    hooks: Hooks
    plugins: tuple[Plugin, ...]
    folder: Folder


class Agents(Mapping[str, Composed]):
    """The agents of a host by name. Raises `ComposeError` for one that cannot be put together."""

    def __init__(self, agents: Sequence[Agent], registry: Registry | None = None) -> None:
        registry = registry or Registry()
        self._composed = {agent.name: _composed(agent, registry) for agent in agents}
        self.by_name: Mapping[str, Agent] = {agent.name: agent for agent in agents}

    def known(self, name: str) -> Composed:
        """The agent `name`. Raises `ValueError`, with a hint, when there is none."""
        if name not in self._composed:
            raise ValueError(f"there is no agent {name!r}{meant(name, self._composed)}")
        return self._composed[name]

    def __getitem__(self, name: str) -> Composed:
        return self._composed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._composed)

    def __len__(self) -> int:
        return len(self._composed)


def _composed(agent: Agent, registry: Registry) -> Composed:
    extensions = [plugin for plugin in agent.plugins if isinstance(plugin, Extension)]
    hooks = registry.compose(extensions)
    plugins = [Plugin(name=e.name, version=e.version, required=e.required) for e in hooks.extensions]
    return Composed(agent, hooks, tuple(plugins), Folder([reducer(e, e.version) for e in hooks.extensions]))
