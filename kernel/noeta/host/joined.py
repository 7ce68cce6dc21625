"""The plugins of an agent: those of its list, then those of plugin files, and why each is in it or not."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from noeta.core.errors import SettingsError
from noeta.core.extension import Extension
from noeta.core.text import meant
from noeta.host.catalog import EXTENSIONS, Catalog
from noeta.host.coder import Bounds
from noeta.host.fields import check_fields
from noeta.host.layers import PlaceError
from noeta.host.registry import check_class, check_instance
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.settings import of_every_place

_log = logging.getLogger("noeta")


class Joined:
    """Makes the plugins that agents name, each once, and remembers why each came to be in or out."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog, self._settings = catalog, catalog.settings
        self._made: dict[str, Extension] = {}
        self._why: dict[tuple[str, str], str] = {}

    def plugins_of(self, agent: Agent) -> Agent:
        """The agent, with a plugin in the place of each name, and with those that join it.

        Raises `ComposeError` and `SettingsError`.
        """
        if isinstance(agent.plugins, str):
            place = f"agent {agent.name!r}"
            raise ComposeError(agent.plugins, place, "plugins is a text", f"Write [{agent.plugins!r}]")
        check_fields(agent)
        made = [self._named(agent, p) if isinstance(p, str) else self._given(agent, p) for p in agent.plugins]
        plugins = [each for each in made if each is not None]
        plugins += self._joining(agent, plugins)
        return replace(agent, plugins=plugins, prefer={**self._settings.prefer, **agent.prefer})

    def why(self, agent: str, plugin: str) -> str:
        """A sentence about why a plugin is in an agent that was put together, or is not."""
        said = self._why.get((agent, plugin))
        if said is not None:
            return f"Plugin {plugin!r} is {said}."
        out = f"Plugin {plugin!r} is not in agent {agent!r}: "
        entry = self._catalog.find(plugin)
        if entry is None:
            names = [each.name for each in self._catalog.entries() if each.group == EXTENSIONS]
            return f"{out}nothing here has this name{meant(plugin, names)}."
        who = entry.path or f"{entry.distribution} {entry.version}"
        if entry.reason:
            return f"{out}it is {entry.state} ({entry.reason})."
        if entry.path:
            joins = " and ".join(map(repr, entry.add_to)) or "no agent"
            return f"{out}its list does not name it, and add_to in {who} says {joins}."
        return f"{out}its list does not name it. It is installed with {who}."

    def _named(self, agent: Agent, name: str) -> Extension | None:
        entry = self._catalog.find(name)
        if entry is not None and entry.state in {"blocked", "disabled"}:
            self._out(agent, name, f"it is {entry.state} ({entry.reason})")
            return None
        if name not in self._made:
            self._made[name] = self._catalog.extension(name, f"agent {agent.name!r}")
        who = entry and (entry.path or f"{entry.distribution} {entry.version}")
        self._why[agent.name, name] = f"in agent {agent.name!r}: its list names it, and {who} has it"
        return self._made[name]

    def _given(self, agent: Agent, plugin: Any) -> Extension | None:
        """A plugin that code gives, unless it is off."""
        name = getattr(plugin, "name", None)
        if not isinstance(plugin, Extension) or not isinstance(name, str):
            # Refused with the others' mistakes.
            return plugin  # type: ignore[no-any-return]
        settings = self._settings
        if why := self._blocked(name) or settings.off(name):
            if plugin.required or isinstance(plugin, Bounds):
                way_out = "Allow it, or run another agent"
                raise ComposeError(name, f"agent {agent.name!r}", f"it is required, and off: {why}", way_out)
            self._out(agent, name, f"it is off ({why})")
            return None
        self._why[agent.name, name] = f"in agent {agent.name!r}: code put it into its list"
        return self._set(plugin, settings.above_code("plugins", name))

    def _blocked(self, name: str) -> str:
        """Why managed settings block a plugin of code: by its name, or as who offers that name is blocked."""
        if not self._settings.names("blocked"):
            return ""
        entry = self._catalog.find(name)
        found = entry.reason if entry is not None and entry.state == "blocked" else ""
        return found or self._settings.blocked((name,), str)

    def _set(self, plugin: Extension, given: dict[str, Any]) -> Extension:
        """The plugin with settings that go before those of code."""
        if not given:
            return plugin
        if type(plugin).__init__ is not Extension.__init__:
            why = "it is an instance that makes its own settings, so those that rule here cannot be applied"
            raise ComposeError(plugin.name, "its settings", why, "Name it in the list instead")
        with self._settings.told("plugins", plugin.name):
            known = asdict(plugin.settings) if isinstance(plugin.settings, msgspec.Struct) else {}
            for field in of_every_place(plugin.Settings):
                given = {**given, field: [*given.get(field, ()), *known.get(field, ())]}
            made = copy.copy(plugin)
            Extension.__init__(made, **{**known, **given})
        return made

    def _joining(self, agent: Agent, plugins: Sequence[Extension]) -> list[Extension]:
        """The plugins of files that join the agent. One that cannot be had is left out, unless required."""
        there, joined = {plugin.name for plugin in plugins}, []
        for name in self._catalog.joining(agent.name):
            if name in there:
                continue
            try:
                if name not in self._made:
                    made = self._catalog.extension(name, f"agent {agent.name!r}")
                    check_instance(made)
                    check_class(type(made), name)
                    self._made[name] = made
            except PlaceError:
                raise
            except (ComposeError, SettingsError) as error:
                if self._catalog.required(name):
                    raise
                _log.warning("agent %r does without: %s", agent.name, error)
                self._out(agent, name, error.why)
                continue
            entry = self._catalog.find(name)
            where = entry.path if entry else ""
            self._why[agent.name, name] = f"in agent {agent.name!r}: {where} adds it"
            joined.append(self._made[name])
        return joined

    def _out(self, agent: Agent, name: str, why: str) -> None:
        self._why[agent.name, name] = f"not in agent {agent.name!r}: {why}"
