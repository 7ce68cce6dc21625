"""The page about gates says what the code says, and its example gates a call."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from noeta.core import gates
from noeta.toolkit.hooks import HOOKS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "gates.md").read_text()
SECTIONS = dict(part.partition("\n")[::2] for part in re.split(r"^##+ ", PAGE, flags=re.MULTILINE))


@pytest.mark.parametrize("name", ["Allow", "Deny", "Ask", "Rewrite"])
def test_each_answer_is_listed_field_by_field(name: str) -> None:
    struct = getattr(gates, name)
    expected = []
    for field in msgspec.structs.fields(struct):
        factory = field.default_factory
        default = field.default if factory is msgspec.NODEFAULT else factory()
        shown = "required" if default is msgspec.NODEFAULT else f"`{default!r}`"
        type_ = struct.__annotations__[field.name].replace("|", "\\|")
        expected.append([f"`{field.name}`", f"`{type_}`", shown])
    lines = [line for line in SECTIONS[name].splitlines() if line.startswith("| `")]
    assert [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:4]] for line in lines] == expected


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    assert f"At most {gates.MAX_REWRITES} rewrites" in PAGE
    assert f"takes more than {HOOKS['before_tool'].seconds:g} seconds" in PAGE
