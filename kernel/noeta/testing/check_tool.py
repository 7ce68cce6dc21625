"""Whether a tool is what the kernel and model APIs expect: a list of checks, and a call that runs them all.

Needs no test runner. With pytest, parametrise over `TOOL_CHECKS` to see each check as a test of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import CodeType, UnionType
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import msgspec

from noeta.core.ports import ToolSpec
from noeta.core.text import meant
from noeta.core.tool import RESULT_CEILING_CHARS, Tool, ToolFlags, tool_flags
from noeta.testing.request_rules import LEGAL
from noeta.toolkit.answers import MEMBERS, not_yet
from noeta.toolkit.schema import schema_fault

ToolCheck = Callable[[Tool], None]
"""Tries one promise of a tool, and raises AssertionError with a sentence when it is not kept."""

METHODS: dict[str, tuple[str, ...]] = {
    "run": ("input", "ctx"),
    "resume": ("input", "ctx", "outcome"),
    "recover": ("input", "ctx"),
    "rule_inputs": ("input", "view"),
}
"""The methods a tool has or may have, and what each is called with."""
KNOWN = (*MEMBERS, *METHODS, "flags")


def every_member_is_there(tool: Tool) -> None:
    """Name, description, schema and the two declarations have the right types, and `run` is there."""
    if why := not_yet(tool):
        raise AssertionError(f"The tool {why}.")
    for member, type_ in MEMBERS.items():
        if not isinstance(given := getattr(tool, member, None), type_):
            why = (
                f"it is a {type(given).__name__}, not a {type_.__name__}"
                if given is not None
                else "it is missing"
            )
            _fail(tool, member, why, f"Give it a {type_.__name__}")
    if not callable(getattr(tool, "run", None)):
        _fail(tool, "run", "it is missing", "Write async def run(self, input, ctx)")


def the_name_is_legal(tool: Tool) -> None:
    """Model APIs take 1 to 64 letters, digits, _ and -."""
    if not LEGAL.fullmatch(str(getattr(tool, "name", ""))):
        _fail(tool, "name", "model APIs refuse it", "Use 1 to 64 letters, digits, _ and -")


def it_is_described(tool: Tool) -> None:
    """A model chooses a tool by its description."""
    if not str(getattr(tool, "description", "")).strip():
        _fail(tool, "description", "it is empty", "Tell the model what the tool does and when to use it")


def the_schema_is_valid_and_closed(tool: Tool) -> None:
    """A closed schema turns a misspelt argument into an error that the model can correct."""
    schema = getattr(tool, "input_schema", None)
    if not isinstance(schema, dict):
        return
    if why := schema_fault(schema):
        _fail(tool, "input_schema", why.rstrip("."), "Mend the schema")
    for place, found in _schemas(schema, "$"):
        closed = found.get("additionalProperties", found.get("unevaluatedProperties")) is not None
        if not closed and ("properties" in found or found.get("type") == "object"):
            why = f"{place} lets unknown arguments pass"
            _fail(tool, "input_schema", why, "Add 'additionalProperties': False")


def the_flags_are_sound(tool: Tool) -> None:
    """`flags` is a `ToolFlags`, each flag of its type, and `max_result_chars` within the ceiling."""
    flags = tool_flags(tool)
    if not isinstance(flags, ToolFlags):
        _fail(tool, "flags", f"it is a {type(flags).__name__}", "Write flags = ToolFlags(...)")
    for flag, type_ in get_type_hints(ToolFlags).items():
        given = getattr(flags, flag)
        try:
            msgspec.convert(given, type_)
        except msgspec.ValidationError:
            allowed = " or ".join(_shown(each) for each in _options(type_))
            _fail(tool, f"flag {flag}", f"it is {given!r}", f"Make it {allowed}")
    most = flags.max_result_chars
    if most is not None and not 1 <= most <= RESULT_CEILING_CHARS:
        way_out = f"Choose 1 to {RESULT_CEILING_CHARS}, or None for a tool that bounds its own result"
        _fail(tool, "flag max_result_chars", f"it is {most}", way_out)


def the_methods_are_async_and_take_what_they_are_given(tool: Tool) -> None:
    """`run`, and `resume`, `recover` and `rule_inputs` if there."""
    for method, arguments in METHODS.items():
        function = getattr(tool, method, None)
        if function is None:
            continue
        way_out = f"Write async def {method}(self, {', '.join(arguments)})"
        if not inspect.iscoroutinefunction(function):
            _fail(tool, method, "it is not an async method", way_out)
        try:
            inspect.signature(function).bind(*arguments)
        except TypeError as error:
            _fail(tool, method, f"it cannot be called so: {error}", way_out)


def no_member_is_misspelt(tool: Tool) -> None:
    """A name close to one that the kernel looks for would silently never be looked at."""
    for found in dir(tool):
        if found.startswith("_") or found in KNOWN:
            continue
        if hint := meant(found, [name for name in KNOWN if not hasattr(tool, name)], 0.75):
            _fail(tool, found, f"nothing looks for it{hint}", "Rename it, with a leading _ if it is your own")


def a_tool_that_parks_has_resume(tool: Tool) -> None:
    """As far as the code of `run` shows: it names `park`, and then somebody's answer has to go somewhere."""
    run = inspect.unwrap(getattr(tool, "run", lambda: None))
    code = getattr(getattr(run, "__func__", run), "__code__", None)
    if code is not None and "park" in _names(code) and not hasattr(tool, "resume"):
        way_out = "Write async def resume(self, input, ctx, outcome)"
        _fail(tool, "run", "it parks, and there is no resume to go on with", way_out)


