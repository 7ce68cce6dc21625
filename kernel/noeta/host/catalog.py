"""The catalog: what is on offer under a name, found without importing any of it.

A distribution offers something in an entry-point group: plugins are classes, the ports are made by factories.
A plugin file offers plugins. What is imported is imported when it is used, once. One that cannot be used is
an entry with a reason, and stands in nobody's way.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from noeta.core.errors import SettingsError
from noeta.core.extension import Extension
from noeta.core.text import meant
from noeta.host.offered import ENVIRONMENTS as ENVIRONMENTS
from noeta.host.offered import EXTENSIONS as EXTENSIONS
from noeta.host.offered import GROUPS as GROUPS
from noeta.host.offered import PROVIDERS as PROVIDERS
from noeta.host.offered import READERS as READERS
from noeta.host.offered import STORES as STORES
from noeta.host.offered import Offered, Packaged, installed, normal
from noeta.host.plugin_files import Filed, plugin_files
from noeta.host.settings import SAFE, Settings
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.provider import Provider
from noeta.toolkit.settings import of_every_place
from noeta.toolkit.store import Reader, Store

State = Literal["not imported", "imported", "failed", "shadowed", "blocked", "untrusted", "disabled"]

_TABLES = {PROVIDERS: "providers", STORES: "stores", READERS: "stores", ENVIRONMENTS: "environments"}
_log = logging.getLogger("noeta")
_said: set[tuple[Path, str]] = set()
"""What was said of plugin files. Another catalog of the process need not say it again."""


class Entry(Struct, frozen=True, kw_only=True):
    """What one distribution, or one plugin file, offers under one name.

    `state` says how far it came: ``not imported``, ``imported``, ``failed``, ``shadowed`` by another that
    offers the same name, ``blocked`` by managed settings or safe mode, ``untrusted``, or ``disabled`` by
    settings. `reason` says why for all but the first two. `seconds` is how long the import took, None while
    there was none. `add_to` are the agents that a plugin of a file joins by itself.
    """

    group: str
    name: str
    distribution: str
    version: str
    state: State
    reason: str = ""
    seconds: float | None = None
    path: str = ""
    add_to: tuple[str, ...] = ()


class Catalog:
    """What is installed, and the plugin files of `settings`. Without settings there are no plugin files.

    It is read at the first question and not again, so install first, then ask. Where several offer the same
    name, a plugin file of the project has it before one of the person, and that before a distribution; of two
    distributions the one whose own name comes first in the alphabet. That is logged when the catalog is
    read. What a module prints while it is imported goes to standard error, since standard output belongs to
    the program.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings: Settings = settings or Settings()
        self._read: dict[tuple[str, str], list[Offered]] | None = None

    def entries(self) -> list[Entry]:
        """Everything on offer, by group and name, those of no use included. Imports nothing."""
        return [self._entry(offer, offers) for _, offers in sorted(self._offers.items()) for offer in offers]

    def find(self, name: str, group: str = EXTENSIONS) -> Entry | None:
        """The entry that has a name, else the first that would, None when nothing offers it."""
        offers = self._offers.get((group, name), [])
        return next((self._entry(offer, offers) for offer in [*self._usable(offers), *offers]), None)

    def joining(self, agent: str) -> list[str]:
        """The plugins of files that join an agent by themselves, those of the project first."""
        if self.settings.places is None:
            # Then there are no plugin files, and nobody need pay for what is installed.
            return []
        firsts = [next(self._usable(offers), None) for offers in self._offers.values()]
        found = [each for each in firsts if isinstance(each, Filed) and {agent, "*"} & {*each.said.add_to}]
        return [each.name for each in sorted(found, key=self._order.index)]

    def required(self, name: str) -> bool:
        """Whether a plugin of a file says, where that can be read, that agents do not start without it."""
        offer = next(self._usable(self._offers.get((EXTENSIONS, name), [])), None)
        return isinstance(offer, Filed) and offer.said.required

    def extension(self, name: str, place: str = EXTENSIONS) -> Extension:
        """A new instance of the plugin `name`, with its settings.

        `place` is who wants it, for the error. Raises `ComposeError`, and `SettingsError` for a setting that
        the plugin does not have, does not take, or cannot do without.
        """
        offer = self._imported(EXTENSIONS, name, place)
        with self.settings.told("plugins", name):
            given = self.settings.table("plugins", name)
            try:
                for field in given.keys() & of_every_place(offer.thing.Settings):
                    given[field] = self.settings.added_up("plugins", name, field)
                made: Extension = offer.thing(**given)
            except SettingsError:
                raise
            except BaseException as error:
                how = "with its settings" if given else "without arguments"
                why = f"its class cannot be called {how}: {_fault(error)}"
                raise ComposeError(name, place, why, "Give an instance of it instead of the name") from error
        return made

    def thing(self, name: str, group: str = EXTENSIONS) -> Any:
        """What has the name, imported and not made: a plugin's class, a factory. Raises `ComposeError`."""
        return self._imported(group, name, group).thing

    def struct(self, name: str) -> type[Struct] | None:
        """The settings that the plugin `name` takes, None for none. Imports it. Raises `ComposeError`."""
        struct: type[Struct] | None = self.thing(name).Settings
        return struct

    def content(self, name: str, group: str = EXTENSIONS) -> str:
        """The hash of what offers a name, by which managed settings can block it. Raises `ComposeError`."""
        return self._found(group, name, group)[0].sha256

    def store(self, url: str) -> Store:
        """The store that `url` names; its scheme is the name of the entry.

        Raises `ComposeError`, `ValueError` for a text without a scheme, and what the factory raises.
        """
        store: Store = self._made(STORES, _scheme(url), Store, url)
        return store

    def reader(self, url: str) -> Reader | None:
        """A reader of the store that `url` names, None when nothing installed reads such a store.

        Its settings are those of the store. Raises as `store` does.
        """
        if self.find(_scheme(url), READERS) is None:
            return None
        reader: Reader = self._made(READERS, _scheme(url), Reader, url)
        return reader

    def provider(self, name: str) -> Provider:
        """The provider of the models ``name:...``. Raises `ComposeError`, and what the factory raises."""
        provider: Provider = self._made(PROVIDERS, name, Provider)
        return provider

    def check_provider(self, name: str, place: str, given: Iterable[str]) -> None:
        """Raise `ComposeError` unless a provider of this name is installed, whether it works or not.

        `place` is who wants it, and `given` are other names that may be meant. Imports nothing.
        """
        self._found(PROVIDERS, name, place, given)

    def env(self, name: str) -> ExecEnv:
        """The place to act called `name`. Raises `ComposeError`, and what the factory raises."""
        env: ExecEnv = self._made(ENVIRONMENTS, name, ExecEnv)
        return env

    def _made(self, group: str, name: str, port: type, *arguments: str) -> Any:
        """What the factory makes, if that is what the port asks for."""
        offer = self._imported(group, name, group)
        with self.settings.told(_TABLES[group], name):
            given = self.settings.table(_TABLES[group], name)
            try:
                made = offer.thing(*arguments, given)
            except Exception:
                raise
            except BaseException as error:
                why = f"its factory did not return: {_fault(error)}"
                raise _unfit(offer, why) from error
        if why := lacks(made, port):
            raise _unfit(offer, f"its factory gave a {why}")
        return made

    def _found(self, group: str, name: str, place: str, given: Iterable[str] = ()) -> list[Offered]:
        """What has the name in the group. `given` are names that are known besides, for the hint."""
        if not (offers := self._offers.get((group, name))):
            others = [each for each in GROUPS if (each, name) in self._offers]
            known = [*given, *(known for found, known in self._offers if found == group)]
            hint = f"; it is a {GROUPS[others[0]]}" if others else meant(name, known)
            why = f"no installed {GROUPS[group]} has this name{hint}"
            way_out = "Install what has it, or give the object itself"
            raise ComposeError(name, place, why, way_out, kind=GROUPS[group])
        return offers

    def _imported(self, group: str, name: str, place: str) -> Offered:
        offers = self._found(group, name, place)
        if (offer := next(self._usable(offers), None)) is None:
            state, why = self._kept_out(offers[0])
            way_out = f"Take it out of the list, or change that it is {state}"
            raise ComposeError(name, place, why, way_out, kind=GROUPS[group])
        if offer.seconds is None and not offer.reason:
            offer.load()
        if offer.reason:
            raise ComposeError(
                name, place, offer.reason, f"Mend or remove {offer.source}", kind=GROUPS[group]
            )
        return offer

    def _entry(self, offer: Offered, offers: list[Offered]) -> Entry:
        state, reason = self._kept_out(offer)
        first = next(self._usable(offers), None)
        if not state and offer is not first and first is not None:
            state, reason = "shadowed", f"{_owner(first)} offers this name too, and comes first"
        if not state:
            reason = offer.reason
            state = "failed" if reason else "not imported" if offer.seconds is None else "imported"
        return Entry(
            group=offer.group,
            name=offer.name,
            distribution=offer.distribution if isinstance(offer, Packaged) else "",
            version=offer.version,
            state=state,
            reason=reason,
            seconds=offer.seconds,
            path=str(offer.path) if isinstance(offer, Filed) else "",
            add_to=offer.said.add_to if isinstance(offer, Filed) else (),
        )

    def _usable(self, offers: list[Offered]) -> Iterator[Offered]:
        return (offer for offer in offers if not self._kept_out(offer)[0])

    def _kept_out(self, offer: Offered) -> tuple[Any, str]:
        """Why an offer must not be imported, as a state and a reason; two empty texts when it may."""
        if offer.untrusted:
            return "untrusted", offer.untrusted
        if why := self.settings.blocked(offer.aliases, lambda: offer.sha256):
            return "blocked", why
        if offer.group != EXTENSIONS:
            return "", ""
        if self.settings.safe and (isinstance(offer, Filed) or normal(_owner(offer)) not in self._released):
            return "blocked", SAFE
        why = self.settings.off(offer.name)
        return ("disabled", why) if why else ("", "")

    @property
    def _offers(self) -> dict[tuple[str, str], list[Offered]]:
        if self._read is None:
            self._order = self._ordered()
            self._read = {}
            for offer in self._order:
                self._read.setdefault((offer.group, offer.name), []).append(offer)
            for (group, name), offers in self._read.items():
                if len(usable := list(self._usable(offers))) > 1:
                    owners = ", ".join(offer.source for offer in usable)
                    _log.warning("%s: %r is offered by %s; the first one has it", group, name, owners)
        return self._read

    def _ordered(self) -> list[Offered]:
        settings, packaged = self.settings, list(installed())
        self._released = _released() if settings.safe else frozenset[str]()
        files: list[Filed] = []
        if settings.places is not None and settings.trust is not None:
            files = list(plugin_files(settings.places, settings.trust))
        for file in files:
            why = file.untrusted or file.reason
            if why and (file.path, why) not in _said:
                _said.add((file.path, why))
                _log.warning("plugin file %s is not used: %s", file.path, why)
        return [*files, *sorted(packaged, key=lambda offer: (normal(offer.distribution), offer.points_to))]


