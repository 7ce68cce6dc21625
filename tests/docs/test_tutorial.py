"""The tutorial builds the package that is in the repository, file by file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial" / "your-first-plugin.md").read_text()
PACKAGE = ROOT / "contrib" / "checklist"
SHOWN = dict(re.findall(r"^`([\w/.]+)`\n\n```\w+\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE))


def test_every_file_that_is_shown_is_the_one_of_the_package() -> None:
    assert {path: (PACKAGE / path).read_text() for path in SHOWN} == SHOWN


def test_every_file_that_makes_the_package_is_shown() -> None:
    files = [PACKAGE / "pyproject.toml", *PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.jsonl")]
    assert {str(path.relative_to(PACKAGE)) for path in files} == SHOWN.keys()
