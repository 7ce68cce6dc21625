"""Importing noeta is cheap, and its parts import only what they may."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNEL = sorted((ROOT / "kernel" / "noeta").rglob("*.py"))
CORE = [path for path in KERNEL if path.parent.name == "core"]
# Time, randomness, files and processes reach the core through ports alone, so that tests can replay a run.
PORTS = {
    *(
        "asyncio",
        "datetime",
        "http",
        "os",
        "pathlib",
        "random",
        "secrets",
        "shutil",
        "socket",
        "sqlite3",
        "ssl",
    ),
    *("subprocess", "tempfile", "threading", "time", "urllib", "uuid"),
}
ALLOWED_IN_CORE = (sys.stdlib_module_names - PORTS) | {
    "anyio",
    "msgspec",
    "noeta",
    "pluggy",
}
HEAVY = [
    "httpx",
    "hypothesis",
    "importlib_metadata",
    "jsonschema",
    "noeta.host",
    "noeta.sdk",
    "noeta.testing",
    "psycopg",
    "pydantic",
    "pytest",
    "sqlite3",
    "trio",
]


def imported(source: str) -> dict[str, bool]:
    """Return the packages that a module imports, and whether that waits for a call or a type checker."""
    found: dict[str, bool] = {}

    def visit(node: ast.AST, waits: bool) -> None:
        names: list[str] = []
        match node:
            case ast.Import(names=aliases):
                names = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0):
                names = [module]
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                waits = True
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                waits = True
        for name in names:
            top = name.split(".")[0]
            found[top] = found.get(top, True) and waits
        for child in ast.iter_child_nodes(node):
            visit(child, waits)

    visit(ast.parse(source), False)
    return found


def loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh Python has loaded after the statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def too_much(modules: set[str]) -> set[str]:
    """Return those of the modules that `import noeta` must not load."""
    return {name for name in modules if name in HEAVY or name.startswith("noeta_")}


def test_import_noeta_loads_no_plugin_no_host_and_no_heavy_package() -> None:
    modules = loaded_by("from noeta import Agent")
    assert "noeta" in modules
    assert too_much(modules) == set()


def test_a_heavy_import_is_noticed() -> None:
    assert too_much(loaded_by("import sqlite3")) == {"sqlite3"}
    assert too_much({"noeta_fs", "noeta"}) == {"noeta_fs"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import a.b, c", {"a": False, "c": False}),
        ("from a.b import c", {"a": False}),
        ("from .a import b", {}),
        ("def f():\n    import a", {"a": True}),
        ("import a\ndef f():\n    import a", {"a": False}),
        ("class A:\n    import a", {"a": False}),
        ("if x:\n    import a", {"a": False}),
    ],
)
def test_imports_are_read_with_their_place(source: str, found: dict[str, bool]) -> None:
    assert imported(source) == found


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.name)
def test_the_core_imports_only_the_standard_library_and_three_packages(path: Path) -> None:
    assert set(imported(path.read_text())) - ALLOWED_IN_CORE == set()


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: str(path.relative_to(ROOT)))
def test_noeta_imports_no_plugin_not_even_inside_a_function(path: Path) -> None:
    assert [name for name in imported(path.read_text()) if name.startswith("noeta_")] == []


@pytest.mark.parametrize("path", KERNEL, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_testing_kit_uses_hypothesis_and_only_when_called(path: Path) -> None:
    waits = imported(path.read_text()).get("hypothesis")
    assert waits is None or (waits and "testing" in path.parts)


def test_the_package_alone_loads_nothing_of_it() -> None:
    assert {name for name in loaded_by("import noeta") if name.startswith("noeta.")} == set()
