"""The page about tools says what the code says, name by name."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import noeta
from noeta import CoreNotices, Display, KeptClaim, Park, Tool, ToolContext, ToolFlags, ToolOutput
from noeta.core import tool
from noeta.toolkit import questions
from noeta.toolkit.function_tool import function_tool

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "tool.md").read_text()
PIECES = [part.partition("\n") for part in re.split(r"^##+ ", PAGE, flags=re.MULTILINE)]
SECTIONS = {title.strip(): body for title, _, body in PIECES}
CONSTANTS = ("MAX_ATTEMPTS", "RESULT_CEILING_CHARS", "NO_FLAGS")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "function_tool": function_tool,
    "text_output": tool.text_output,
    "ask": questions.ask,
    "read_answer": questions.read_answer,
    "tool_flags": tool.tool_flags,
}
Row = tuple[str, str, str]
"""A name, its type or signature as it stands in the source, its default."""


def told(text: str) -> list[Row]:
    """Return the rows of the tables in a part of the page, as far as the code knows them."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert all(len(row) == 4 and row[3] for row in rows), rows
    return [(row[0].strip("`"), row[1].strip("`").replace("\\|", "|"), row[2]) for row in rows]


def plain(annotation: Any) -> str:
    """Return an annotation as the source has it."""
    return str(annotation).replace("'", '"')


def shown(function: Any) -> str:
    """Return a signature without self, and without the quotes that `inspect` puts around annotations."""
    signature = inspect.signature(function)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature.replace(parameters=kept)))
    return "async " * inspect.iscoroutinefunction(function) + text.replace("'", '"')


def default(value: Any) -> str:
    if value in (dataclasses.MISSING, inspect.Parameter.empty, msgspec.NODEFAULT):
        return "required"
    if inspect.isfunction(value):
        return f"gives `{value('name', 'default')}`"
    return f"`{value!r}`".replace("'", '"')


def methods(cls: type) -> list[Row]:
    """Return the properties and the public methods of a class."""
    found = []
    for name, value in vars(cls).items():
        if isinstance(value, property):
            kind = "required" if getattr(cls, "_is_protocol", False) else "computed"
            found.append((name, inspect.signature(value.fget).return_annotation, kind))
        elif (
            inspect.isfunction(value) and name[0] != "_" and name not in vars(cls).get("__annotations__", {})
        ):
            found.append((name, shown(value), "method"))
    return found


def fields(cls: Any) -> list[Row]:
    """Return the fields of a dataclass, a struct or a TypedDict."""
    if dataclasses.is_dataclass(cls):
        return [(field.name, plain(field.type), default(field.default)) for field in dataclasses.fields(cls)]
    if issubclass(cls, dict):
        hints = {name: hint.__forward_arg__ for name, hint in cls.__annotations__.items()}
        return [
            (
                name,
                re.sub(r"^NotRequired\[(.*)\]$", r"\1", hint),
                "absent" if "NotRequired" in hint else "required",
            )
            for name, hint in hints.items()
        ]
    rows = []
    for field in msgspec.structs.fields(cls):
        made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        rows.append((field.name, plain(cls.__annotations__[field.name]), default(made)))
    return rows


def optional_members() -> list[Row]:
    """Return what `Tool` says that a tool may also have."""
    assert tool.tool_flags(typing.cast("Tool", object())) is tool.NO_FLAGS
    found = re.findall(r"``async (\w+)(\(.*?\) -> .*?)``", Tool.__doc__ or "")
    flags: Row = ("flags", "ToolFlags", "`NO_FLAGS`")
    return [flags, *((name, f"async {signature}", "optional") for name, signature in found)]


def parameters(function: Callable[..., Any]) -> list[Row]:
    """Return what a function takes; of one with overloads, what the first one says or else itself."""
    first = (typing.get_overloads(function) or [function])[0]
    itself = inspect.signature(function).parameters
    rows = []
    for name, parameter in inspect.signature(first).parameters.items():
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        annotation = itself.get(name, parameter).annotation if function is questions.read_answer else None
        value = "any" if stars else default(parameter.default)
        rows.append((f"{stars}{name}", annotation or parameter.annotation, value))
    return rows


def constants() -> list[Row]:
    return [
        (name, type(value).__name__, "`ToolFlags()`" if value == ToolFlags() else f"`{value!r}`")
        for name in CONSTANTS
        for value in [getattr(tool, name)]
    ]


EXPECTED: dict[str, Iterable[Row]] = {
    "Tool": [*methods(Tool), *optional_members()],
    "ToolFlags": fields(ToolFlags),
    "ToolOutput": [*fields(ToolOutput), *methods(ToolOutput)],
    "Display": fields(Display),
    "Park": fields(Park),
    "ToolContext": [*fields(ToolContext), *methods(ToolContext), *methods(CoreNotices)],
    "KeptClaim": methods(KeptClaim),
    "Question": fields(questions.Question),
    "Option": fields(questions.Option),
    **{name: parameters(function) for name, function in FUNCTIONS.items()},
    "Constants": constants(),
}


@pytest.mark.parametrize("title", EXPECTED)
def test_a_section_lists_every_name_with_its_type_and_default(title: str) -> None:
    assert list(EXPECTED[title])
    assert told(SECTIONS[title]) == list(EXPECTED[title])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_gives(name: str) -> None:
    function = FUNCTIONS[name]
    for form in typing.get_overloads(function) or [function]:
        assert f"`{inspect.signature(form).return_annotation}`" in SECTIONS[name]


def test_the_page_describes_nothing_that_is_not_there() -> None:
    headings = {"# Tools", "What a tool is", "What it gives back", "What it sees", "Questions", "Functions"}
    assert set(SECTIONS) == {*EXPECTED, *headings}


def test_the_names_import_from_noeta() -> None:
    dicts = {"Question", "Option"}
    names = {title for title in EXPECTED if title != "Constants"} | set(CONSTANTS)
    assert names - set(noeta.__all__) == dicts
