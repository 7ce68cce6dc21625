"""What `noeta plugins check` looks at: a package of plugins, or a plugin file, as it is on disk."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

GROUP = "noeta.extensions"
PROJECT = "pyproject.toml"


class Source(Struct, frozen=True, kw_only=True):
    """Where the plugins are, and how to get at them.

    `points` are the entry points by the name of the plugin, with the place each refers to; of a plugin file
    they name the plugins alone. `folder` is what has to be on the path of Python, None for a file. `fault`
    says why the names are not known.
    """

    path: Path
    points: dict[str, str] = {}
    folder: Path | None = None
    project: dict[str, Any] = {}
    fault: str = ""

    @property
    def plugins(self) -> list[str]:
        """The names of the plugins."""
        return list(self.points)

    def modules(self) -> Iterator[Path]:
        """Every module of the packages that the entry points name, or the file itself."""
        if self.folder is None:
            yield self.path
            return
        for top in dict.fromkeys(self.tops()):
            if (self.folder / f"{top}.py").is_file():
                yield self.folder / f"{top}.py"
            yield from sorted((self.folder / top).rglob("*.py"))

    def tops(self) -> list[str]:
        """The packages that the entry points name."""
        return [point.partition(":")[0].partition(".")[0].strip() for point in self.points.values()]

    def samples(self) -> list[str]:
        """The lines of ``tests/samples/*.jsonl`` of a package: records of its released versions."""
        if self.folder is None:
            return []
        files = sorted((self.path / "tests" / "samples").glob("*.jsonl"))
        return [line for file in files for line in file.read_text(errors="replace").splitlines() if line]


def read_source(path: Path) -> Source:
    """The plugin at a path. Raises `ClickException` for what can be none."""
    if path.is_dir():
        return _package(path.resolve())
    if not path.exists():
        raise click.ClickException(f"there is no {path}; name a plugin file, or the folder of a package.")
    if path.suffix != ".py" or not path.is_file():
        raise click.ClickException(f"{path} is no plugin file; one is a Python file, NAME.py.")
    return _file(path.resolve())


def _file(path: Path) -> Source:
    from noeta.host.plugin_source import declared

    try:
        names = [each.name for each in declared(path.read_bytes(), str(path))]
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        return Source(path=path, fault=f"It is no Python: {error}")
    fault = (
        "" if names else "It holds no plugin: write a class that derives from Extension, with name = '...'."
    )
    return Source(path=path, points=dict.fromkeys(names, ""), fault=fault)


def _package(path: Path) -> Source:
    folder = path / "src" if (path / "src").is_dir() else path
    try:
        read = tomllib.loads((path / PROJECT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        why = f"has no {PROJECT}, so it is no package; name the folder that has it, or a plugin file."
        raise click.ClickException(f"{path} {why}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return Source(path=path, folder=folder, fault=f"{PROJECT} is no TOML: {error}.")
    project = _table(read.get("project"))
    points = _table(_table(project.get("entry-points")).get(GROUP))
    named = {name: point for name, point in points.items() if isinstance(point, str)}
    fault = "" if named else f'It offers no plugin: write [project.entry-points."{GROUP}"] in {PROJECT}.'
    return Source(path=path, folder=folder, project=project, points=named, fault=fault)


def _table(given: object) -> dict[str, Any]:
    return dict(given) if isinstance(given, Mapping) else {}