def _scheme(url: str) -> str:
    scheme, colon, _ = url.partition(":")
    if not colon or not scheme:
        way_out = "write SCHEME:PLACE, such as 'sqlite:noeta.db', or 'memory:'"
        raise ValueError(f"{url!r} names no store, since it has no scheme; {way_out}")
    return scheme


def _released() -> frozenset[str]:
    """The distributions that are released with noeta: those that it names as its extras."""
    from importlib_metadata import requires

    named = (text.partition(";")[0] for text in requires("noeta") or [] if "extra ==" in text)
    return frozenset(normal(re.split(r"[^A-Za-z0-9._-]", text.strip())[0]) for text in named)


def _fault(error: BaseException) -> str:
    # Who only looks something up needs no event loop.
    from noeta.toolkit.strays import fault

    return fault(error).rstrip(".")


def _owner(offer: Offered) -> str:
    return offer.distribution if isinstance(offer, Packaged) else offer.source


def lacks(made: object, port: type) -> str:
    """The type of something and the first thing it has not of what the port asks for, else the empty text."""
    members = [*inspect.get_annotations(port), *(each for each in dir(port) if each[0] != "_")]
    missing = [each for each in members if not (hasattr(type(made), each) or hasattr(made, each))]
    return f"{type(made).__name__}, which has no {missing[0]!r}" if missing else ""


def _unfit(offer: Offered, why: str) -> ComposeError:
    """What to say of a factory that works against its group."""
    way_out = f"Tell those who make {_owner(offer)}"
    return ComposeError(offer.name, offer.group, why, way_out, kind=GROUPS[offer.group])
