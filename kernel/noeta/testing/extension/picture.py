"""Pictures of values, to see whether something changed them and whether two are alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from msgspec import Struct

from noeta.core.extension import Extension

CODE = (type, Enum, ModuleType, FunctionType, BuiltinFunctionType, MethodType, property, classmethod)
"""What is only itself: what hangs on it is no content of the value that names it."""


def picture(value: object) -> Any:
    """All of `value` in plain tuples: equal for values of equal types and content, all the way down.

    Later changes of `value` do not show in it.
    """
    return _picture(value, {})


def mutables(value: object) -> Iterator[object]:
    """The objects in `value` that can be changed in place."""
    yield from _mutables(value, set())


def attributes(extension: Extension) -> dict[str, Any]:
    """Pictures of the attributes of the instance and of its classes, by name."""
    classes = [cls for cls in type(extension).__mro__ if cls not in Extension.__mro__]
    found = {
        name: picture(value)
        for cls in reversed(classes)
        for name, value in vars(cls).items()
        # Python itself keeps notes under such names.
        if not name.startswith("__")
    }
    own = vars(extension).items()
    # What is computed once, when it is first asked for, does not change.
    return found | {
        name: picture(value)
        for name, value in own
        if not isinstance(getattr(type(extension), name, None), cached_property)
    }


def _picture(value: Any, above: dict[int, int]) -> Any:
    if value is None or isinstance(value, bool | int | str | bytes):
        return type(value), value
    if isinstance(value, float):
        # NaN is like NaN here, and 0.0 is not like -0.0.
        return float, repr(value)
    if id(value) in above:
        return "the value around it", above[id(value)]
    above = {**above, id(value): len(above)}
    if isinstance(value, set | frozenset):
        return type(value), sorted(repr(_picture(part, above)) for part in value)
    parts = _parts(value)
    if parts is not None:
        return type(value), tuple((_picture(key, above), _picture(part, above)) for key, part in parts)
    return type(value), repr(value) if _is_value(value) else id(value)


def _parts(value: Any) -> list[tuple[Any, Any]] | None:
    """What `value` holds, by key; None when there is nothing to look into."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if isinstance(value, Struct):
        return [(name, getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, CODE) or (_is_value(value) and not dataclasses.is_dataclass(value)):
        return None
    slots = [name for cls in type(value).__mro__ for name in _slots(cls) if hasattr(value, name)]
    if not slots and not hasattr(value, "__dict__"):
        return None
    return [*getattr(value, "__dict__", {}).items(), *((name, getattr(value, name)) for name in slots)]


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    named = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in named if not name.startswith("__"))


def _is_value(value: object) -> bool:
    """Whether it says itself that it is no more than its content: a date, a path, a number."""
    return type(value).__eq__ is not object.__eq__ and type(value).__hash__ is not None


def _mutables(value: object, seen: set[int]) -> Iterator[object]:
    parts = _parts(value)
    if id(value) in seen or (parts is None and not isinstance(value, set | bytearray)):
        return
    seen.add(id(value))
    if not isinstance(value, tuple) and not _is_value(value) and not _is_frozen(value):
        yield value
    for _, part in parts or ():
        yield from _mutables(part, seen)


def _is_frozen(value: object) -> bool:
    if isinstance(value, Struct):
        return value.__struct_config__.frozen
    params = getattr(type(value), "__dataclass_params__", None)
    return bool(params and params.frozen)
