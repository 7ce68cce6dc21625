"""The pages and READMEs of plugins list the settings, arguments and records that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from noeta_fs import FilesSettings
from noeta_fs.glob import Glob
from noeta_fs.read import Read
from noeta_fs.records import FileRead
from noeta_local import LocalSettings
from noeta_local.variables import PASSED

ROOT = Path(__file__).parents[2]
FS, LOCAL = (ROOT / "docs" / "reference" / f"{name}.md" for name in ("fs", "local"))
READMES = [ROOT / "plugins" / name / "README.md" for name in ("fs", "local")]


def table(text: str, head: str) -> list[tuple[str, str]]:
    """Return the first two cells of each row of the table that begins with `head`."""
    body = text.partition(f"| {head} |")[2].partition("\n\n")[0]
    return [
        (name, cell.strip("`"))
        for name, cell in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", body, flags=re.MULTILINE)
    ]


@pytest.mark.parametrize(
    ("page", "settings"),
    [(FS, FilesSettings), (READMES[0], FilesSettings), (LOCAL, LocalSettings), (READMES[1], LocalSettings)],
)
def test_a_page_lists_each_setting_with_its_default(page: Path, settings: type[msgspec.Struct]) -> None:
    fields = msgspec.structs.fields(settings)
    expected = [
        (field.name, '""' if field.default == "" else f"{field.default!r}".replace("_", ""))
        for field in fields
    ]
    assert table(page.read_text(), "setting | default | meaning") == expected


@pytest.mark.parametrize("tool", [Read, Glob])
def test_the_page_lists_each_argument_of_a_tool(tool: type[Read | Glob]) -> None:
    section = FS.read_text().partition(f"## {tool.name}\n")[2]
    listed = [name for name, _ in table(section, "argument | meaning")]
    assert listed == [*tool.input_schema["properties"]]


def test_the_page_lists_each_field_of_the_record() -> None:
    fields = [(field.name, field.type.__name__) for field in msgspec.structs.fields(FileRead)]
    assert table(FS.read_text(), "field | type | meaning") == fields
    assert all(f"`{name}`" in READMES[0].read_text() for name, _ in fields)


def test_the_page_lists_each_variable_that_is_passed() -> None:
    [line] = [
        line for line in LOCAL.read_text().splitlines() if line.startswith("- Variables that are passed")
    ]
    assert tuple(re.findall(r"`([A-Z_*]+)`", line)) == PASSED
