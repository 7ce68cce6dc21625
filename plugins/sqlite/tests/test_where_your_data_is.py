"""The page about the data names every reason that the code can give, and every option of the URL."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import noeta_sqlite

SOURCES = sorted(Path(noeta_sqlite.__file__).parent.glob("*.py"))
PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "where-your-data-is.md").read_text()
FAULTS = {"Corrupt", "Full", "ReadOnly", "Unavailable"}


def reasons(source: str) -> set[tuple[str, str]]:
    return {
        (call.func.id, str(keyword.value.value))
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in FAULTS
        for keyword in call.keywords
        if keyword.arg == "reason" and isinstance(keyword.value, ast.Constant)
    }


def test_the_table_has_the_reasons_of_the_code() -> None:
    in_code = set().union(*(reasons(source.read_text()) for source in SOURCES))
    rows = re.findall(r"^\| `(\w+)` \| `([\w-]+)` \| \S", PAGE, flags=re.MULTILINE)
    assert rows == sorted(in_code)


def test_every_fault_in_the_code_has_a_literal_reason() -> None:
    for source in SOURCES:
        text = source.read_text()
        faults = [
            call
            for call in ast.walk(ast.parse(text))
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in FAULTS
        ]
        for call in faults:
            assert reasons(ast.unparse(call)), f"{source.name}:{call.lineno}"
