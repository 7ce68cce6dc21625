"""What a plugin file declares, read from its text: names and lists that are written out. Nothing is run."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

EXTENSIONS = {"Extension", "ToolSet"}
"""The names of noeta that plugins derive from."""


NO_TUPLE = "its add_to is not written out as a tuple of names, such as ('coder',)"


class Declared(Struct, frozen=True, kw_only=True):
    """A class that looks like a plugin, with what it says of itself, and the line it begins in.

    `fault` says why it is of no use.
    """

    name: str
    add_to: tuple[str, ...] = ()
    required: bool = False
    line: int = 0
    fault: str = ""


def declared(data: bytes, file: str) -> list[Declared]:
    """The plugins that a file declares, in order.

    Raises `SyntaxError` and `ValueError` for what is no Python.
    """
    tree = ast.parse(data, file)
    strangers, plugins = _imported(tree), dict[str, dict[str, object]]()
    found = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [base for base in node.bases if _is_plugin(base, strangers, plugins)]
        if not bases:
            continue
        inherited = plugins.get(bases[0].id, {}) if isinstance(bases[0], ast.Name) else {}
        plugins[node.name] = said = inherited | dict(_attributes(node))
        # A class that others derive from has no name of its own.
        if isinstance(name := said.get("name"), str) and "name" in dict(_attributes(node)):
            joins, required = said.get("add_to", ()), said.get("required") is True
            fits = isinstance(joins, tuple) and all(isinstance(each, str) for each in joins)
            made = Declared(name=name, required=required, line=node.lineno)
            found.append(replace(made, add_to=joins) if fits else replace(made, fault=NO_TUPLE))
    return found


def _imported(tree: ast.Module) -> set[str]:
    """The names that may be plugins of somebody else, or are noeta's own to derive from."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            top = (node.module or "").partition(".")[0]
            for alias in node.names:
                known = alias.name in EXTENSIONS if top == "noeta" else top not in sys.stdlib_module_names
                if known and top != "msgspec":
                    names.add(alias.asname or alias.name)
    return names


def _is_plugin(base: ast.expr, strangers: set[str], plugins: dict[str, dict[str, object]]) -> bool:
    match base:
        case ast.Name(id=name):
            return name in strangers or name in plugins
        case ast.Attribute(attr=name):
            return name in EXTENSIONS
        case _:
            return False


def _attributes(node: ast.ClassDef) -> Iterator[tuple[str, object]]:
    """The attributes of a class, with their values where these are written out, else None."""
    for item in node.body:
        match item:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        try:
            yield name, ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            yield name, None
