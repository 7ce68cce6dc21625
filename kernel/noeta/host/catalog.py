"""The catalog: what the installed distributions offer under a name, found without importing any of it.

A distribution offers something in an entry-point group: plugins are classes, the ports are made by factories.
What is imported is imported when it is used, once. One that cannot be imported is an entry with a reason, and
stands in nobody's way.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from typing import Any, Literal

from msgspec import Struct

from noeta.core.errors import SettingsError, told
from noeta.core.extension import Extension
from noeta.core.text import meant
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.provider import Provider
from noeta.toolkit.store import Store
from noeta.toolkit.strays import fault

EXTENSIONS = "noeta.extensions"
PROVIDERS = "noeta.providers"
STORES = "noeta.stores"
ENVIRONMENTS = "noeta.environments"
GROUPS = {EXTENSIONS: "plugin", PROVIDERS: "provider", STORES: "store", ENVIRONMENTS: "environment"}
"""The groups that are read, and what an entry of each is."""

State = Literal["not imported", "imported", "failed", "shadowed"]

_log = logging.getLogger("noeta")
_importing = threading.RLock()


class Entry(Struct, frozen=True, kw_only=True):
    """What one distribution offers under one name.

    `state` says how far it came: ``not imported``, ``imported``, ``failed``, or ``shadowed`` by another
    distribution that offers the same name. `reason` says why for the last two. `seconds` is how long the
    import took, None while there was none.
    """

    group: str
    name: str
    distribution: str
    version: str
    state: State
    reason: str = ""
    seconds: float | None = None


class Catalog:
    """What is installed. It is read at the first question and not again, so install first, then ask.

    Where two distributions offer the same name, the one whose own name comes first in the alphabet has it;
    that is logged when the catalog is read. What a module prints while it is imported goes to standard
    error, since standard output belongs to the program.
    """

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], list[_Offer]] | None = None

    def entries(self) -> list[Entry]:
        """Everything on offer, by group and name, those that are shadowed included. Imports nothing."""
        return [offer.entry(offers[0]) for _, offers in sorted(self._offers.items()) for offer in offers]

    def extension(self, name: str, place: str = EXTENSIONS) -> Extension:
        """A new instance of the plugin `name`, with its default settings.

        `place` is who wants it, for the error. Raises `ComposeError`, and `SettingsError` for a plugin that
        has a setting without a default.
        """
        offer = self._imported(EXTENSIONS, name, place)
        try:
            made: Extension = offer.thing()
        except SettingsError:
            raise
        except BaseException as error:
            why = f"its class cannot be called without arguments: {fault(error).rstrip('.')}"
            raise ComposeError(name, place, why, "Give an instance of it instead of the name") from error
        return made

    def store(self, url: str) -> Store:
        """The store that `url` names; its scheme is the name of the entry.

        Raises `ComposeError`, `ValueError` for a text without a scheme, and what the factory raises.
        """
        scheme, colon, _ = url.partition(":")
        if not colon or not scheme:
            way_out = "write SCHEME:PLACE, such as 'sqlite:noeta.db', or 'memory:'"
            raise ValueError(f"{url!r} names no store, since it has no scheme; {way_out}")
        store: Store = self._made(STORES, scheme, Store, url)
        return store

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
        try:
            made = offer.thing(*arguments, {})
        except Exception:
            raise
        except BaseException as error:
            why = f"its factory did not return: {fault(error).rstrip('.')}"
            raise offer.unfit(why) from error
        if why := lacks(made, port):
            raise offer.unfit(f"its factory gave a {why}")
        return made

    def _found(self, group: str, name: str, place: str, given: Iterable[str] = ()) -> _Offer:
        """What has the name in the group. `given` are names that are known besides, for the hint."""
        if not (offers := self._offers.get((group, name))):
            others = [each for each in GROUPS if (each, name) in self._offers]
            known = [*given, *(known for found, known in self._offers if found == group)]
            hint = f"; it is a {GROUPS[others[0]]}" if others else meant(name, known)
            why = f"no installed {GROUPS[group]} has this name{hint}"
            way_out = "Install what has it, or give the object itself"
            raise ComposeError(name, place, why, way_out, kind=GROUPS[group])
        return offers[0]

    def _imported(self, group: str, name: str, place: str) -> _Offer:
        offer = self._found(group, name, place)
        if offer.seconds is None:
            offer.load()
        if offer.reason:
            way_out = f"Mend or remove {offer.distribution} {offer.version}"
            raise ComposeError(name, place, offer.reason, way_out, kind=GROUPS[group])
        return offer

    @property
    def _offers(self) -> dict[tuple[str, str], list[_Offer]]:
        if self._read is None:
            self._read = {}
            for offer in sorted(_installed(), key=_Offer.rank):
                self._read.setdefault((offer.group, offer.name), []).append(offer)
            for (group, name), offers in self._read.items():
                if len(offers) > 1:
                    owners = ", ".join(f"{offer.distribution} {offer.version}" for offer in offers)
                    _log.warning("%s: %r is offered by %s; the first one has it", group, name, owners)
        return self._read


def lacks(made: object, port: type) -> str:
    """The type of something and the first thing it has not of what the port asks for, else the empty text."""
    members = [*inspect.get_annotations(port), *(each for each in dir(port) if each[0] != "_")]
    missing = [each for each in members if not (hasattr(type(made), each) or hasattr(made, each))]
    return f"{type(made).__name__}, which has no {missing[0]!r}" if missing else ""


class _Offer:
    """An entry point, and what came of importing it."""

    def __init__(self, point: Any, distribution: str, version: str) -> None:
        self._point = point
        self.group: str = point.group
        self.name: str = point.name
        self.distribution, self.version = distribution, version
        self.thing: Any = None
        self.reason = ""
        self.seconds: float | None = None

    def rank(self) -> tuple[str, str]:
        return _normal(self.distribution), self._point.value

    def entry(self, first: _Offer) -> Entry:
        state: State = "not imported" if self.seconds is None else "failed" if self.reason else "imported"
        reason = self.reason
        if self is not first:
            state, reason = "shadowed", f"{first.distribution} offers this name too, and comes first"
        return Entry(
            group=self.group,
            name=self.name,
            distribution=self.distribution,
            version=self.version,
            state=state,
            reason=reason,
            seconds=self.seconds,
        )

    def unfit(self, why: str) -> ComposeError:
        """What to say of a factory that works against its group."""
        way_out = f"Tell those who make {self.distribution}"
        return ComposeError(self.name, self.group, why, way_out, kind=GROUPS[self.group])

    def load(self) -> None:
        """Import it, and keep what it is or why it is no use."""
        began = time.perf_counter()
        try:
            # Standard output is one for all threads, so one import at a time turns it away and back.
            with _importing, redirect_stdout(sys.stderr):
                self.thing = self._point.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Also `SystemExit`: a module that ends the process must not.
            self.reason = f"it could not be imported: {told(error).rstrip('.')}{_where(error)}"
        else:
            try:
                self.reason = self._fault()
            except Exception as error:
                self.reason = f"it cannot be looked at: {told(error).rstrip('.')}"
        self.seconds = time.perf_counter() - began

    def _fault(self) -> str:
        """Why the thing is not what its group asks for, else the empty text."""
        thing, shown = self.thing, f"{self._point.value} is of type {type(self.thing).__name__}"
        if self.group != EXTENSIONS:
            if not callable(thing):
                return f"{shown}, not a factory"
            return "its factory is async" if inspect.iscoroutinefunction(thing) else ""
        if not isinstance(thing, type):
            return f"{shown}, not a class"
        if not issubclass(thing, Extension):
            return f"{self._point.value} is no subclass of Extension"
        if (own := getattr(thing, "name", None)) != self.name:
            return f"its class has the name {own!r}, and its entry point {self.name!r}; they must be the same"
        # What a log remembers of a plugin. One that states its version is right about it.
        thing.version = thing.version or self.version
        return ""


def _installed() -> Iterator[_Offer]:
    """What every distribution offers in the groups. One that cannot be read is logged and passed over."""
    # Only who asks for a name pays for the metadata of installed packages.
    from importlib_metadata import distributions

    seen: set[str] = set()
    for distribution in distributions():
        try:
            points = [point for point in distribution.entry_points if point.group in GROUPS]
            if not points:
                continue
            name, version = str(distribution.name), str(distribution.version)
        except Exception as error:
            _log.warning("%s cannot be read, so what it offers is unknown: %s", distribution, told(error))
            continue
        # A distribution that is there twice is imported from the first place on the path.
        if _normal(name) not in seen:
            seen.add(_normal(name))
            yield from (_Offer(point, name, version) for point in points)


def _normal(distribution: str) -> str:
    """The name by which an installer knows a distribution."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _where(error: BaseException) -> str:
    """The line of a module that did not get through its import, if it came as far as a line of its own."""
    import importlib_metadata

    frames = traceback.extract_tb(error.__traceback__)
    frame = [frame for frame in frames if not frame.filename.startswith("<frozen")][-1]
    ours = {__file__, importlib.__file__, importlib_metadata.__file__}
    return "" if frame.filename in ours else f" ({frame.filename}, line {frame.lineno})"
