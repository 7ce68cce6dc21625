"""The Python examples of the how-to pages run as they stand, each page as one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "```python" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path) -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE))
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(code, str(page), "exec"), names)


def test_the_numbers_that_the_checks_name_are_explained() -> None:
    checks = Path(__file__).parents[2] / "kernel" / "noeta" / "testing" / "store"
    text = "".join(path.read_text() for path in checks.glob("*.py"))
    named = {number for group in re.findall(r"\((I\d+(?:, I\d+)*)\)", text) for number in group.split(", ")}
    explained = re.findall(
        r"^\| (I\d+) \|", (DOCS / "reference" / "store.md").read_text(), flags=re.MULTILINE
    )
    assert named
    assert sorted(named) == sorted(explained)
