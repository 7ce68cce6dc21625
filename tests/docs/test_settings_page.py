"""The page about settings has every place, table and key that the host reads, with its type and default."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from noeta.host.layers import Level
from noeta.host.model_choice import KEYS, LOCAL
from noeta.host.places import MANAGED
from noeta.host.tables import TABLES, AgentTable, Blocked, ModelTable, PluginTable, Top

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "settings.md").read_text()
PIECES = [part.partition("\n") for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)]
SECTIONS = {title.strip(): body for title, _, body in PIECES}
STRUCTS: dict[str, Any] = {
    "Top": Top,
    "`[agents.X]`": AgentTable,
    "`[plugins.X]`": PluginTable,
    "`[models.X]`": ModelTable,
    "`[blocked]`": Blocked,
}
TYPES = {
    "str": "text",
    "bool": "true or false",
    "int | None": "whole number",
    "list[str]": "list of texts",
    "list[str] | None": "list of texts",
    "dict[str, str]": "table of texts",
    "Effort | None": "`low`, `medium`, `high`, `xhigh` or `max`",
}


def rows(title: str) -> list[list[str]]:
    lines = [line for line in SECTIONS[title].splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def default(field: Any) -> str:
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return "" if value is None else f"`{msgspec.json.encode(value).decode()}`"


@pytest.mark.parametrize("title", STRUCTS)
def test_the_page_has_every_key_with_its_type_and_default(title: str) -> None:
    struct = STRUCTS[title]
    expected = [
        [f"`{field.name}`", TYPES[struct.__annotations__[field.name]], default(field)]
        for field in msgspec.structs.fields(struct)
    ]
    assert [row[:3] for row in rows(title)] == expected


def test_the_page_has_every_place_in_order() -> None:
    levels = [row[0] for row in rows("Places") if "_" not in row[0]]
    assert levels == [f"`{level}`" for level in get_args(Level)]
    assert f"`{MANAGED}`" in SECTIONS["Places"]


def test_the_page_has_every_table() -> None:
    named = {table for title in SECTIONS for table in re.findall(r"`\[(\w+)(?:\.X)?\]`", title)}
    assert named == {*TABLES}


def test_the_page_names_the_models_that_need_nothing_and_the_keys_in_order() -> None:
    body = SECTIONS["The model"]
    assert re.findall(r"`(\w+_API_KEY)`", body) == [*KEYS]
    assert f"`{LOCAL}`" in body
