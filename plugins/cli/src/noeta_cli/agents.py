"""The command `agents`: which agents there are, on which models and with which plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from noeta_cli.output import bold, show, show_json
from noeta_cli.stores import json_option, read_settings

if TYPE_CHECKING:
    from noeta import Agent
    from noeta.host.catalog import Catalog


@click.command(short_help="List the agents there are.")
@json_option
def agents(as_json: bool) -> None:
    """List the agents of this folder: model and why, plugins and why, tools, and where each agent is from."""
    from noeta.host.catalog import Catalog
    from noeta.host.settings_agents import agents_from
    from noeta_cli.outlet import told

    with told():
        catalog = Catalog(read_settings())
        found = [_described(agent, catalog) for agent in agents_from(catalog)]
    if as_json:
        show_json(found)
        return
    for each in found:
        click.echo(bold(each["name"]))
        if each["description"]:
            show(f"  {each['description']}")
        show(f"  from     {each['from']}")
        show(f"  model    {each['reason']}")
        for plugin in each["plugins"]:
            show(f"  plugin   {' '.join(filter(None, (plugin['name'], plugin['version'])))}: {plugin['why']}")
        show(f"  tools    {_tools(each)}")
        if each["fault"]:
            show(f"  fault    {each['fault']}")


def _described(agent: Agent, catalog: Catalog) -> dict[str, Any]:
    from noeta import NoetaError
    from noeta.host.agents import Agents
    from noeta.host.catalog import PROVIDERS
    from noeta.host.model_choice import choose_model
    from noeta_cli.team import fault_of

    providers = {entry.name for entry in catalog.entries() if entry.group == PROVIDERS}
    plugins: list[dict[str, str]] = []
    try:
        made = Agents([agent], catalog=catalog)
    except (NoetaError, ValueError, TypeError):
        names = [each if isinstance(each, str) else each.name for each in agent.plugins]
        plugins = [{"name": name, "version": "", "why": "its list names it"} for name in names]
    else:
        for plugin in made[agent.name].plugins:
            why = made.why(agent.name, plugin.name)
            plugins.append({"name": plugin.name, "version": plugin.version, "why": why})
    return {
        "name": agent.name,
        "description": agent.description,
        "from": _place(agent.name, catalog),
        "model": agent.model,
        "reason": choose_model(catalog.settings, agent.name, providers=providers).reason,
        "fallbacks": agent.fallbacks,
        "plugins": plugins,
        "tools": agent.tools,
        "denied": agent.denied,
        "fault": fault_of(agent, catalog),
    }


def _place(name: str, catalog: Catalog) -> str:
    """Where an agent is from."""
    from noeta.host import coder

    held = sorted(
        {str(value.place) for value in catalog.settings.values() if value.key[:2] == ("agents", name)}
        or {str(value.place) for value in [catalog.settings.value("agents", name, "")] if value}
    )
    if name != coder.NAME:
        return ", ".join(held)
    return f"noeta, changed in {', '.join(held)}" if held else "noeta"


def _tools(described: dict[str, Any]) -> str:
    tools = "those of its plugins" if described["tools"] is None else ", ".join(described["tools"]) or "none"
    return f"{tools}, without {', '.join(described['denied'])}" if described["denied"] else tools
