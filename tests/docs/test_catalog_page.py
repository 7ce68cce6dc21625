"""The page about the catalog names what the code has: groups, fields, states."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from noeta.host.catalog import GROUPS, Entry, State

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "catalog.md").read_text()
PIECES = [part.partition("\n") for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)]
SECTIONS = {title.strip(): body for title, _, body in PIECES}


def first_cells(title: str) -> list[str]:
    return re.findall(r"^\| `([\w.]+)` \|", SECTIONS[title], flags=re.MULTILINE)


def test_the_page_lists_every_group_and_no_other() -> None:
    assert first_cells("Groups") == [*GROUPS]


def test_the_page_lists_every_field_of_an_entry() -> None:
    assert first_cells("Entries") == [*Entry.__struct_fields__]


def test_the_page_names_every_state_of_an_entry() -> None:
    [row] = [line for line in SECTIONS["Entries"].splitlines() if line.startswith("| `state`")]
    assert set(re.findall(r"`([\w ]+)`", row)) == {"state", *get_args(State)}
