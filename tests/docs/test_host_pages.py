"""The pages about agents, hosts and outcomes say what the code says, name by name."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from noeta import Agent, Host
from noeta.core import errors as core_errors
from noeta.core.messages import Usage
from noeta.host.outcome import Asked, Outcome
from noeta.toolkit import errors

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
STRUCTS: dict[str, tuple[str, type[Struct]]] = {
    "Agent": ("agent", Agent),
    "Outcome": ("outcome", Outcome),
    "Asked": ("outcome", Asked),
}
VERBS: dict[str, Callable[..., Any]] = {
    name: value for name, value in vars(Host).items() if inspect.isfunction(value) and name[0] != "_"
}
HEADINGS = {"Host", "Making one", "Entering and leaving", "Verbs"}
ERRORS = {
    name
    for module in (builtins, core_errors, errors)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Exception)
}
Row = tuple[str, str, str]
"""A name, its type as it stands in the source, its default."""


def sections(page: str) -> dict[str, str]:
    text = (FOLDER / f"{page}.md").read_text()
    pieces = [part.partition("\n") for part in re.split(r"^#+ ", text, flags=re.MULTILINE)]
    return {title.strip(): body for title, _, body in pieces}


def cells(text: str) -> list[list[str]]:
    """Return the cells of the rows of all tables that begin with a name."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def told(text: str) -> list[Row]:
    rows = [row for row in cells(text) if len(row) == 4]
    assert all(row[3] for row in rows)
    return [(row[0].strip("`"), row[1].strip("`").replace("\\|", "|"), row[2]) for row in rows]


def default(value: Any) -> str:
    if value in (inspect.Parameter.empty, msgspec.NODEFAULT):
        return "required"
    return "no tokens" if isinstance(value, Usage) else f"`{value!r}`".replace("'", '"')


def fields(cls: type[Struct]) -> list[Row]:
    rows = []
    for field in msgspec.structs.fields(cls):
        made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        rows.append((field.name, str(cls.__annotations__[field.name]), default(made)))
    return rows


def parameters(function: Callable[..., Any]) -> list[Row]:
    rows = []
    for name, parameter in inspect.signature(function).parameters.items():
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        if name != "self":
            value = "any" if stars else default(parameter.default)
            rows.append((f"{stars}{name}", parameter.annotation, value))
    return rows


def raised(text: str) -> set[str]:
    """Return the errors that a section's table names, each of which there is."""
    names = {row[0].strip("`") for row in cells(text) if len(row) == 2}
    assert names <= ERRORS
    return names


@pytest.mark.parametrize("title", STRUCTS)
def test_a_page_lists_every_field_with_its_type_and_default(title: str) -> None:
    page, cls = STRUCTS[title]
    assert told(sections(page)[title]) == fields(cls)


def test_the_page_lists_every_argument_of_a_host() -> None:
    assert told(sections("host")["Host"]) == parameters(Host.__init__)


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_lists_every_argument_of_a_verb_and_every_error_that_it_names(verb: str) -> None:
    section, function = sections("host")[verb], VERBS[verb]
    assert told(section) == parameters(function)
    doc = inspect.getdoc(function) or ""
    says = ERRORS & set(re.findall(r"`(\w+)`", doc.partition("Raises")[2]))
    assert says <= raised(section)


def test_the_page_names_every_error_of_making_and_entering_a_host() -> None:
    page, doc = sections("host"), inspect.getdoc(Host) or ""
    making, _, entering = doc.partition("Entering raises")
    says = set(re.findall(r"`(\w+Error)`", making))
    assert says == raised(page["Host"])
    assert set(re.findall(r"`(\w+Error)`", entering)) <= raised(page["Entering and leaving"])


def test_the_pages_describe_nothing_that_is_not_there() -> None:
    assert sections("host").keys() - {""} == VERBS.keys() | HEADINGS
    assert "`host.catalog`" in sections("host")["Host"]
