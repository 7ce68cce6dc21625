"""Every public name is listed, exists and is explained."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import noeta

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "kernel", *ROOT.glob("plugins/*/src"), *ROOT.glob("contrib/*/src")]
SOURCES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))

Function = ast.FunctionDef | ast.AsyncFunctionDef


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in tree.body if isinstance(node, ast.ClassDef))


def methods(node: ast.ClassDef) -> Iterator[Function]:
    """Yield the public methods of a class, leaving out setters and overloads, which need no words."""
    for item in node.body:
        if isinstance(item, Function) and not item.name.startswith("_"):
            marks = {ast.unparse(mark).rpartition(".")[2] for mark in item.decorator_list}
            if not marks & {"setter", "deleter", "overload"}:
                yield item


def base_names(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}


def explained_methods(trees: list[ast.Module]) -> set[tuple[str, str]]:
    """Return (class, method) for each method with a docstring: who implements it need not repeat it."""
    found = {
        (node.name, method.name)
        for tree in trees
        for node in classes(tree)
        for method in methods(node)
        if ast.get_docstring(method)
    }
    # A port may be a part of a larger one.
    for node in (node for tree in trees for node in classes(tree)):
        found |= {(node.name, method) for name, method in found if name in base_names(node)}
    return found


def unexplained(tree: ast.Module, explained: set[tuple[str, str]]) -> list[str]:
    """Return the public names of a module that have no docstring."""
    missing = [] if ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
            continue
        overload = isinstance(node, Function) and any(
            "overload" in ast.unparse(mark) for mark in node.decorator_list
        )
        if not ast.get_docstring(node) and not overload:
            missing.append(node.name)
        if isinstance(node, ast.ClassDef):
            missing += [
                f"{node.name}.{method.name}"
                for method in methods(node)
                if not any((name, method.name) in explained for name in {node.name, *base_names(node)})
            ]
    return missing


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("x = 1", ["the module"]),
        ('"""Doc."""\ndef f(): ...', ["f"]),
        ('"""Doc."""\nasync def f(): ...', ["f"]),
        ('"""Doc."""\ndef _f(): ...', []),
        ('"""Doc."""\nclass A:\n    x: int', ["A"]),
        ('"""Doc."""\nclass A:\n    """Doc."""\n    def f(self): ...', ["A.f"]),
        ('"""Doc."""\nclass A:\n    """Doc."""\n    def _f(self): ...\n    def __eq__(self, other): ...', []),
        ('"""Doc."""\nclass A:\n    """Doc."""\n    @x.setter\n    def x(self, value): ...', []),
        (
            '"""Doc."""\nclass A(Port[int]):\n    """Doc."""\n    def known(self): ...\n    def f(self): ...',
            ["A.f"],
        ),
        ('"""Doc."""\n@overload\ndef f(x: int): ...\ndef f(x):\n    """Doc."""', []),
    ],
)
def test_a_public_name_without_a_docstring_is_found(source: str, missing: list[str]) -> None:
    assert unexplained(ast.parse(source), {("Port", "known")}) == missing


@pytest.fixture(scope="module")
def explained() -> set[tuple[str, str]]:
    return explained_methods([ast.parse(path.read_text()) for path in SOURCES])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_public_name_has_a_docstring(path: Path, explained: set[tuple[str, str]]) -> None:
    assert unexplained(ast.parse(path.read_text()), explained) == []


def test_every_listed_name_exists_and_is_listed_once() -> None:
    assert [name for name in noeta.__all__ if not hasattr(noeta, name)] == []
    assert len(set(noeta.__all__)) == len(noeta.__all__)


def test_every_public_name_of_the_package_is_listed() -> None:
    public = {
        name
        for name, value in vars(noeta).items()
        if not name.startswith("_") and name != "annotations" and not isinstance(value, types.ModuleType)
    }
    assert public - set(noeta.__all__) == set()
