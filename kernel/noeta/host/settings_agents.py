"""The agents that settings describe, as `Agent`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from noeta.host import coder
from noeta.host.catalog import PROVIDERS, Catalog
from noeta.host.model_choice import choose_model
from noeta.toolkit.agent import Agent


def agents_from(catalog: Catalog, *, given: Sequence[Agent] = (), model: str = "") -> list[Agent]:
    """Every agent there is: those of the settings of `catalog`, those `given` by a program, and `coder`.

    What ``[agents.NAME]`` says about a given agent, or about `coder`, replaces what that one says, unless
    the program's word goes before that of the place. `model` is the model of the command line, for all of
    them. Plugins stay names; a `Host` with the same settings looks them up.
    """
    settings, made = catalog.settings, {agent.name: agent for agent in given}
    shipped = {} if coder.NAME in made else {coder.NAME: coder.coder(catalog)}
    providers = {entry.name for entry in catalog.entries() if entry.group == PROVIDERS}
    found: list[Agent] = []
    for name in [*made, *shipped, *(n for n in settings.names("agents") if n not in {*made, *shipped})]:
        agent = made.get(name) or shipped.get(name) or Agent(name)
        above = settings.above_code("agents", name)
        said: dict[str, Any] = above if name in made else settings.table("agents", name)
        if name in shipped and "plugins" in said:
            # Whatever list settings give it, what keeps the agent in bounds stays.
            said["plugins"] = [*said["plugins"], *(p for p in agent.plugins if isinstance(p, coder.Bounds))]
        own = agent.model if name in made else ""
        agent = replace(agent, **said)
        chosen = choose_model(settings, name, own=own, flag=model, providers=providers)
        fallbacks = [
            *chosen.fallbacks,
            *(m for each in agent.fallbacks for m in settings.models.get(each, (each,))),
        ]
        found.append(replace(agent, model=chosen.model, fallbacks=fallbacks))
    return found
