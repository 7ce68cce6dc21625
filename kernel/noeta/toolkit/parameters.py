"""A function's parameters as the input of a tool: the JSON Schema, and the way from JSON to typed values."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from noeta.core.errors import NoetaError, NotStorable
from noeta.core.tool import ToolContext
from noeta.toolkit.inlined import inlined
from noeta.toolkit.sanitize import storable


class ToolSignatureError(NoetaError, TypeError):
    """A function cannot become a tool. `parameter` is at fault, the empty text when it is the function."""

    def __init__(self, function: str, parameter: str, why: str, way_out: str) -> None:
        self.function: str = function
        self.parameter: str = parameter
        self.why: str = why
        self.way_out: str = way_out
        place = f", parameter {parameter!r}" if parameter else ""
        super().__init__(f"Function {function!r}{place}: {why}. {way_out}.")


class Parameters:
    """What a function takes, read from its annotations once.

    `schema` is the JSON Schema of the input, `context` the names of the parameters that get the
    `ToolContext`. Raises `ToolSignatureError` for a function that no model can call.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._of = function.__name__
        self.context: tuple[str, ...] = ()
        fields: dict[str, tuple[Any, inspect.Parameter]] = {}
        scope = _scope(function)
        for parameter in inspect.signature(function).parameters.values():
            hint = self._hint(parameter, scope)
            if hint is ToolContext:
                self.context += (parameter.name,)
            else:
                fields[parameter.name] = (hint, parameter)
        self._type = msgspec.defstruct(
            "Input",
            [
                (name, hint) if given.default is given.empty else (name, Union[hint, UnsetType], UNSET)  # noqa: UP007
                for name, (hint, given) in fields.items()
            ],
            kw_only=True,
            forbid_unknown_fields=True,
        )
        self.schema: dict[str, Any] = _schema(fields)

    def values(self, input: object) -> dict[str, Any]:
        """The arguments in `input`, typed; a parameter left out is left to the function's own default.

        Raises `msgspec.ValidationError` for an input that the annotations do not allow.
        """
        made = msgspec.convert(input, self._type, str_keys=True)
        given = {name: getattr(made, name) for name in self._type.__struct_fields__}
        return {name: value for name, value in given.items() if value is not UNSET}

    def _hint(self, parameter: inspect.Parameter, scope: Mapping[str, Any]) -> Any:
        """The type of a parameter as msgspec reads it; `ToolContext` for one that gets the context."""
        name, said = parameter.name, parameter.annotation
        if parameter.kind is parameter.VAR_POSITIONAL or parameter.kind is parameter.VAR_KEYWORD:
            way_out = "Name each parameter, or take one list or dict"
            raise ToolSignatureError(self._of, name, "it has no fixed names for a model to give", way_out)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ToolSignatureError(
                self._of, name, "it is positional-only, and a model gives names", "Leave out the /"
            )
        if name == "ctx":
            return ToolContext
        if name.startswith("__"):
            raise ToolSignatureError(
                self._of, name, "its name begins with two underscores", "Choose another name"
            )
        if said is parameter.empty:
            method = "Decorate a function, or write function_tool(instance.method)"
            raise ToolSignatureError(
                self._of, name, "it has no annotation", method if name == "self" else f"Write {name}: str"
            )
        try:
            # One at a time, so that a name that is not there is told with its parameter.
            one = SimpleNamespace(__annotations__={name: said})
            hint = get_type_hints(one, scope.maps[-1], scope, include_extras=True)[name]  # type: ignore[attr-defined]
            if _is_context(hint):
                return ToolContext
            hint = _described(hint)
            msgspec.json.schema_components([hint])
            msgspec.json.Decoder(hint)
        except NameError as error:
            way_out = "Define it where the function can see it when it is decorated"
            raise ToolSignatureError(self._of, name, str(error), way_out) from None
        except Exception as error:
            why = str(error).strip().rpartition("\n")[2].rstrip(".")
            way_out = "Use what JSON can say: str, int, float, bool, list, dict, Literal, a struct"
            raise ToolSignatureError(self._of, name, why, way_out) from None
        return hint


def _scope(function: Callable[..., Any]) -> ChainMap[str, Any]:
    """The names that annotations of `function` may use. Those of its module are the last of its maps.

    Annotations may be text, and a type may be local to the function that `function` is defined in.
    """
    of_module = getattr(inspect.unwrap(function), "__globals__", {})
    found: list[Any] = []
    frame = inspect.currentframe() if "<locals>" in function.__qualname__ else None
    while frame:
        if frame.f_globals is of_module and frame.f_locals is not of_module:
            found.append(frame.f_locals)
        frame = frame.f_back
    # A module may import the context for type checkers alone.
    return ChainMap(*found, {"ToolContext": ToolContext} | of_module)


def _is_context(hint: Any) -> bool:
    if get_origin(hint) in (Annotated, Union, UnionType):
        return any(map(_is_context, get_args(hint)))
    return isinstance(hint, type) and issubclass(hint, ToolContext)


def _described(hint: Any) -> Any:
    """`hint` with each text of an `Annotated` as msgspec's description."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        marks = [Meta(description=mark) if isinstance(mark, str) else mark for mark in inner[1:]]
        return Annotated[(_described(inner[0]), *marks)]
    if origin is None or origin is Literal:
        return hint
    changed = tuple(map(_described, inner))
    if changed == inner:
        return hint
    return Union[changed] if origin is UnionType else origin[changed]  # noqa: UP007


def _schema(fields: Mapping[str, tuple[Any, inspect.Parameter]]) -> dict[str, Any]:
    shapes, parts = msgspec.json.schema_components([hint for hint, _ in fields.values()])
    properties = dict(zip(fields, shapes, strict=True))
    for name, (hint, parameter) in fields.items():
        if parameter.default is not parameter.empty:
            properties[name] |= _default(parameter.default, hint)
    required = [name for name, (_, given) in fields.items() if given.default is given.empty]
    shape = {"type": "object", "properties": properties} | ({"required": required} if required else {})
    return inlined(shape, parts)


def _default(default: object, hint: Any) -> dict[str, Any]:
    """``default`` as a schema says it; empty for one that a model could not give, such as a sentinel."""
    try:
        plain = storable(default)
        msgspec.convert(plain, hint, str_keys=True)
    except (NotStorable, msgspec.ValidationError):
        return {}
    return {"default": plain}
