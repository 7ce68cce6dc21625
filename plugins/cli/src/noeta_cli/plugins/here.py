"""The plugins of the folder that a command stands in: the catalog, its agents, and names in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from noeta_cli.stores import read_settings

if TYPE_CHECKING:
    from noeta import Agent
    from noeta.host.agents import Agents
    from noeta.host.catalog import Catalog, Entry

USABLE = ("not imported", "imported")
"""The states of what an agent can have."""


def catalog_here() -> Catalog:
    """The catalog with the settings of this folder. Raises `SettingsError`."""
    from noeta.host.catalog import Catalog

    return Catalog(read_settings())


def kind(entry: Entry) -> str:
    """What an entry is, in a word."""
    from noeta.host.catalog import GROUPS

    return GROUPS[entry.group]


def place(entry: Entry) -> str:
    """Where it comes from: a file, or a distribution."""
    return entry.path or entry.distribution


def agents_here(catalog: Catalog, only: str | None = None) -> list[Agent]:
    """Every agent, or the one named. Raises `ClickException` for one that there is not."""
    from noeta.host.settings_agents import agents_from
    from noeta.toolkit.errors import meant

    agents = agents_from(catalog)
    if only is None:
        return agents
    chosen = [agent for agent in agents if agent.name == only]
    if not chosen:
        names = [agent.name for agent in agents]
        hint = meant(only, names) or f"; there are {', '.join(names)}"
        raise click.ClickException(f"there is no agent {only!r}{hint}.")
    return chosen


def of_agent(catalog: Catalog, agent: Agent) -> list[str]:
    """The names of an agent's plugins, whether they can be had or not, those of files that join it last."""
    named = [each if isinstance(each, str) else each.name for each in agent.plugins]
    return list(dict.fromkeys([*named, *catalog.joining(agent.name)]))


def put_together(catalog: Catalog, agent: Agent) -> Agents:
    """The agent alone, put together. Raises `ComposeError` and `SettingsError`."""
    from noeta.host.agents import Agents

    return Agents([agent], catalog=catalog)


def named(catalog: Catalog, name: str) -> list[Entry]:
    """Everything on offer under a name. Raises `ClickException`, with what may be meant, for nothing."""
    from noeta.toolkit.errors import meant

    entries = catalog.entries()
    if found := [entry for entry in entries if entry.name == name]:
        return found
    raise click.ClickException(
        f"nothing here has the name {name!r}{meant(name, _names(entries))}. 'noeta plugins list' lists all."
    )


def _names(entries: Iterable[Entry]) -> list[str]:
    return list(dict.fromkeys(entry.name for entry in entries))
