"""The agents of a command that runs tasks, put together once to see whether they can be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noeta_cli.opening import must_have
from noeta_cli.output import note
from noeta_cli.readers import Wrong

if TYPE_CHECKING:
    from noeta import Agent, Extension
    from noeta.host.catalog import Catalog
    from noeta.host.settings import Settings

LOCAL = "local"
"""Where tools act when no settings say where."""


def team_of(
    catalog: Catalog, *, main: str = "", model: str = "", plugins: Sequence[str | Extension] = ()
) -> list[Agent]:
    """The agents that can be run here. What is said of the others goes to standard error.

    The agent `main` gets `plugins` besides its own. Raises for it what `Agents` raises, and
    `Wrong` when there is none of this name, or none at all.
    """
    from msgspec.structs import replace

    from noeta.host.settings_agents import agents_from

    found, kept = {agent.name: agent for agent in agents_from(catalog, model=model)}, list["Agent"]()
    if main:
        if main not in found:
            raise Wrong(no_agent(main, [*found]))
        agent = found.pop(main)
        there = [*agent.plugins]
        more = [each for each in plugins if not (isinstance(each, str) and each in there)]
        kept.append(replace(agent, plugins=[*there, *dict.fromkeys(more)]))
        check(kept[0], catalog)
    for agent in found.values():
        if why := fault_of(agent, catalog):
            note(f"agent {agent.name!r} is left out: {why}")
        else:
            kept.append(agent)
    if not kept:
        raise Wrong("there is no agent that could run; noeta agents says why")
    return kept


def no_agent(name: str, known: Sequence[str]) -> str:
    """That there is no such agent, for people."""
    from noeta.toolkit.errors import meant

    return f"there is no agent {name!r}{meant(name, known)}; noeta agents lists them"


def check(agent: Agent, catalog: Catalog) -> Any:
    """The agent as it is put together. Raises what `Agents` raises, and for a model that nobody has."""
    from noeta.host.agents import Agents
    from noeta.host.catalog import PROVIDERS
    from noeta.host.given import check_models

    agents = Agents([agent], catalog=catalog)
    provider, colon, _ = agent.model.partition(":")
    if colon:
        must_have(catalog, PROVIDERS, provider, f"agent {agent.name!r} runs on {agent.model}, whose provider")
    check_models([agent], {}, catalog)
    return agents


def fault_of(agent: Agent, catalog: Catalog) -> str:
    """Why an agent cannot be run, else the empty text."""
    from noeta import NoetaError

    try:
        check(agent, catalog)
    except Wrong as error:
        return error.message
    except (NoetaError, ValueError, TypeError) as error:
        return str(error)
    return ""


def place_to_act(settings: Settings, catalog: Catalog) -> str:
    """The name of the environment. Raises `Wrong` for the usual one when it is not there."""
    from noeta.host.catalog import ENVIRONMENTS

    name: str = settings.chosen("env", None, "") or LOCAL
    must_have(catalog, ENVIRONMENTS, name, "tools act through the environment")
    return name


def plugins_of(catalog: Catalog, given: Sequence[str]) -> list[str | Extension]:
    """The plugins that a command line names: by name, or as a file, whose plugins all join."""
    found: list[str | Extension] = []
    for text in given:
        if text.endswith(".py") or "/" in text:
            found += _of_file(catalog, Path(text))
        else:
            found.append(text)
    return found


def check_off(catalog: Catalog, names: Sequence[str], agent: Agent | None) -> None:
    """Raise `Wrong` for a plugin that is to be left out and is not known at all."""
    from noeta.host.catalog import EXTENSIONS
    from noeta.toolkit.errors import meant

    own = [p if isinstance(p, str) else p.name for p in (agent.plugins if agent else ())]
    known = {*own, *(entry.name for entry in catalog.entries() if entry.group == EXTENSIONS)}
    for name in names:
        if name not in known:
            raise Wrong(f"--no-plugin: there is no plugin {name!r}{meant(name, known)}")


def _of_file(catalog: Catalog, path: Path) -> list[Extension]:
    """The plugins of a file that the person names, which is as good as trusting it as it is now."""
    from noeta.host.plugin_files import PluginFile
    from noeta.host.trust import Looked, read_whole
    from noeta.toolkit.trust import digest

    settings = catalog.settings
    if settings.safe:
        raise Wrong(f"--safe leaves plugin files out, and --plugin names {path}")
    try:
        data, _ = read_whole(path)
    except OSError as error:
        raise Wrong(f"--plugin {path}: it cannot be read: {error.strerror or error}") from None
    file = PluginFile(Looked(path=path.resolve(), kind="plugin file", data=data, sha256=digest(data)))
    names = [path.stem, *(said.name for said in file.declared)]
    if why := file.fault or settings.blocked(names, lambda: file.looked.sha256):
        raise Wrong(f"--plugin {path}: {why}")
    try:
        classes = file.classes()
    except Exception as error:
        raise Wrong(f"--plugin {path}: it could not be imported: {type(error).__name__}: {error}") from error
    made: list[Extension] = []
    for name, class_ in classes.items():
        with settings.told("plugins", name):
            made.append(class_(**settings.table("plugins", name)))
    return made
