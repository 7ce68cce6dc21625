"""A typed function becomes a tool: its schema, its typed arguments, its results, its errors."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta import NoetaError, Tool, ToolContext, ToolOutput, text_output, tool_flags
from noeta.toolkit.function_tool import FunctionTool, ToolSignatureError, function_tool
from noeta.toolkit.schema import check_schema, schema_fault

if TYPE_CHECKING:
    from noeta import ToolContext as Seen


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct):
    """A place."""

    x: Annotated[int, msgspec.Meta(description="to the right")]
    y: int = 0


@dataclass
class Box:
    lid: bool
    parts: list[str] | None = None


class Options(TypedDict):
    depth: int
    note: NotRequired[str]


class Tree(msgspec.Struct):
    kids: list[Tree] = []


def property_of(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """Return the schema of a parameter with this annotation."""

    def function(it: Any) -> None: ...

    function.__annotations__["it"] = annotation
    if default is not ...:
        function.__defaults__ = (default,)
    schema = function_tool(function).input_schema
    found: dict[str, Any] = schema["properties"]["it"]
    assert ("it" in schema.get("required", [])) == (default is ...)
    return found


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array"}),
        (dict, {"type": "object", "additionalProperties": True}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Annotated[str, "a name"], {"description": "a name", "type": "string"}),
        (
            list[Annotated[str, "one of them"]] | None,
            {
                "anyOf": [
                    {"type": "array", "items": {"description": "one of them", "type": "string"}},
                    {"type": "null"},
                ]
            },
        ),
        (
            Annotated[int, "how many", msgspec.Meta(ge=1)],
            {"description": "how many", "type": "integer", "minimum": 1},
        ),
        (Any, {}),
        (Annotated[Colour, "of the wall"], {"description": "of the wall", "enum": ["blue", "red"]}),
        (
            Point,
            {
                "description": "A place.",
                "type": "object",
                "properties": {
                    "x": {"description": "to the right", "type": "integer"},
                    "y": {"type": "integer", "default": 0},
                },
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {"depth": {"type": "integer"}, "note": {"type": "string"}},
                "required": ["depth"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_an_annotation_becomes_its_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert property_of(annotation) == schema


@pytest.mark.parametrize(
    ("annotation", "default", "shown"),
    [
        (int, 3, {"default": 3}),
        (int | None, None, {"default": None}),
        (Colour, Colour.RED, {"default": "red"}),
        (Point, Point(x=1), {"default": {"x": 1, "y": 0}}),
        (list[str], [], {"default": []}),
        # What a model could not give is left out.
        (str, None, {}),
        (float, float("nan"), {}),
        # What looks like a schema and is data stays as it is.
        (
            dict,
            {"type": "object", "$ref": "#", "title": "t"},
            {"default": {"type": "object", "$ref": "#", "title": "t"}},
        ),
        (int | None, object(), {}),
    ],
)
def test_a_default_makes_a_parameter_optional_and_is_told(
    annotation: Any, default: Any, shown: dict[str, Any]
) -> None:
    schema = property_of(annotation, default)
    assert {key: value for key, value in schema.items() if key == "default"} == shown


def test_the_schema_is_an_object_of_these_properties_and_no_others() -> None:
    @function_tool
    def search(query: Annotated[str, "what to find"], limit: int = 10) -> str:
        return query * limit

    assert search.input_schema == {
        "type": "object",
        "properties": {
            "query": {"description": "what to find", "type": "string"},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_a_large_part_that_is_used_twice_is_said_once() -> None:
    @function_tool
    def move(start: Point, end: Point, tree: Tree, colour: Colour, other: Colour) -> None: ...

    schema = move.input_schema
    assert schema["properties"]["start"] == schema["properties"]["end"] == {"$ref": "#/$defs/Point"}
    enum = {"description": "A colour.", "enum": ["blue", "red"]}
    assert schema["properties"]["colour"] == schema["properties"]["other"] == enum
    assert list(schema["$defs"]) == ["Point", "Tree"]
    assert "title" not in str(schema)
    assert schema_fault(schema) is None


def test_tagged_structs_are_told_apart_though_their_schema_is_inlined() -> None:
    class Cat(msgspec.Struct, tag="cat"):
        purrs: bool

    class Dog(msgspec.Struct, tag="dog"):
        discriminator: str

    @function_tool
    def feed(pet: Cat | Dog) -> str:
        return type(pet).__name__

    assert "discriminator" in str(feed.input_schema)
    assert "propertyName" not in str(feed.input_schema)
    assert check_schema(feed.input_schema, {"pet": {"type": "dog", "discriminator": "nose"}}) is None
    assert check_schema(feed.input_schema, {"pet": {"type": "dog", "purrs": True}}) is not None


async def run(tool: FunctionTool, input: Any, ctx: ToolContext) -> str:
    output = await tool.run(input, ctx)
    assert not output.is_error, output.text
    return output.text


@pytest.mark.anyio
async def test_the_function_gets_values_of_the_types_it_names(ctx: ToolContext) -> None:
    seen: list[Any] = []

    @function_tool
    async def take(a: float, b: Colour, c: Box, d: list[Point], e: Options, f: dict[int, str]) -> None:
        seen.extend([a, b, c, d, e, f])

    given = {
        "a": 1,
        "b": "red",
        "c": {"lid": True},
        "d": [{"x": 1}, {"x": 2, "y": 3}],
        "e": {"depth": 1},
        "f": {"1": "one"},
    }
    assert await run(take, given, ctx) == ""
    expected = [1.0, Colour.RED, Box(True), [Point(1), Point(2, 3)], {"depth": 1}, {1: "one"}]
    assert seen == expected


@pytest.mark.anyio
async def test_a_parameter_left_out_is_the_functions_own_default(ctx: ToolContext) -> None:
    sentinel = object()

    @function_tool
    async def take(a: int | None = sentinel) -> bool:  # type: ignore[assignment]
        return a is sentinel

    assert await run(take, {}, ctx) == "true"
    assert await run(take, {"a": None}, ctx) == "false"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("input", "said"),
    [
        ({}, "$.count: it is required and missing"),
        (
            {"cuont": 1},
            "$.cuont: there is no such property (did you mean 'count'?); known are 'count', 'where'",
        ),
        ({"count": "1"}, "$.count: must be of type integer, not string"),
        ({"count": 1.0}, "Expected `int`, got `float` - at `$.count`"),
        ({"count": 1, "where": {"x": "a"}}, "$.where.x: must be of type integer, not string"),
        ({"count": 1, "where": {"x": 1, "z": 1}}, "$.where.z: there is no such property; known are 'x', 'y'"),
        ([], "$: must be of type object, not array"),
    ],
)
async def test_input_that_does_not_fit_is_an_error_the_model_can_mend(
    input: Any, said: str, ctx: ToolContext
) -> None:
    @function_tool
    async def take(count: int, where: Point | None = None) -> None:
        raise AssertionError("it was called")

    output = await take.run(input, ctx)
    assert output.is_error
    assert output.text == f"The input does not fit. {said}."


@pytest.mark.anyio
async def test_the_context_goes_to_the_parameter_of_its_type_or_name(ctx: ToolContext) -> None:
    @function_tool
    async def by_type(a: int, seen: ToolContext) -> str:
        return f"{a} {seen.call_id}"

    @function_tool
    def by_name(a: int, ctx) -> str:  # type: ignore[no-untyped-def]
        return f"{a} {ctx.call_id}"

    @function_tool
    async def by_name_for_type_checkers(ctx: Seen) -> str:
        return ctx.call_id

    @function_tool
    async def optional(a: int, seen: Annotated[ToolContext, "it"] | None = None) -> str:
        return f"{a} {seen.call_id if seen else None}"

    for tool, input in ((by_type, {"a": 1}), (by_name, {"a": 1}), (optional, {"a": 1})):
        assert list(tool.input_schema["properties"]) == ["a"]
        assert await run(tool, input, ctx) == "1 c5_0_00000000"
    assert by_name_for_type_checkers.input_schema["properties"] == {}
    assert await run(by_name_for_type_checkers, {}, ctx) == "c5_0_00000000"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("half a \ud83d pair", "half a � pair"),
        (None, ""),
        (True, "true"),
        (3, "3"),
        ([1, "ä"], '[1,"ä"]'),
        ({"a": Point(1), "b": Colour.RED}, '{"a":{"x":1,"y":0},"b":"red"}'),
        (Box(False), '{"lid":false,"parts":null}'),
        (float("inf"), '"Infinity"'),
    ],
)
async def test_what_a_function_returns_becomes_text(value: Any, text: str, ctx: ToolContext) -> None:
    @function_tool
    async def give() -> Any:
        return value

    assert await run(give, {}, ctx) == text


@pytest.mark.anyio
async def test_an_output_stands_as_it_is(ctx: ToolContext) -> None:
    made = text_output("no", is_error=True, tries=3)

    @function_tool
    def give() -> ToolOutput:
        return made

    assert await give.run({}, ctx) is made


@pytest.mark.anyio
async def test_what_json_cannot_say_and_what_a_function_raises_reaches_the_runner(ctx: ToolContext) -> None:
    @function_tool
    def give(broken: bool) -> object:
        if broken:
            raise LookupError("no such page")
        return {"a": [object()]}

    with pytest.raises(NoetaError, match=r"\$\.a\[0\] cannot be stored: it is a object"):
        await give.run({"broken": False}, ctx)
    with pytest.raises(LookupError, match="no such page"):
        await give.run({"broken": True}, ctx)


@pytest.mark.anyio
async def test_a_plain_function_runs_beside_the_event_loop(ctx: ToolContext) -> None:
    gone_on = threading.Event()
    threads = []

    @function_tool
    def wait() -> bool:
        threads.append(threading.current_thread())
        return gone_on.wait(60)

    async def go_on() -> None:
        gone_on.set()

    async with anyio.create_task_group() as group:
        group.start_soon(go_on)
        assert await run(wait, {}, ctx) == "true"
    assert threads != [threading.current_thread()]


@pytest.mark.anyio
async def test_a_cancelled_call_leaves_a_thread_to_itself_only_if_it_just_reads(ctx: ToolContext) -> None:
    started, gone_on = threading.Event(), threading.Event()
    ends = []

    def wait() -> None:
        started.set()
        gone_on.wait(60)
        ends.append("end")

    async def cancelled(tool: FunctionTool) -> None:
        started.clear()
        async with anyio.create_task_group() as group:
            group.start_soon(tool.run, {}, ctx)
            await anyio.to_thread.run_sync(started.wait)
            group.cancel_scope.cancel()
            if not tool.read_only:
                gone_on.set()
        ends.append("cancelled")

    await cancelled(function_tool(wait, read_only=True))
    assert ends == ["cancelled"]
    gone_on.set()
    while len(ends) < 2:
        await anyio.lowlevel.checkpoint()
    gone_on.clear()
    await cancelled(function_tool(wait))
    assert ends == ["cancelled", "end", "end", "cancelled"]


@pytest.mark.anyio
async def test_a_wrapped_function_keeps_its_parameters_and_is_awaited(ctx: ToolContext) -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @function_tool
    @logged
    async def double(number: int) -> int:
        """Twice."""
        return 2 * number

    assert (double.name, double.description) == ("double", "Twice.")
    assert await run(double, {"number": 2}, ctx) == "4"


@pytest.mark.anyio
async def test_a_bound_method_and_a_local_type_in_text_annotations_work(ctx: ToolContext) -> None:
    class Scale(msgspec.Struct):
        factor: int

    class Shop:
        price = 5

        async def cost(self, pieces: int, scale: Scale) -> int:
            return self.price * pieces * scale.factor

    tool = function_tool(Shop().cost)
    assert list(tool.input_schema["properties"]) == ["pieces", "scale"]
    assert await run(tool, {"pieces": 2, "scale": {"factor": 3}}, ctx) == "30"


def test_name_description_and_flags_are_the_functions_or_the_ones_given() -> None:
    @function_tool
    def plain(a: int) -> None:
        """Say it.

        And more.
        """

    @function_tool(name="Other", description="", read_only=True, clearable=True, deferred=True)
    def given(a: int) -> None:
        """Not this."""

    def bare() -> None: ...

    assert (plain.name, plain.description) == ("plain", "Say it.\n\nAnd more.")
    assert (plain.read_only, plain.clearable, tool_flags(plain).deferred) == (False, False, False)
    assert (given.name, given.description) == ("Other", "")
    assert (given.read_only, given.clearable, tool_flags(given).deferred) == (True, True, True)
    assert function_tool(bare, name="Bare").name == "Bare"
    assert function_tool(bare).description == ""
    assert function_tool(bare).input_schema == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    tools: list[Tool] = [plain, given]
    assert all(schema_fault(tool.input_schema) is None for tool in tools)
    assert plain.function(1) is None


def hidden(*, __x: int) -> None: ...


class Method:
    def of_a_class(self, x: int) -> None: ...


def no_annotation(x) -> None: ...  # type: ignore[no-untyped-def]
def many(*x: int) -> None: ...
def named(**x: int) -> None: ...
def by_place(x: int, /) -> None: ...
def odd(x: complex) -> None: ...
def nowhere(x: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821
def two_lists(x: list[int] | tuple[int, ...]) -> None: ...
def callback(x: Callable[[int], int]) -> None: ...
def yields(x: int) -> Any:
    yield x


USE = "Use what JSON can say: str, int, float, bool, list, dict, Literal, a struct."
WRITE = "Write @function_tool or @function_tool(name=...)."


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (no_annotation, "Function 'no_annotation', parameter 'x': it has no annotation. Write x: str."),
        (
            many,
            (
                "Function 'many', parameter 'x': it has no fixed names for a model to give. "
                "Name each parameter, or take one list or dict."
            ),
        ),
        (
            named,
            (
                "Function 'named', parameter 'x': it has no fixed names for a model to give. "
                "Name each parameter, or take one list or dict."
            ),
        ),
        (
            by_place,
            (
                "Function 'by_place', parameter 'x': it is positional-only, and a model gives names. "
                "Leave out the /."
            ),
        ),
        (odd, f"Function 'odd', parameter 'x': type <class 'complex'> is not supported. {USE}"),
        (
            nowhere,
            (
                "Function 'nowhere', parameter 'x': name 'Nowhere' is not defined. "
                "Define it where the function can see it when it is decorated."
            ),
        ),
        (
            callback,
            "Function 'callback', parameter 'x': type <class 'collections.abc.Callable'> is not supported. "
            + USE,
        ),
        (
            hidden,
            "Function 'hidden', parameter '__x': its name begins with two underscores. Choose another name.",
        ),
        (yields, "Function 'yields': it yields. Return the whole result."),
        (
            Method.of_a_class,
            (
                "Function 'of_a_class', parameter 'self': it has no annotation. "
                "Decorate a function, or write function_tool(instance.method)."
            ),
        ),
        (
            lambda: 1,
            (
                "Function '<lambda>': '<lambda>' is no name for a tool: "
                '1 to 64 letters, digits, _ and - are allowed. Write name="...".'
            ),
        ),
        (
            Method,
            f"Function 'Method': it is a type, not a function. {WRITE}",
        ),
        (
            "Add",
            f"Function 'Add': it is a str, not a function. {WRITE}",
        ),
    ],
)
def test_a_function_no_model_can_call_is_refused_with_the_way_out(function: Any, said: str) -> None:
    with pytest.raises(ToolSignatureError) as refused:
        function_tool(function)
    assert str(refused.value) == said
    assert isinstance(refused.value, TypeError)
    assert isinstance(refused.value, NoetaError)


def test_types_that_json_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(ToolSignatureError, match="parameter 'x': Type unions may not contain more than one"):
        function_tool(two_lists)


leaves = st.sampled_from([str, int, float, bool, None, Colour, Literal["a", "b"], Point, Box, Options])
annotations = st.recursive(
    leaves,
    lambda inner: (
        inner.map(lambda it: list[it])  # type: ignore[valid-type]
        | inner.map(lambda it: dict[str, it])  # type: ignore[valid-type]
        | inner.map(lambda it: Annotated[it, "about it"])
        | inner.map(lambda it: it | None if it is not None else None)
    ),
    max_leaves=3,
)
values = st.recursive(
    st.sampled_from([None, True, 0, 7, 1.5, "", "a", "red", {"x": 1}, {"lid": True}, {"depth": 1}]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y", "k"]), inner),
    max_leaves=4,
)


@given(annotations, values)
def test_the_schema_and_the_conversion_allow_the_same_values(annotation: Any, value: Any) -> None:
    def take(it: Any) -> None: ...

    take.__annotations__["it"] = annotation
    tool = function_tool(take)
    said = check_schema(tool.input_schema, {"it": value})
    try:
        tool._parameters.values({"it": value})
        converts = True
    except msgspec.ValidationError:
        converts = False
    # Only the schema is strict about what is not known inside a struct.
    assert converts == (said is None) or "there is no such property" in str(said)
    if said is None:
        assert converts
