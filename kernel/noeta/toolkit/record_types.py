"""The kinds of a plugin's records, from the structs that say what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct

from noeta.core.errors import NoetaError, NotStorable
from noeta.core.text import checked_key


class RecordTypeError(NoetaError, TypeError):
    """A struct cannot be a kind of record. `struct` is its name."""

    def __init__(self, struct: str, why: str, way_out: str) -> None:
        self.struct: str = struct
        self.why: str = why
        self.way_out: str = way_out
        super().__init__(f"Record type {struct!r}: {why}. {way_out}.")


def kind_of(record: Struct | type[Struct]) -> str:
    """The kind of a record, by its struct: the class variable `kind`, else the tag, else the name of the
    class in snake_case.

    So `view.record(self.name, kind_of(data), data)` needs no second place for the name.
    """
    type_ = record if isinstance(record, type) else type(record)
    said = getattr(type_, "kind", None)
    if isinstance(said, str) and said:
        return said
    tag, name = type_.__struct_config__.tag, type_.__name__
    if isinstance(tag, str) and tag != name:
        return tag
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def record_types(*structs: type[Struct]) -> dict[str, type[Struct]]:
    """What `Extension.record_types` holds: each struct under its kind (`kind_of`).

    Logs outlive the code that wrote them, so a struct that a later or an earlier version could not read is
    refused: one that forbids unknown fields, also inside; one that is told by position; a required field
    behind one with a default, which old records would lack; a field of a type that JSON does not know.
    So are two structs of one kind, and a kind with a dot.

    Raises `RecordTypeError`.
    """
    found: dict[str, type[Struct]] = {}
    for struct in map(_struct, structs):
        kind, name = kind_of(struct), struct.__name__
        if "." in kind:
            raise RecordTypeError(name, f"its kind {kind!r} has a dot", "Choose another kind")
        try:
            checked_key(kind, "its kind")
        except NotStorable as error:
            raise RecordTypeError(name, str(error).rstrip("."), "Choose another kind") from None
        if kind in found:
            why = f"its kind {kind!r} is that of {found[kind].__name__!r} too"
            raise RecordTypeError(name, why, "Rename one of them")
        _check(struct)
        found[kind] = struct
    return found


def _struct(given: Any) -> type[Struct]:
    if isinstance(given, type) and issubclass(given, Struct):
        return given
    shown = getattr(given, "__name__", repr(given))
    raise RecordTypeError(shown, "it is no msgspec Struct", "Write class ...(Struct, frozen=True)")


def _check(struct: type[Struct]) -> None:
    """Raise `RecordTypeError` for what other versions of the plugin could not read."""
    name = struct.__name__
    try:
        parts = list(_parts(msgspec.inspect.type_info(struct), set()))
        msgspec.json.Decoder(struct)
    except Exception as error:
        raise RecordTypeError(name, str(error).rstrip("."), "Use types that JSON can say") from None
    for part in parts:
        if isinstance(part, msgspec.inspect.CustomType):
            why = f"nothing decodes a {part.cls.__name__} from JSON"
            raise RecordTypeError(name, why, "Use builtins, structs, dataclasses or enums")
        if not isinstance(part, msgspec.inspect.StructType):
            continue
        config, inner = part.cls.__struct_config__, part.cls.__name__
        where = "it" if part.cls is struct else f"{inner!r} inside it"
        if config.forbid_unknown_fields:
            why = f"{where} forbids unknown fields, so it cannot read what a later version writes"
            raise RecordTypeError(name, why, "Leave out forbid_unknown_fields")
        if config.array_like:
            why = f"{where} is told by position, so no field can be added or dropped"
            raise RecordTypeError(name, why, "Leave out array_like")
        optional = ""
        for field in msgspec.structs.fields(part.cls):
            if field.default is not NODEFAULT or field.default_factory is not NODEFAULT:
                optional = field.name
            elif optional:
                why = f"in {where} the required {field.name!r} stands behind {optional!r}, as if added later"
                way_out = "Old records lack a field that is added: give it a default, or put it to the front"
                raise RecordTypeError(name, why, way_out)


def _parts(node: Any, seen: set[Any]) -> Iterator[Any]:
    """Every type inside a type, itself first."""
    if isinstance(node, msgspec.inspect.Type):
        if (cls := getattr(node, "cls", None)) in seen:
            return
        if cls is not None:
            seen.add(cls)
        yield node
    if isinstance(node, msgspec.inspect.Type | msgspec.inspect.Field):
        node = [getattr(node, name) for name in node.__struct_fields__]
    for inner in node if isinstance(node, list | tuple) else ():
        yield from _parts(inner, seen)
