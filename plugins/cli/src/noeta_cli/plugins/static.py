"""What can be said of a plugin without running it: its metadata, and what it imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from noeta_cli.plugins.results import Result
from noeta_cli.plugins.source import PROJECT, Source

PREFIX = "noeta_"
ALLOWED = "Import from noeta and noeta.toolkit, in tests also from noeta.testing"
MODULES = ("noeta.toolkit",)
IN_TESTS = ("noeta.toolkit", "noeta.testing", "noeta.host")
_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_REQUIRED = re.compile(r"noeta(?![\w.-])")


def static(source: Source) -> list[Result]:
    """The checks, each passed or with the first thing that is wrong."""
    checks = {"metadata": _metadata, "imports": _imports}
    if source.folder is None:
        checks["metadata"] = _declared
    found = []
    for name, check in checks.items():
        why = next(check(source), "")
        found.append(Result(name, "", "fail", why) if why else Result(name, "", "ok", _told(name, source)))
    return found


def _told(check: str, source: Source) -> str:
    if check == "imports":
        number = len([*source.modules()])
        return f"only what plugins may import, in {number} module{'s' * (number != 1)}"
    if source.folder is None:
        return "name and agents are written out"
    return f"{source.project['name']} {source.project.get('version', '')}".rstrip()


def _declared(source: Source) -> Iterator[str]:
    if source.fault:
        yield source.fault


def _metadata(source: Source) -> Iterator[str]:
    """What is wrong with the project of a package."""
    project: dict[str, Any] = source.project
    if not project:
        yield source.fault if "TOML" in source.fault else f"{PROJECT} has no table [project]: write one."
        return
    if not isinstance(project.get("name"), str):
        yield f'{PROJECT} has no name: write name = "noeta-..." under [project].'
    if "version" not in project and "version" not in _list(project.get("dynamic")):
        yield f'{PROJECT} has no version, which logs remember: write version = "0.1.0" under [project].'
    if not any(_REQUIRED.match(str(each)) for each in _list(project.get("dependencies"))):
        yield f'{PROJECT} does not need noeta: add "noeta>=0.1,<0.2" to dependencies.'
    if source.fault:
        yield source.fault
    for name, point in source.points.items():
        yield from _point(source, name, point)


def _point(source: Source, name: str, point: str) -> Iterator[str]:
    """What is wrong with an entry point."""
    if not _POINT.fullmatch(point.strip()):
        yield f"The entry point {name!r} is {point!r}, which is no class: write MODULE:CLASS."
        return
    module = point.partition(":")[0].strip()
    folder = source.folder or source.path
    at = folder.joinpath(*module.split("."))
    if not (at.with_suffix(".py").is_file() or at.is_dir()):
        yield f"The entry point {name!r} names {module}, and {at} is not there: mend one of them."
    top = module.partition(".")[0]
    if top.startswith(PREFIX) and len(source.points) == 1:
        package, distribution = f"{PREFIX}{name.replace('-', '_')}", f"noeta-{name.replace('_', '-')}"
        if top != package:
            yield f"The plugin {name!r} is in the package {top}: name the package {package}."
        if source.project["name"].lower().replace("_", "-") != distribution:
            yield f"The plugin {name!r} is in {source.project['name']}: name the distribution {distribution}."


def _list(given: object) -> list[Any]:
    return given if isinstance(given, list) else []


def _imports(source: Source) -> Iterator[str]:
    """Each import that a plugin must not have, in its modules and in its tests."""
    own = {*source.tops()} if source.folder else set[str]()
    tests = sorted((source.path / "tests").rglob("*.py")) if source.folder else []
    for paths, allowed in ((source.modules(), MODULES), (tests, IN_TESTS)):
        for path in paths:
            shown = path.relative_to(source.path) if source.folder else path.name
            try:
                tree = ast.parse(path.read_bytes(), str(path))
            except (SyntaxError, ValueError) as error:
                yield f"{shown}: it is no Python: {error}."
                continue
            for line, name in _names(tree):
                if why := _unfit(name, allowed, own):
                    yield f"{shown}, line {line}: it imports {name}, {why}."


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every module that is imported, wherever in the text, with the line."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, each.name) for each in names)
            case ast.ImportFrom(module="noeta", level=0, names=names):
                # What is named may be a module too.
                yield from (
                    (node.lineno, f"noeta.{each.name}" if _is_layer(each.name) else "noeta") for each in names
                )
            case ast.ImportFrom(module=str(module), level=0):
                yield node.lineno, module


def _is_layer(name: str) -> bool:
    return name in {"core", "host", "toolkit", "testing", "sdk"}


def _unfit(name: str, allowed: tuple[str, ...], own: set[str]) -> str:
    """Why a plugin must not import this, and the way out; the empty text when it may."""
    top = name.partition(".")[0]
    if top == "noeta":
        inside = any(name == each or name.startswith(f"{each}.") for each in allowed)
        if name != "noeta" and not inside:
            private = (
                "which changes without notice"
                if name.startswith("noeta.core")
                else "which is no part of a plugin"
            )
            return f"{private}. {ALLOWED}"
    elif top.startswith(PREFIX) and own and top not in own:
        return "another plugin, which may not be there. Meet it through its records, hooks or tools"
    return ""
