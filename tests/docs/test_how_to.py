"""The Python examples of the how-to pages run as they stand, each page as one program."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import anyio
import pytest

from noeta import Host

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "```python" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = "\n".join(
        re.findall(r"^```python\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    )
    code = compile(program, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, object] = {"__name__": "__main__", "__file__": str(page)}
    if code.co_flags & inspect.CO_COROUTINE:

        async def run() -> None:
            await eval(code, names)

        anyio.run(run)
    else:
        exec(code, names)


def test_the_numbers_that_the_checks_name_are_explained() -> None:
    checks = Path(__file__).parents[2] / "kernel" / "noeta" / "testing" / "store"
    text = "".join(path.read_text() for path in checks.glob("*.py"))
    named = {number for group in re.findall(r"\((I\d+(?:, I\d+)*)\)", text) for number in group.split(", ")}
    explained = re.findall(
        r"^\| (I\d+) \|", (DOCS / "reference" / "store.md").read_text(), flags=re.MULTILINE
    )
    assert named
    assert sorted(named) == sorted(explained)


def test_every_verb_of_a_host_is_listed() -> None:
    page = (DOCS / "how-to" / "run-agents.md").read_text()
    table = page.partition("| verb | what it does |")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)
    assert sorted(listed) == sorted(name for name in vars(Host) if not name.startswith("_"))
