"""The page about Extension says what the code says: every hook, attribute, field, default and policy."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noeta.core import parts
from noeta.core.entries import CoreNotices
from noeta.core.errors import Signal
from noeta.core.extension import Extension
from noeta.core.view import TaskView
from noeta.toolkit.hooks import HOOKS, Hook

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "extension.md").read_text()
PIECES = [part.partition("\n") for part in re.split(r"^##+ ", PAGE, flags=re.MULTILINE)]
SECTIONS = {title.strip(): body for title, _, body in PIECES}
PARTS = ("ContextPart", "Reminder", "Command", "CommandContext", "ToolChanges", "ToolEntry")


def rows(title: str, head: str) -> list[list[str]]:
    """Return the cells of the table in a section whose first column is `head`."""
    _, _, table = SECTIONS[title].partition(f"| {head} |")
    lines = [line for line in table.partition("\n\n")[0].splitlines()[2:] if line.startswith("|")]
    return [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines
    ]


def signature(function: Callable[..., Any]) -> str:
    """Return name, arguments and result as they are written."""
    [node] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    head = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    assert node.returns
    return f"{head} {node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}"


def shown(default: Any) -> str:
    return "required" if default in (dataclasses.MISSING, msgspec.NODEFAULT) else f"`{default!r}`"


@pytest.mark.parametrize("hook", HOOKS.values(), ids=lambda hook: hook.name)
def test_a_hook_has_a_heading_with_its_signature_and_its_policy(hook: Hook) -> None:
    assert f"```text\n{signature(hook.spec)}\n```" in SECTIONS[hook.name]
    limit = f"{hook.seconds:g} s" if hook.seconds else "none"
    choices = " ".join(f"`{choice}`" for choice in hook.choices) or "nothing else"
    signals = " ".join(f"`{signal.__name__}`" for signal in hook.signals) or "nothing"
    assert rows(hook.name, "rule") == [[hook.rule, f"`{hook.on_error}`", choices, limit, signals]]


def test_the_page_has_no_hook_that_is_not_there() -> None:
    assert [
        title for title, body in SECTIONS.items() if "| rule |" in body and title != "How to read the tables"
    ] == [*HOOKS]


def test_the_words_of_the_tables_are_explained() -> None:
    explained = [
        row[0].strip("`") for head in ("rule", "word") for row in rows("How to read the tables", head)
    ]
    assert sorted(explained) == sorted(
        {*(hook.rule for hook in HOOKS.values())}
        | {word for hook in HOOKS.values() for word in (hook.on_error, *hook.choices)}
    )
    told = {row[0].strip("`") for row in rows("How to read the tables", "signal")}
    assert told == {cls.__name__ for cls in Signal.__subclasses__()}


def test_class_attributes_are_listed_with_type_and_default() -> None:
    listed = {row[0].strip("`"): row[1:3] for row in rows("Class attributes", "attribute")}
    assert listed == {
        name: [f"`{type_}`", shown(vars(Extension).get(name, dataclasses.MISSING))]
        for name, type_ in Extension.__annotations__.items()
    }


@pytest.mark.parametrize("name", PARTS)
def test_what_hooks_hand_back_is_listed_field_by_field(name: str) -> None:
    struct = getattr(parts, name)
    fields = {field.name: field for field in msgspec.structs.fields(struct)} if name not in HELD else None
    listed = {row[0].strip("`"): row[1:3] for row in rows(name, "field")}
    assert list(listed) == list(struct.__struct_fields__)
    for field, (type_, default) in listed.items():
        assert type_ == f"`{struct.__annotations__[field]}`"
        if fields is not None:
            factory = fields[field].default_factory
            value = fields[field].default if factory is msgspec.NODEFAULT else factory()
            assert default == shown(value)


# Their types are protocols, which msgspec does not look into.
HELD = {"ToolChanges"}


def test_the_fields_of_a_view_are_listed_with_type_and_default() -> None:
    public = [field for field in dataclasses.fields(TaskView) if not field.name.startswith("_")]
    own = {"plugin", "offer", "folder", "prompts", "new_id", "admit", "views", "hook"}
    listed = {row[0].strip("`"): row[1:3] for row in rows("TaskView", "field")}
    assert own <= {field.name for field in public}
    assert listed == {
        field.name: [
            f"`{field.type}`",
            shown(field.default if field.default_factory is dataclasses.MISSING else field.default_factory()),
        ]
        for field in public
        if field.name not in own
    }


def test_the_members_of_a_view_are_listed_with_their_signatures() -> None:
    listed = {row[0].strip("`") for row in rows("TaskView", "member")}
    expected = set()
    for cls in (TaskView, CoreNotices):
        for name, value in vars(cls).items():
            if name.startswith("_") or name in ("begin", "end", *TaskView.__dataclass_fields__):
                continue
            if isinstance(value, property):
                expected.add(name)
            elif inspect.isfunction(value):
                text = re.sub(r"\(self(, )?", "(", signature(value))
                expected.add(re.sub(r"^async def ", "await ", text).removeprefix("def "))
    assert listed == expected
