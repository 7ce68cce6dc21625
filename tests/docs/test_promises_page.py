"""Each promise names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "explanation" / name for name in ("promises.md", "settled.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_promise_names_tests_and_every_named_test_exists(page: Path) -> None:
    files = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("plugins/*/tests/**/test_*.py")]
    defined = {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text())}
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith(("| promise |", "| what holds |"))]
    assert rows
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert set(named) <= defined, row
