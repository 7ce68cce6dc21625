"""The kit for tools passes good ones, and finds each fault of a bad one in the check that is named for it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from noeta import Answer, ToolContext, ToolFlags, ToolOutput, ask, text_output
from noeta.testing import TOOL_CHECKS, ToolCheck, check_tool
from noeta.toolkit.schema import schema_fault

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}


class Good:
    """A tool that keeps every promise."""

    name: Any = "read"
    description: Any = "Read a file."
    input_schema: Any = SCHEMA
    read_only = False
    clearable = True

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return text_output("ok")


class Asking(Good):
    """A good tool with all the optional members."""

    flags: Any = ToolFlags(retry_safe=True, max_result_chars=1_000, silent_reply_after="call")

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return ToolOutput(park=ask({"question": "Really?"}))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Answer | None) -> ToolOutput:
        return text_output("ok")

    async def recover(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput | None:
        return None

    async def rule_inputs(self, input: dict[str, Any], view: object) -> list[tuple[dict[str, Any], bool]]:
        return []


@pytest.mark.parametrize("tool", [Good(), Asking()])
def test_a_good_tool_passes(tool: Good) -> None:
    check_tool(tool)


def test_each_check_has_a_name_of_its_own_and_says_what_it_checks() -> None:
    names = [check.__name__ for check in TOOL_CHECKS]
    assert len(set(names)) == len(names)
    assert [check.__name__ for check in TOOL_CHECKS if not check.__doc__] == []


def test_the_kit_for_tools_needs_no_test_runner_and_no_hypothesis() -> None:
    code = "import sys; sys.modules['hypothesis'] = sys.modules['pytest'] = sys.modules['trio'] = None"
    subprocess.run([sys.executable, "-c", f"{code}; import noeta.testing.check_tool"], check=True)


def tool(base: type[Good] = Good, /, **members: Any) -> Good:
    """A good tool but for these members."""
    return type("Bad", (base,), members)()  # type: ignore[no-any-return]


def schema(**parts: Any) -> dict[str, Any]:
    return {**SCHEMA, **parts}


async def one_argument(self: object, input: dict[str, Any]) -> ToolOutput:
    return text_output("ok")


async def parks(self: object, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    output = text_output("")
    output.park = ask({"question": "Really?"})
    return output


async def parks_inside(self: object, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    def later() -> ToolOutput:
        return ToolOutput(park=ask({"question": "Really?"}))

    return later()


def plain(self: object, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
    return text_output("ok")


async def recover(self: object, input: dict[str, Any], ctx: ToolContext) -> ToolOutput | None:
    return None


COUNTER = itertools.count()

BAD: list[tuple[str, Callable[[], Good], str]] = [
    (
        "every_member_is_there",
        lambda: tool(clearable=None),
        "Tool 'read', clearable: it is missing. Give it a bool.",
    ),
    (
        "every_member_is_there",
        lambda: tool(read_only="yes"),
        "Tool 'read', read_only: it is a str, not a bool. Give it a bool.",
    ),
    (
        "every_member_is_there",
        lambda: tool(run=None),
        "Tool 'read', run: it is missing. Write async def run(self, input, ctx).",
    ),
    (
        "the_name_is_legal",
        lambda: tool(name="read file"),
        "Tool 'read file', name: model APIs refuse it. Use 1 to 64 letters, digits, _ and -.",
    ),
    (
        "the_name_is_legal",
        lambda: tool(name="x" * 65),
        f"Tool '{'x' * 65}', name: model APIs refuse it. Use 1 to 64 letters, digits, _ and -.",
    ),
    (
        "it_is_described",
        lambda: tool(description=" "),
        "Tool 'read', description: it is empty. Tell the model what the tool does and when to use it.",
    ),
    (
        "the_schema_is_valid_and_closed",
        lambda: tool(input_schema={"type": "array"}),
        f"Tool 'read', input_schema: {schema_fault({'type': 'array'})}. Mend the schema.",
    ),
    (
        "the_schema_is_valid_and_closed",
        lambda: tool(input_schema={"type": "object", "properties": {}}),
        "Tool 'read', input_schema: $ lets unknown arguments pass. Add 'additionalProperties': False.",
    ),
    (
        "the_schema_is_valid_and_closed",
        lambda: tool(
            input_schema=schema(
                properties={"edits": {"type": "array", "items": {"type": "object", "properties": {"x": {}}}}},
                required=[],
            )
        ),
        (
            "Tool 'read', input_schema: $.edits.items lets unknown arguments pass. "
            "Add 'additionalProperties': False."
        ),
    ),
    (
        "the_flags_are_sound",
        lambda: tool(flags={"deferred": True}),
        "Tool 'read', flags: it is a dict. Write flags = ToolFlags(...).",
    ),
    (
        "the_flags_are_sound",
        lambda: tool(flags=ToolFlags(deferred="yes")),  # type: ignore[arg-type]
        "Tool 'read', flag deferred: it is 'yes'. Make it bool.",
    ),
    (
        "the_flags_are_sound",
        lambda: tool(flags=ToolFlags(silent_reply_after="never")),  # type: ignore[arg-type]
        ("Tool 'read', flag silent_reply_after: it is 'never'. Make it 'call' or 'success' or None."),
    ),
    (
        "the_flags_are_sound",
        lambda: tool(flags=ToolFlags(max_result_chars=50_001)),
        (
            "Tool 'read', flag max_result_chars: it is 50001. "
            "Choose 1 to 50000, or None for a tool that bounds its own result."
        ),
    ),
    (
        "the_methods_are_async_and_take_what_they_are_given",
        lambda: tool(run=plain),
        "Tool 'read', run: it is not an async method. Write async def run(self, input, ctx).",
    ),
    (
        "the_methods_are_async_and_take_what_they_are_given",
        lambda: tool(recover=one_argument),
        (
            "Tool 'read', recover: it cannot be called so: too many positional arguments. "
            "Write async def recover(self, input, ctx)."
        ),
    ),
    (
        "no_member_is_misspelt",
        lambda: tool(recovers=recover),
        (
            "Tool 'read', recovers: nothing looks for it (did you mean 'recover'?). "
            "Rename it, with a leading _ if it is your own."
        ),
    ),
    (
        "no_member_is_misspelt",
        lambda: tool(flag=ToolFlags()),
        (
            "Tool 'read', flag: nothing looks for it (did you mean 'flags'?). "
            "Rename it, with a leading _ if it is your own."
        ),
    ),
    (
        "a_tool_that_parks_has_resume",
        lambda: tool(run=parks),
        (
            "Tool 'read', run: it parks, and there is no resume to go on with. "
            "Write async def resume(self, input, ctx, outcome)."
        ),
    ),
    (
        "a_tool_that_parks_has_resume",
        lambda: tool(run=Asking.run),
        (
            "Tool 'read', run: it parks, and there is no resume to go on with. "
            "Write async def resume(self, input, ctx, outcome)."
        ),
    ),
    (
        "a_tool_that_parks_has_resume",
        lambda: tool(run=parks_inside),
        (
            "Tool 'read', run: it parks, and there is no resume to go on with. "
            "Write async def resume(self, input, ctx, outcome)."
        ),
    ),
    (
        "a_tool_that_only_reads_promises_nothing_else",
        lambda: tool(read_only=True, recover=recover),
        "Tool 'read', recover: a tool that only reads is run again instead. Drop recover, or read_only.",
    ),
    (
        "a_tool_that_only_reads_promises_nothing_else",
        lambda: tool(read_only=True, flags=ToolFlags(run_last=True)),
        (
            "Tool 'read', flag run_last: a tool that only reads may run beside the other calls. "
            "Drop run_last, or read_only."
        ),
    ),
    (
        "the_spec_can_be_sent_and_stays_the_same",
        lambda: tool(description=property(lambda self: f"Read it. {next(COUNTER)}")),
        "Tool 'read', spec: it changes from one look to the next. Make it once and keep it.",
    ),
    (
        "the_spec_can_be_sent_and_stays_the_same",
        lambda: tool(description="Read \ud800."),
        (
            "Tool 'read', spec: it cannot be encoded: 'utf-8' codec can't encode character '\\ud800' in "
            "position 5: surrogates not allowed. Use plain text, numbers, lists and dicts."
        ),
    ),
]


def failure(check: ToolCheck, tool: Good) -> str:
    try:
        check(tool)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("name", "make", "sentence"), BAD)
def test_a_bad_tool_fails_the_check_that_is_named_for_it_and_no_other(
    name: str, make: Callable[[], Good], sentence: str
) -> None:
    told = {check.__name__: failure(check, make()) for check in TOOL_CHECKS}
    assert {check: words for check, words in told.items() if words} == {name: sentence}
    with pytest.raises(AssertionError) as caught:
        check_tool(make())
    assert str(caught.value) == sentence


def test_every_check_has_a_bad_tool_that_fails_it() -> None:
    assert {name for name, _, _ in BAD} == {check.__name__ for check in TOOL_CHECKS}


def test_a_class_and_a_function_are_told_how_to_become_a_tool() -> None:
    class Later:
        """A tool class."""

    def plain(text: str) -> str:
        return text

    with pytest.raises(AssertionError, match=r"The tool is the class Later\. Write Later\(\)\."):
        check_tool(Later)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=r"The tool is the function plain\. Make a tool of it with"):
        check_tool(plain)  # type: ignore[arg-type]
