"""The kernel stays small enough to be read in one sitting."""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = sorted((ROOT / "kernel" / "noeta" / "core").glob("*.py"))
FOLDERS = [ROOT / "kernel", *ROOT.glob("plugins/*/src"), *ROOT.glob("contrib/*/src")]
SOURCES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())) as text, *_]:
                    lines.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return lines


def code_lines(source: str) -> int:
    """Count the lines that hold code: no blank line, no comment, no docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(source)))


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("", 0),
        ('"""One.\n\nTwo.\n"""\n', 0),
        ("# a reason\n\nx = 1  # beside\n", 1),
        ('def f():\n    """Say."""\n    return 1\n', 2),
        ('class A:\n    """Say."""\n\n    x: int\n', 2),
        ("x = [\n    1,\n\n    2,\n]\n", 4),
        ('x = """a\nb\nc"""\n', 3),
        ('def f():\n    x = 1\n    "no docstring"\n', 3),
    ],
)
def test_code_lines_leave_out_blanks_comments_and_docstrings(source: str, count: int) -> None:
    assert code_lines(source) == count


def test_the_core_has_at_most_2500_code_lines() -> None:
    assert CORE
    assert sum(code_lines(path.read_text()) for path in CORE) <= 2500


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_longer_than_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
