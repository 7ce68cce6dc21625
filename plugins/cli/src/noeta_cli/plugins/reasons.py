"""`noeta plugins why`: the reason why an agent has a plugin, or does without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from noeta_cli.exits import DONE, FAILED
from noeta_cli.output import show
from noeta_cli.plugins.here import agents_here, catalog_here, named, put_together

if TYPE_CHECKING:
    from noeta import Agent
    from noeta.host.catalog import Catalog


@click.command("why")
@click.argument("name")
@click.option("--agent", metavar="NAME", default=None, help="Ask about this agent alone.")
def why(name: str, agent: str | None) -> int:
    """Say why an agent has the plugin NAME, or why not: a sentence for each agent.

    Ends with 1 when an agent cannot be put together, which is then the sentence.
    """
    catalog = catalog_here()
    agents = agents_here(catalog, agent)
    given = {each.name for one in agents for each in one.plugins if not isinstance(each, str)}
    if name not in given:
        named(catalog, name)
    return max([_told(catalog, each, name) for each in agents], default=DONE)


def _told(catalog: Catalog, agent: Agent, name: str) -> int:
    from noeta.toolkit.errors import ComposeError
    from noeta.toolkit.settings import SettingsError

    try:
        show(put_together(catalog, agent).why(agent.name, name))
    except (ComposeError, SettingsError) as error:
        show(f"Agent {agent.name!r} cannot be put together: {error}")
        return FAILED
    return DONE
