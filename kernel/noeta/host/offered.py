"""Something on offer under a name: an entry point of a distribution, or a class in a plugin file.

It is imported when it is used, once. What came of that is kept.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import re
import sys
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any

from noeta.core.errors import told
from noeta.core.extension import Extension
from noeta.toolkit.trust import digest

EXTENSIONS = "noeta.extensions"
PROVIDERS = "noeta.providers"
STORES = "noeta.stores"
READERS = "noeta.readers"
ENVIRONMENTS = "noeta.environments"
GROUPS = {
    EXTENSIONS: "plugin",
    PROVIDERS: "provider",
    STORES: "store",
    READERS: "reader",
    ENVIRONMENTS: "environment",
}
"""The groups that are read, and what an entry of each is."""

_log = logging.getLogger("noeta")
_importing = threading.RLock()


class Offered(ABC):
    """A name on offer. `source` is who offers it, for people; `aliases` are other names it may be blocked by.

    `thing` is what it came to when it was loaded, `reason` why it is no use.
    """

    def __init__(self, group: str, name: str, version: str, source: str, *aliases: str) -> None:
        self.group: str = group
        self.name: str = name
        self.version: str = version
        self.source: str = source
        self.aliases: tuple[str, ...] = (name, *aliases)
        self.untrusted: str = ""
        self.thing: Any = None
        self.reason: str = ""
        self.seconds: float | None = None

    @property
    @abstractmethod
    def sha256(self) -> str:
        """The hash of its content, as it is on disk now, without importing it; empty for what has none."""

    @abstractmethod
    def fetch(self) -> Any:
        """Import it. Raises what that raises."""

    def load(self) -> None:
        """Import it, and keep what it is or why it is no use."""
        began = time.perf_counter()
        try:
            # Standard output is one for all threads, so one import at a time turns it away and back.
            with _importing, redirect_stdout(sys.stderr):
                self.thing = self.fetch()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Also `SystemExit`: a module that ends the process must not.
            self.reason = f"it could not be imported: {told(error).rstrip('.')}{_where(error)}"
        else:
            try:
                self.reason = self.fault()
            except Exception as error:
                self.reason = f"it cannot be looked at: {told(error).rstrip('.')}"
        self.seconds = time.perf_counter() - began

    def fault(self) -> str:
        """Why the thing is not what its group asks for, else the empty text."""
        thing, shown = self.thing, f"{self.points_to} is of type {type(self.thing).__name__}"
        if self.group != EXTENSIONS:
            if not callable(thing):
                return f"{shown}, not a factory"
            return "its factory is async" if inspect.iscoroutinefunction(thing) else ""
        if not isinstance(thing, type):
            return f"{shown}, not a class"
        if not issubclass(thing, Extension):
            return f"{self.points_to} is no subclass of Extension"
        if (own := getattr(thing, "name", None)) != self.name:
            return f"its class has the name {own!r}, and {self.names_it} {self.name!r}; they must be the same"
        # What a log remembers of a plugin. One that states its version is right about it.
        thing.version = thing.version or self.version
        return ""

    @property
    def points_to(self) -> str:
        """Where the thing stands, for people."""
        return self.source

    names_it: str = "its entry point"


class Packaged(Offered):
    """An entry point of a distribution."""

    def __init__(self, point: Any, distribution: str, version: str) -> None:
        self.distribution: str = distribution
        self._point = point
        source = f"{distribution} {version}"
        super().__init__(point.group, point.name, version, source, distribution, normal(distribution))

    @property
    def points_to(self) -> str:
        """What the entry point refers to."""
        return str(self._point.value)

    @cached_property
    def sha256(self) -> str:
        """The hash of the sources of its package: each file's name and hash, in order."""
        try:
            spec = importlib.util.find_spec(self.points_to.partition(":")[0].partition(".")[0].strip())
            folders = [Path(each) for each in spec.submodule_search_locations or ()] if spec else []
            files = {path: folder for folder in folders for path in folder.rglob("*.py")}
            if not folders and spec and spec.origin and Path(spec.origin).is_file():
                files = {Path(spec.origin): Path(spec.origin).parent}
            lines = sorted(
                f"{path.relative_to(at)} {digest(path.read_bytes())}" for path, at in files.items()
            )
        except (ImportError, OSError, ValueError):
            return ""
        return digest("\n".join(lines).encode()) if lines else ""

    def fetch(self) -> Any:
        """Import what the entry point refers to."""
        return self._point.load()


def installed() -> Iterator[Packaged]:
    """What every distribution offers in the groups. One that cannot be read is logged and passed over."""
    # Only who asks for a name pays for the metadata of installed packages.
    from importlib_metadata import distributions

    seen: set[str] = set()
    for distribution in distributions():
        try:
            points = [point for point in distribution.entry_points if point.group in GROUPS]
            if not points:
                continue
            name, version = _named(distribution)
        except Exception as error:
            _log.warning("%s cannot be read, so what it offers is unknown: %s", distribution, told(error))
            continue
        # A distribution that is there twice is imported from the first place on the path.
        if normal(name) not in seen:
            seen.add(normal(name))
            yield from (Packaged(point, name, version) for point in points)


def _named(distribution: Any) -> tuple[str, str]:
    """The name and the version of a distribution, read where they stand.

    The library has a parser of mail for it, which takes a command that prints a list half of its time.
    """
    head: dict[str, str] = {}
    for line in (distribution.read_text("METADATA") or "").splitlines():
        key, colon, text = line.partition(": ")
        if not colon:
            break
        head.setdefault(key, text.strip())
    if head.get("Name") and head.get("Version"):
        return head["Name"], head["Version"]
    return str(distribution.name), str(distribution.version)


def normal(distribution: str) -> str:
    """The name by which an installer knows a distribution."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _where(error: BaseException) -> str:
    """The line of a module that did not get through its import, if it came as far as a line of its own."""
    import importlib_metadata

    frames = traceback.extract_tb(error.__traceback__)
    frame = [frame for frame in frames if not frame.filename.startswith("<frozen")][-1]
    ours = {importlib.__file__, importlib_metadata.__file__}
    is_ours = frame.filename in ours or Path(frame.filename).parent == Path(__file__).parent
    return "" if is_ours else f" ({frame.filename}, line {frame.lineno})"
