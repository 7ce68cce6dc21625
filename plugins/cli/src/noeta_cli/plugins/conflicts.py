"""`noeta plugins conflicts`: names and tools that are offered more than once, and who has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from noeta_cli.exits import DONE, FAILED, USAGE
from noeta_cli.output import note, show, show_json
from noeta_cli.plugins.here import agents_here, catalog_here, kind, place, put_together
from noeta_cli.stores import json_option

if TYPE_CHECKING:
    from noeta import Agent
    from noeta.host.catalog import Catalog


class Conflict(Struct, frozen=True, kw_only=True):
    """A name that several offer.

    `settled` is the setting that says who has it, empty when that is the first.
    """

    what: str
    name: str
    winner: str
    losers: list[str]
    agent: str = ""
    settled: str = ""

    def __str__(self) -> str:
        where = f"agent {self.agent!r}: " if self.agent else ""
        losers = " and ".join(self.losers)
        text = (
            f"{where}{self.what} {self.name!r} is offered by {self.winner} and {losers}; {self.winner} has it"
        )
        if self.settled:
            return f"{text}, as {self.settled} says."
        if self.what == "tool":
            return f'{text}, being first. Choose in settings: prefer.{self.name} = "{self.losers[0]}"'
        return f"{text}. Rename or remove the other one."


@click.command("conflicts")
@click.option("--agent", metavar="NAME", default=None, help="Look at the tools of this agent alone.")
@json_option
def conflicts(agent: str | None, as_json: bool) -> int:
    """Show names and tools that are offered more than once, and who has them.

    Ends with 1 when there are some. A tool for which the settings name a plugin in [prefer] is shown and is
    none. The plugins of the agents are imported and asked for their tools. Ends with 2 when an agent cannot
    be put together.
    """
    from noeta.toolkit.errors import ComposeError
    from noeta.toolkit.settings import SettingsError

    catalog = catalog_here()
    found, unknown = [*_of_names(catalog)], False
    for each in agents_here(catalog, agent):
        try:
            found += _of_tools(catalog, each)
        except (ComposeError, SettingsError) as error:
            unknown = True
            note(f"agent {each.name!r} cannot be put together, so its tools are unknown: {error}")
    if as_json:
        show_json(found)
    else:
        show("\n".join(map(str, found)) if found else "Nothing is offered twice.")
    if unknown:
        return USAGE
    return FAILED if any(not each.settled for each in found) else DONE


def _of_names(catalog: Catalog) -> Iterator[Conflict]:
    entries = catalog.entries()
    for entry in entries:
        same = [each for each in entries if (each.group, each.name) == (entry.group, entry.name)]
        losers = [place(each) for each in same if each.state == "shadowed"]
        if losers and entry.state != "shadowed" and entry == catalog.find(entry.name, entry.group):
            yield Conflict(what=kind(entry), name=entry.name, winner=place(entry), losers=losers)


def _of_tools(catalog: Catalog, agent: Agent) -> Iterator[Conflict]:
    """The tools that several plugins of an agent offer. Raises as putting the agent together does."""
    from noeta.testing.views import Rehearsal

    agents = put_together(catalog, agent)
    # The agent as it was put together also knows what the settings prefer.
    known = agents.by_name[agent.name]
    task = Rehearsal(*agents[agent.name].hooks.extensions, strict=False)
    offering: dict[str, list[str]] = {}
    for by, tools in task.hooks.tools(task):
        for tool in tools:
            if by not in (names := offering.setdefault(tool.name, [])) and _listed(known, tool):
                names.append(by)
    for name, names in sorted(offering.items()):
        if len(names) > 1:
            preferred = known.prefer.get(name, "")
            winner = preferred if preferred in names else names[0]
            yield Conflict(
                what="tool",
                name=name,
                winner=winner,
                losers=[each for each in names if each != winner],
                agent=agent.name,
                settled=f'prefer.{name} = "{preferred}"' if preferred in names else "",
            )


def _listed(agent: Agent, tool: object) -> bool:
    """Whether the lists of the agent let a tool through."""
    from noeta import ToolFlags

    name = getattr(tool, "name", "")
    flags = getattr(tool, "flags", None)
    past = isinstance(flags, ToolFlags) and flags.past_agent_lists
    return past or not (name in agent.denied or (agent.tools is not None and name not in agent.tools))
