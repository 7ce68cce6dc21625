"""Tools from functions: `function_tool`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, overload

import anyio.to_thread
import msgspec

from noeta.core.tool import ToolContext, ToolFlags, ToolOutput, text_output
from noeta.toolkit.parameters import Parameters
from noeta.toolkit.parameters import ToolSignatureError as ToolSignatureError
from noeta.toolkit.results import output_of
from noeta.toolkit.schema import check_schema


class FunctionTool:
    """A `Tool` made from a typed function, which stays callable as `function`."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool = False,
        clearable: bool = False,
        deferred: bool = False,
    ) -> None:
        _check(function, name)
        self._parameters = Parameters(function)
        self.function: Callable[..., Any] = function
        self.name: str = function.__name__ if name is None else name
        self.description: str = (inspect.getdoc(function) or "") if description is None else description
        self.input_schema: dict[str, Any] = self._parameters.schema
        self.read_only: bool = read_only
        self.clearable: bool = clearable
        self.flags: ToolFlags = ToolFlags(deferred=deferred)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        """Call the function. Input that its annotations do not allow is an error result that says why."""
        try:
            values = self._values(input)
        except msgspec.ValidationError as error:
            return text_output(f"The input does not fit. {error}.", is_error=True)
        call = partial(self.function, **values, **dict.fromkeys(self._parameters.context, ctx))
        if inspect.iscoroutinefunction(inspect.unwrap(self.function)):
            given = call()
            return output_of(await given if inspect.isawaitable(given) else given)
        # Nothing can stop a thread. One that only reads may be left to itself; what changes something is
        # waited for, so that it does not go on behind the back of whoever cancelled it.
        return output_of(await anyio.to_thread.run_sync(call, abandon_on_cancel=self.read_only))

    def _values(self, input: object) -> dict[str, Any]:
        # The schema first: its sentences are better, and it is strict inside structs too.
        if why := check_schema(self.input_schema, input):
            raise msgspec.ValidationError(why)
        return self._parameters.values(input)

    def __repr__(self) -> str:
        return f"<FunctionTool {self.name}>"


@overload
def function_tool(
    function: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    clearable: bool = False,
    deferred: bool = False,
) -> FunctionTool: ...
@overload
def function_tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    clearable: bool = False,
    deferred: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def function_tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """A tool from a typed function: `function_tool(fn)`, `@function_tool`, or `@function_tool(...)`.

    The name is the function's, or `name`; the description its docstring, or `description`. `read_only`,
    `clearable` and `deferred` are those of `Tool` and `ToolFlags`.

    The schema comes from the annotations: str, int, float, bool, list, dict, Literal, ``X | None``, enums,
    TypedDicts, dataclasses and msgspec structs. ``Annotated[T, "text"]`` describes a parameter, a default
    makes it optional. A parameter that is typed `ToolContext`, or named ``ctx``, gets the context and is not
    in the schema.

    The function gets values of the types it names; other input is an error result that tells the model what
    is wrong. An async function is awaited. A plain one runs in a worker thread, so that it never blocks other
    tasks; it must not touch what belongs to the event loop. When the call is cancelled, a plain function that
    is `read_only` is left to itself, any other is waited for.

    It returns a `ToolOutput`, which stands as it is, text, None (no text), or anything else that
    JSON can say, which becomes JSON. What it raises becomes an error result.

    Raises `ToolSignatureError` for a function that no model can call.
    """
    if function is None:
        return partial(FunctionTool, **options)
    return FunctionTool(function, **options)


def _check(function: Any, name: str | None) -> None:
    """Raise `ToolSignatureError` for what is no function, or one that has no name a model can say."""
    if not callable(function) or isinstance(function, type) or not hasattr(function, "__name__"):
        why = f"it is a {type(function).__name__}, not a function"
        way_out = "Write @function_tool or @function_tool(name=...)"
        raise ToolSignatureError(getattr(function, "__name__", str(function)), "", why, way_out)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolSignatureError(function.__name__, "", "it yields", "Return the whole result")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", said := function.__name__ if name is None else name):
        why = f"{said!r} is no name for a tool: 1 to 64 letters, digits, _ and - are allowed"
        raise ToolSignatureError(function.__name__, "", why, 'Write name="..."')
