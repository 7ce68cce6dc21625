"""The tables that settings consist of, and what each key takes. Every place is checked by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import Struct

from noeta.core.ports import Effort
from noeta.core.text import meant
from noeta.host.layers import Key, Layer, Place, PlaceError, Value, dotted


class Top(Struct, frozen=True, kw_only=True):
    """The keys that stand before all tables.

    `agent` is the agent to use when none is named, `model` the model of agents that name none, `store` the
    URL of the store, `env` the place to act.
    """

    agent: str = "coder"
    model: str = ""
    store: str = ""
    env: str = ""


class AgentTable(Struct, frozen=True, kw_only=True):
    """``[agents.NAME]``: an agent, or what differs from the one of this name that ships. As `Agent`."""

    model: str = ""
    prompt: str = ""
    plugins: list[str] = []
    tools: list[str] | None = None
    denied: list[str] = []
    fallbacks: list[str] = []
    prompts: dict[str, str] = {}
    identity: str = ""
    description: str = ""
    effort: Effort | None = None
    max_tokens: int | None = None


class PluginTable(Struct, frozen=True, kw_only=True):
    """``[plugins.NAME]``: whether a plugin may be used, and besides that its own settings."""

    enabled: bool = True


class ModelTable(Struct, frozen=True, kw_only=True):
    """``[models.NAME]``: another name for a model, and what to go on with when that is not to be had."""

    model: str = ""
    fallbacks: list[str] = []


class Blocked(Struct, frozen=True, kw_only=True):
    """``[blocked]``, in managed settings only: plugins that are never imported.

    `plugins` are names of plugins or of the distributions that offer them, `sha256` hashes of their contents.
    """

    plugins: list[str] = []
    sha256: list[str] = []


NAMED: dict[str, type[Struct]] = {"agents": AgentTable, "models": ModelTable, "plugins": PluginTable}
"""The tables of named tables, and what each of those takes."""
OPEN = ("plugins", "providers", "stores", "environments")
"""The tables of named tables whose keys are checked by whom they are for, when that is used."""
TABLES = ("agents", "plugins", "providers", "stores", "environments", "models", "prefer", "blocked")


def checked(given: Mapping[str, Any], place: Place) -> Layer:
    """What a place holds, by key. Raises `PlaceError` for a key that is unknown or of the wrong type."""
    return {value.key: value for value in _values(given, place)}


def _values(given: Mapping[str, Any], place: Place) -> Iterator[Value]:
    if not isinstance(given, Mapping):
        raise PlaceError(str(place), "", f"expected tables, got {_kind(given)}")
    for table, held in given.items():
        if table not in TABLES:
            yield _value((table,), held, Top, place, extra=TABLES)
            continue
        keys = _mapping((table,), held, place)
        if "" in keys:
            raise PlaceError(str(place), table, "a name is empty")
        if table == "blocked" and place.level != "managed":
            why = "only managed settings block plugins; write enabled = false into [plugins.NAME]"
            raise PlaceError(str(place), table, why)
        for name, entry in keys.items():
            if table == "blocked":
                yield _value((table, name), entry, Blocked, place)
            elif table == "prefer":
                yield Value((table, name), _converted((table, name), entry, str, place), place)
            else:
                yield from _named((table, name), entry, place)


def _named(at: Key, held: Any, place: Place) -> Iterator[Value]:
    """The values of a table that has a name of its own."""
    table, name = at
    if table == "models" and ":" in name:
        why = "the name of a model here has no colon, since PROVIDER:MODEL means one of a provider"
        raise PlaceError(str(place), dotted(at), why)
    # So that one without keys is there too.
    yield Value((*at, ""), True, place)
    for key, entry in _mapping(at, held, place).items():
        if not key:
            raise PlaceError(str(place), dotted(at), "a key is empty")
        struct = NAMED.get(table)
        if table in OPEN and key not in getattr(struct, "__struct_fields__", ()):
            yield Value((*at, key), entry, place)
        elif struct is not None:
            yield _value((*at, key), entry, struct, place)


def _value(at: Key, entry: Any, struct: type[Struct], place: Place, extra: tuple[str, ...] = ()) -> Value:
    known = (*struct.__struct_fields__, *extra)
    if at[-1] not in known:
        what = "table or key" if extra else "key"
        hint = meant(at[-1], known)
        raise PlaceError(
            str(place), dotted(at), f"there is no such {what}{hint or f'; there are {_all(known)}'}"
        )
    return Value(at, _converted(at, entry, _hints(struct)[at[-1]], place), place)


def _converted(at: Key, entry: Any, wanted: Any, place: Place) -> Any:
    try:
        return msgspec.convert(entry, wanted)
    except msgspec.ValidationError as error:
        raise PlaceError(str(place), *in_words(at, error, wanted)) from None


def in_words(at: Key, error: msgspec.ValidationError, wanted: Any = None) -> tuple[str, str]:
    """The key that a validation error is about, and what is wrong there, in the words of a settings file."""
    why, _, path = str(error).partition(" - at `$")
    if "enum value" in why and (words := _words(wanted)):
        given = why.partition("'")[2].rpartition("'")[0]
        why = f"it is {given!r}; it can be {_all(words)}{meant(given, words)}"
    for word, kind in KINDS.items():
        why = why.replace(f"`{word}`", kind).replace(f"`{word} | ", f"`{kind} | ")
    why = why.replace("`", "").replace("Expected", "expected").replace(" | null", "")
    return dotted(at) + path.rstrip("`"), why


KINDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
"""The words of msgspec, in those of TOML."""


def _mapping(at: Key, held: Any, place: Place) -> Mapping[str, Any]:
    if not isinstance(held, Mapping):
        raise PlaceError(str(place), dotted(at), f"expected a table, got {_kind(held)}; write [{dotted(at)}]")
    return held


def _kind(value: object) -> str:
    names = {dict: "object", list: "array", tuple: "array", type(None): "null"}
    return KINDS.get(names.get(type(value), type(value).__name__), f"a {type(value).__name__}")


@cache
def _hints(struct: type[Struct]) -> dict[str, Any]:
    return get_type_hints(struct)


def _words(wanted: Any) -> list[str]:
    """The words that a type takes, if it is a choice of words."""
    found = [word for each in get_args(wanted) for word in (get_args(each) or (each,))]
    return [word for word in found if isinstance(word, str)]


def _all(words: Any) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else str(last)
