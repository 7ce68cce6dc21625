"""What is wrong with a plugin is told before it runs, in one sentence with plugin, place and way out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

from noeta import (
    ComposeError,
    ContextPart,
    Extension,
    SettingsError,
    TaskView,
    ToolContext,
    ToolOutput,
    ToolSet,
)
from noeta.host.registry import Registry
from noeta.testing import LogWriter, Rehearsal, check_tool
from noeta.toolkit.hooks import hookimpl
from noeta.toolkit.schema import schema_fault

Make = Callable[[], Any]


class Good(Extension):
    """A plugin with nothing wrong."""

    name = "good"


def plugin(base: type[Extension] = Good, /, **members: Any) -> Any:
    """A plugin with nothing wrong but these members."""
    return type("Bad", (base,), {"__module__": "bad", **members})()


def refusal(*extensions: Any) -> str:
    """What the registry says of an agent with these plugins."""
    with pytest.raises(ComposeError) as caught:
        Registry().compose(extensions)
    return str(caught.value)


async def unknown_argument(self: Any, view: TaskView, cal: Any) -> None: ...


async def unknown_argument_with_default(self: Any, view: TaskView, call: Any, retries: int = 3) -> None: ...


async def every_argument(self: Any, *args: Any) -> None: ...


async def every_keyword(self: Any, **kwargs: Any) -> None: ...


async def keyword_only(self: Any, *, view: TaskView) -> None: ...


async def no_self() -> None: ...


async def plain(self: Any, view: TaskView) -> None: ...


async def parts(self: Any, view: TaskView) -> list[ContextPart]:
    return []


def generator(self: Any, view: TaskView) -> Any:
    yield ContextPart("text")


async def async_generator(self: Any, view: TaskView) -> Any:
    yield ContextPart("text")


@hookimpl(wrapper=True)
def wrapper(self: Any, view: TaskView) -> Any:
    return (yield)


@hookimpl(specname="on_start")
async def renamed(self: Any, view: TaskView) -> None: ...


BEFORE_TOOL = "Write async def before_tool(self, view, call)."
ON_START = "Write async def on_start(self, view)."
CONTEXT = "Write def context(self, view)."

SIGNATURES: list[tuple[str, Any, str]] = [
    (
        "before_tool",
        unknown_argument,
        f"hook before_tool: it has no argument 'cal' (did you mean 'call'?). {BEFORE_TOOL}",
    ),
    (
        "before_tool",
        unknown_argument_with_default,
        f"hook before_tool: it has no argument 'retries'. {BEFORE_TOOL}",
    ),
    ("on_start", every_argument, f"hook on_start: *args: 'Any' is not an ordinary argument. {ON_START}"),
    ("on_start", every_keyword, f"hook on_start: **kwargs: 'Any' is not an ordinary argument. {ON_START}"),
    ("on_start", keyword_only, f"hook on_start: view: 'TaskView' is not an ordinary argument. {ON_START}"),
    ("on_start", no_self, f"hook on_start: it does not take self. {ON_START}"),
    (
        "context",
        parts,
        f"hook context: it is async, and the kernel does not wait for this hook. {CONTEXT}",
    ),
    ("context", generator, f"hook context: it yields; a hook returns. {CONTEXT}"),
    ("on_start", async_generator, f"hook on_start: it yields; a hook returns. {ON_START}"),
    ("on_start", AsyncMock(), f"hook on_start: it is a AsyncMock, not a plain method. {ON_START}"),
    (
        "on_start",
        property(lambda self: plain),
        f"hook on_start: it is a property, not a plain method. {ON_START}",
    ),
    ("on_start", staticmethod(plain), f"hook on_start: it is a staticmethod, not a plain method. {ON_START}"),
    ("on_start", classmethod(plain), f"hook on_start: it is a classmethod, not a plain method. {ON_START}"),
    ("on_start", None, f"hook on_start: it is a NoneType, not a plain method. {ON_START}"),
    ("context", wrapper, f"hook context: hooks cannot wrap others or have another name. {CONTEXT}"),
    ("on_start", renamed, f"hook on_start: hooks cannot wrap others or have another name. {ON_START}"),
]


@pytest.mark.parametrize(("hook", "method", "rest"), SIGNATURES)
def test_a_hook_of_another_form_is_refused(hook: str, method: Any, rest: str) -> None:
    assert refusal(plugin(**{hook: method})) == f"Plugin 'good', {rest}"


def test_a_misspelt_hook_is_refused() -> None:
    assert refusal(plugin(on_evnt=plain)) == (
        "Plugin 'good', method on_evnt: there is no such hook (did you mean 'on_event'?). "
        "Rename it, with a leading _ if it is no hook."
    )


def test_a_hook_set_on_an_instance_is_refused() -> None:
    extension: Any = Good()
    extension.on_start = plain
    assert refusal(extension) == (
        "Plugin 'good', on_start: a hook on an instance is never called. Define it as a method of the class."
    )


def test_a_class_in_the_list_is_refused() -> None:
    assert refusal(Good) == (
        "Plugin 'Good', the agent's list: it is not an instance of a subclass of Extension. Write Good()."
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (None, "Plugin 'Bad', bad.Bad: it has no name. Add name = \"...\" to the class."),
        ("", "Plugin 'Bad', bad.Bad: it has no name. Add name = \"...\" to the class."),
        ("a.b", "Plugin 'a.b', bad.Bad: its name has a dot. Choose another name."),
        ("core", "Plugin 'core', bad.Bad: the name 'core' is the kernel's. Choose another name."),
        (
            "a\0",
            (
                "Plugin 'a\\x00', bad.Bad: it cannot be stored: it holds a NUL or a lone surrogate. "
                "Choose another name."
            ),
        ),
    ],
)
def test_a_plugin_without_a_good_name_is_refused(name: object, sentence: str) -> None:
    assert refusal(plugin(name=name)) == sentence


def test_a_plugin_that_never_says_its_name_is_refused() -> None:
    assert refusal(plugin(Extension)) == (
        "Plugin 'Bad', bad.Bad: it has no name. Add name = \"...\" to the class."
    )


@pytest.mark.parametrize("attribute", ["before", "after", "folds", "add_to"])
@pytest.mark.parametrize("value", ["other", ["other"], (1,)])
def test_names_that_are_no_tuple_of_texts_are_refused(attribute: str, value: object) -> None:
    assert refusal(plugin(**{attribute: value})) == (
        f'Plugin \'good\', {attribute}: {value!r} is no tuple of names. Write ("one", "two").'
    )


@pytest.mark.parametrize(
    ("policies", "rest"),
    [
        ({"on_strat": "open"}, "there is no hook 'on_strat' (did you mean 'on_start'?). Name a hook."),
        ({"before_tool": "open"}, "before_tool cannot be 'open'. Choose closed or park."),
        ({"after_tool": "shut"}, "after_tool cannot be 'shut'. Choose open or closed or park."),
        ({"reduce": "open"}, "reduce cannot be 'open'. Leave it out."),
    ],
)
def test_an_unknown_hook_or_policy_in_on_error_is_refused(policies: dict[str, str], rest: str) -> None:
    assert refusal(plugin(on_error=policies)) == f"Plugin 'good', on_error: {rest}"


def test_two_plugins_of_one_name_are_refused() -> None:
    assert refusal(Good(), plugin()) == (
        f"Plugin 'good', the agent's list: {__name__}.Good and bad.Bad have the same name. "
        "Rename or drop one of them."
    )
    one = Good()
    assert refusal(one, one) == (
        f"Plugin 'good', the agent's list: {__name__}.Good and {__name__}.Good have the same name. "
        "Rename or drop one of them."
    )


def test_a_plugin_that_is_equal_to_another_is_refused() -> None:
    @dataclass
    class Same(Extension):
        name: str = "same"

    place = f"{__name__}.{Same.__qualname__}"
    assert refusal(Same("one"), Same("two")) == (
        f"Plugin 'one', {place}: it compares by value, so two plugins may be taken for one. "
        "For a dataclass write @dataclass(eq=False)."
    )


def test_a_dataclass_compared_by_identity_is_taken() -> None:
    @dataclass(eq=False)
    class Apart(Extension):
        name: str = "apart"

    assert len(Registry().compose([Apart("one"), Apart("two")]).extensions) == 2


def test_a_contradictory_order_is_refused() -> None:
    first, second = plugin(name="one", before=("two",)), plugin(name="two", before=("one",))
    assert refusal(first, second) == (
        "Plugin 'one', before and after: each has to stand before the next: 'one' > 'two' > 'one'. "
        "Drop one of these relations."
    )


class Tool:
    """A tool named ``read``."""

    name = "read"
    description = "Read."
    read_only = True
    clearable = True

    def __init__(self, schema: dict[str, Any]) -> None:
        self.input_schema = schema

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return ToolOutput()


def test_a_tool_name_offered_twice_is_told_once_and_the_first_one_wins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = Tool({"type": "object"}), Tool({"type": "object"})
    with caplog.at_level(logging.WARNING, "noeta"):
        task = Rehearsal(ToolSet([first], "a plugin"), ToolSet([second], "another"), log=LogWriter())
        assert task.offer().tools == {"read": ("a plugin", first)}
        assert task.offer().tools == {"read": ("a plugin", first)}
    told = (
        "plugins 'a plugin' and 'another' both offer 'read': the first is used. "
        "Choose with prefer, leave one out, or change the order of the agent's plugins."
    )
    assert caplog.messages == [told]


def test_a_tool_with_a_schema_that_is_none_is_refused_by_its_check() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "txt"}}}
    why = schema_fault(schema)
    assert why
    with pytest.raises(AssertionError) as caught:
        check_tool(Tool(schema))
    assert str(caught.value) == f"Tool 'read', input_schema: {why.rstrip('.')}. Mend the schema."


class Set(Extension):
    """A plugin with settings."""

    name = "set"

    class Settings(msgspec.Struct):
        retries: int = 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"retry": 1},
            (
                "Plugin 'set', setting 'retry': there is no such setting (did you mean 'retries'?). "
                "It takes retries."
            ),
        ),
        ({"colour": 1}, "Plugin 'set', setting 'colour': there is no such setting. It takes retries."),
        ({"retries": "x"}, "Plugin 'set', setting 'retries': Expected `int`, got `str`."),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Set(**settings)
    assert str(caught.value) == sentence


def test_settings_of_a_plugin_that_takes_none_are_refused() -> None:
    with pytest.raises(SettingsError) as caught:
        Good(retries=1)
    assert str(caught.value) == "Plugin 'good', setting 'retries': there is no such setting. It takes none."
