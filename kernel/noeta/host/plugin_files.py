"""Plugin files: found in the project and in the person's own folder, judged, and run from the bytes judged.

A file is a module of its own. Its plugins join agents by themselves, as their `add_to` says.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from noeta.core.errors import told
from noeta.core.extension import Extension
from noeta.host.offered import EXTENSIONS, Offered
from noeta.host.places import Places
from noeta.host.plugin_source import Declared, declared
from noeta.host.trust import Looked, Trust, listing
from noeta.toolkit.trust import digest

MODULE = "noeta_plugin_file_"
"""Begins the name of the module that a plugin file is."""


class PluginFile:
    """One file, as it was read. `fault` says why it is of no use, if that can be seen without running it."""

    def __init__(self, looked: Looked) -> None:
        self.path: Path = looked.path
        self.looked: Looked = looked
        self.declared: list[Declared] = []
        self.fault: str = ""
        if not looked.counts:
            # What is not trusted is not even parsed.
            return
        try:
            self.declared = declared(looked.data, str(self.path))
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            self.fault = f"it could not be imported: {told(error).rstrip('.')}"
        else:
            if not self.declared:
                self.fault = (
                    "it holds no plugin: write a class that derives from Extension, with name = '...'"
                )

    def classes(self) -> dict[str, type[Extension]]:
        """The plugins of the file by name. The file is run once a process, from the bytes that were judged.

        Raises what the file raises, and `TypeError` for a plugin that is not the one declared.
        """
        mark = digest(f"{self.path}\n{self.looked.sha256}".encode())[:16]
        name = f"{MODULE}{mark}_{re.sub(r'[^a-zA-Z0-9_]', '_', self.path.stem)}"
        if (module := sys.modules.get(name)) is None:
            module = ModuleType(name)
            module.__file__ = str(self.path)
            # Annotations are looked up in the module by its name.
            sys.modules[name] = module
            try:
                exec(compile(self.looked.data, str(self.path), "exec", dont_inherit=True), module.__dict__)
            except BaseException:
                del sys.modules[name]
                raise
        found: dict[str, type[Extension]] = {}
        for thing in list(vars(module).values()):
            is_own = isinstance(thing, type) and issubclass(thing, Extension) and thing.__module__ == name
            if is_own and isinstance(own := vars(thing).get("name"), str):
                found[own] = thing
        if strange := found.keys() - {each.name for each in self.declared}:
            # Whoever blocks or switches off by name has to see all names without running anything.
            raise TypeError(f"the name {min(strange)!r} of a class is computed; write it out in the class")
        return found


class Filed(Offered):
    """A plugin of a plugin file, or the file as a whole when it is not known what it holds."""

    names_it = "the file says"

    def __init__(self, file: PluginFile, said: Declared | None) -> None:
        self.path: Path = file.path
        self.said: Declared = said or Declared(name=file.path.stem)
        self._file = file
        version = file.looked.sha256[:12]
        super().__init__(EXTENSIONS, self.said.name, version, str(file.path), file.path.stem, file.path.name)
        self.untrusted: str = file.looked.reason
        self.reason: str = file.fault or self.said.fault

    @property
    def sha256(self) -> str:
        """The hash of the bytes that were read, and that are run."""
        return self._file.looked.sha256

    def fetch(self) -> Any:
        """Run the file, unless that is done."""
        return self._file.classes().get(self.name)

    def fault(self) -> str:
        """Why the class is not the plugin that was declared, else the empty text."""
        if self.thing is None:
            return f"its class {self.name!r} is no subclass of Extension"
        stated = self.thing.version
        if why := super().fault():
            return why
        if self.thing.add_to != self.said.add_to:
            return f"add_to is computed: {self.thing.add_to!r}; write it out in the class"
        # A snapshot made by other code is void, whatever the author calls this version.
        if stated and not stated.endswith(f"+{self.version}"):
            self.thing.version = f"{stated}+{self.version}"
        return ""


def plugin_files(places: Places, trust: Trust) -> Iterator[Filed]:
    """What plugin files offer, those of the project first. One that is there twice is the person's own."""
    own = [path for path in listing(places.user_plugins) if path.suffix == ".py"]
    seen = {identity for path in own if (identity := _identity(path))}
    project = [path for path in listing(places.project_plugins) if path.suffix == ".py"]
    for path in project:
        if (identity := _identity(path)) not in seen:
            seen.update([identity] if identity else [])
            yield from _offered(trust.look(path, "plugin file"))
    for path in own:
        yield from _offered(trust.look(path, "plugin file", own=True))


def _offered(looked: Looked | None) -> Iterator[Filed]:
    if looked is not None:
        file = PluginFile(looked)
        yield from [Filed(file, said) for said in file.declared] or [Filed(file, None)]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
