"""The page about records says what the code says, name by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct

from noeta.core import messages, records
from noeta.core.codec import Envelope
from noeta.core.items import ITEMS
from noeta.core.messages import Usage

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "records.md").read_text()
PIECES = [part.partition("\n") for part in re.split(r"^##+ ", PAGE, flags=re.MULTILINE)]
SECTIONS = {title.strip(): body for title, _, body in PIECES}
PARTS = ("Plugin", "SystemPart", "ToolPart", "Edit", "CallRef", "Opinion", "Answer")
BLOCKS = ("Message", "Text", "Image", "ToolUse", "ToolResult", "Thinking", "ToolReference", "Unknown")
# Items that are described as records.
AS_RECORDS = {"answer", "child_ended"}
STRUCTS: dict[str, type[Struct]] = {
    "The envelope": Envelope,
    **records.CORE_KINDS,
    **{name: getattr(records, name) for name in PARTS},
    **{name: getattr(messages, name) for name in (*BLOCKS, "Usage")},
    **{f"Item {kind}": type_ for kind, type_ in ITEMS.items() if type_ and kind not in AS_RECORDS},
}


def rows(title: str) -> list[list[str]]:
    """Return the cells of a section's table: field, type, default, meaning."""
    lines = [line for line in SECTIONS[title].splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def shown_type(type_: Any) -> str:
    plain = isinstance(type_, type) and not get_args(type_)
    return type_.__name__ if plain else re.sub(r"\b(noeta\.core\.\w+|typing|msgspec)\.", "", str(type_))


def shown_default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{field.default_factory()!r}`"
    match field.default:
        case msgspec.NODEFAULT:
            return "required"
        case msgspec.Raw():
            return f"`{bytes(field.default).decode()}`" if field.default else "absent"
        case Usage():
            return "no tokens"
        case str():
            return f'`"{field.default}"`'
        case other:
            return f"`{other!r}`"


@pytest.mark.parametrize("title", STRUCTS)
def test_a_section_lists_each_field_with_its_type_and_default(title: str) -> None:
    fields = msgspec.structs.fields(STRUCTS[title])
    expected = [
        [f"`{field.encode_name}`", f"`{shown_type(field.type)}`", shown_default(field)] for field in fields
    ]
    assert [[cell.replace("\\|", "|") for cell in row[:3]] for row in rows(title)] == expected
    assert all(len(row) == 4 and row[3] for row in rows(title))


@pytest.mark.parametrize("kind", records.CORE_KINDS)
def test_a_kind_stands_under_who_may_write_it_with_its_struct_and_version(kind: str) -> None:
    type_ = records.CORE_KINDS[kind]
    assert f"Struct `{type_.__name__}`, version {type_.v}." in SECTIONS[kind]
    facts, entries = PAGE.index("## Facts of the kernel"), PAGE.index("## Entries")
    assert (PAGE.index(f"### {kind}\n") > entries) == (kind in records.ENTRY_KINDS)
    assert PAGE.index(f"### {kind}\n") > facts


def test_the_page_describes_nothing_that_is_not_there() -> None:
    headings = {"# Records", "Facts of the kernel", "Entries", "Inbox items", "Parts of records", "Messages"}
    assert set(SECTIONS) - set(STRUCTS) - {"Item message"} == headings
    items = {title.removeprefix("Item ") for title in SECTIONS if title.startswith("Item ")}
    assert items | AS_RECORDS == set(ITEMS)
