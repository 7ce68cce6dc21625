"""The agents a host can run, put together: their plugins in order, checked, and ready to fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct

from noeta.core.extension import Extension
from noeta.core.fold import Folder
from noeta.core.records import Plugin
from noeta.core.text import meant
from noeta.host.catalog import Catalog
from noeta.host.joined import Joined
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
    """The agents of a host by name. Agents that name the same plugin share one instance of it.

    Raises `ComposeError` for one that cannot be put together, and `SettingsError` for a plugin that is named
    and cannot do without settings. Raises `TypeError` for what is no list of agents, and `ValueError` for an
    agent without a name and for two of one name.
    """

    def __init__(
        self, agents: Sequence[Agent], registry: Registry | None = None, catalog: Catalog | None = None
    ) -> None:
        registry, self._joined = registry or Registry(), Joined(catalog or Catalog())
        _check(agents)
        self.by_name: Mapping[str, Agent] = {agent.name: self._joined.plugins_of(agent) for agent in agents}
        self._composed = {name: _composed(agent, registry) for name, agent in self.by_name.items()}

    def known(self, name: str) -> Composed:
        """The agent `name`. Raises `ValueError`, with a hint, when there is none."""
        if name not in self._composed:
            raise ValueError(f"there is no agent {name!r}{meant(name, self._composed)}")
        return self._composed[name]

    def why(self, agent: str, plugin: str) -> str:
        """A sentence about why a plugin is in an agent or not. Raises `ValueError` as `known` does."""
        return self._joined.why(self.known(agent).agent.name, plugin)

    def __getitem__(self, name: str) -> Composed:
        return self._composed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._composed)

    def __len__(self) -> int:
        return len(self._composed)


def _check(agents: Sequence[Agent]) -> None:
    if isinstance(agents, Agent):
        raise TypeError(f"agents is the one agent {agents.name!r}; write a list, [agent]")
    given: object = agents
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise TypeError(f"agents is of type {type(given).__name__}; write a list, [Agent(...)]")
    names: set[str] = set()
    for agent in agents:
        if not isinstance(agent, Agent):
            raise TypeError(f"the list of agents holds a {type(agent).__name__}; write Agent(...)")
        if not agent.name.strip():
            raise ValueError("an agent has no name; write Agent('coder', ...)")
        if agent.name in names:
            raise ValueError(f"two agents have the name {agent.name!r}; rename or drop one of them")
        names.add(agent.name)


def _composed(agent: Agent, registry: Registry) -> Composed:
    # Whatever is no plugin is refused with the others' mistakes.
    hooks = registry.compose(cast("Sequence[Extension]", agent.plugins))
    plugins = [Plugin(name=e.name, version=e.version, required=e.required) for e in hooks.extensions]
    return Composed(agent, hooks, tuple(plugins), Folder([reducer(e, e.version) for e in hooks.extensions]))