def a_tool_that_only_reads_promises_nothing_else(tool: Tool) -> None:
    """Its calls run beside others, and again after a crash: `recover` and `run_last` contradict that."""
    if not getattr(tool, "read_only", False):
        return
    if hasattr(tool, "recover"):
        _fail(tool, "recover", "a tool that only reads is run again instead", "Drop recover, or read_only")
    if getattr(tool_flags(tool), "run_last", False):
        why = "a tool that only reads may run beside the other calls"
        _fail(tool, "flag run_last", why, "Drop run_last, or read_only")


def the_spec_can_be_sent_and_stays_the_same(tool: Tool) -> None:
    """What a request says of the tool is encodable, and the same at each look: a change costs the cache."""
    try:
        first, second = _spec(tool), _spec(tool)
    except (TypeError, ValueError, RecursionError) as error:
        _fail(tool, "spec", f"it cannot be encoded: {error}", "Use plain text, numbers, lists and dicts")
    if first != second:
        _fail(tool, "spec", "it changes from one look to the next", "Make it once and keep it")


TOOL_CHECKS: tuple[ToolCheck, ...] = (
    every_member_is_there,
    the_name_is_legal,
    it_is_described,
    the_schema_is_valid_and_closed,
    the_flags_are_sound,
    the_methods_are_async_and_take_what_they_are_given,
    no_member_is_misspelt,
    a_tool_that_parks_has_resume,
    a_tool_that_only_reads_promises_nothing_else,
    the_spec_can_be_sent_and_stays_the_same,
)
"""Every promise of a tool that can be checked without running it."""


def check_tool(tool: Tool) -> None:
    """Run every check.

    Raises AssertionError for the first promise that is not kept: a sentence with tool, place and way out.
    """
    for check in TOOL_CHECKS:
        check(tool)


def _fail(tool: Tool, place: str, why: str, way_out: str) -> NoReturn:
    name = getattr(tool, "name", None)
    shown = repr(name) if isinstance(name, str) else type(tool).__name__
    raise AssertionError(f"Tool {shown}, {place}: {why}. {way_out}.")


def _schemas(schema: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema and those inside it, each with its place."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for key, value in schema.items():
        inner: Any = ()
        if key in ("properties", "patternProperties", "$defs", "dependentSchemas"):
            inner = value.items()
        elif key in ("anyOf", "oneOf", "prefixItems"):
            inner = enumerate(value)
        elif key in ("items", "additionalProperties"):
            inner = [(key, value)]
        for name, part in inner:
            yield from _schemas(part, f"{place}.{name}")


def _names(code: CodeType) -> set[str]:
    """The names that code uses, keyword arguments too, with the functions inside it."""
    found = {*code.co_names}
    for constant in code.co_consts:
        if isinstance(constant, tuple):
            found |= {name for name in constant if isinstance(name, str)}
        elif isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _options(type_: Any) -> tuple[Any, ...]:
    return get_args(type_) if get_origin(type_) in (Union, UnionType) else (type_,)


def _shown(type_: Any) -> str:
    if get_origin(type_) is Literal:
        return " or ".join(map(repr, get_args(type_)))
    return "None" if type_ is type(None) else str(type_.__name__)


def _spec(tool: Tool) -> bytes:
    spec = ToolSpec(
        name=getattr(tool, "name", ""),
        description=getattr(tool, "description", ""),
        input_schema=getattr(tool, "input_schema", {}),
    )
    return msgspec.json.encode(spec)
