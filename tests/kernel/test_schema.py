"""The stored format, as a file. Its diff is the compatibility review: run this module to write it again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct

from noeta.core.codec import Body, Envelope
from noeta.core.items import ITEMS
from noeta.core.messages import Message
from noeta.core.records import CORE_KINDS, ENTRY_KINDS

SCHEMA = Path(__file__).parent / "samples" / "schema.json"


def structs(types: Iterable[type[Struct]]) -> dict[str, Any]:
    """Return tag and fields of these structs and of all that their fields mention."""
    found: dict[str, Any] = {}
    queue = list(types)
    while queue:
        type_ = queue.pop()
        fields = {field.encode_name: described(field) for field in msgspec.structs.fields(type_)}
        found[type_.__name__] = {"tag": type_.__struct_config__.tag, "fields": fields}
        mentioned = [part for field in msgspec.structs.fields(type_) for part in parts(field.type)]
        queue += [part for part in mentioned if part.__name__ not in found]
    return found


def parts(type_: Any) -> Iterator[type[Struct]]:
    if isinstance(type_, type) and issubclass(type_, Struct):
        yield type_
    for argument in get_args(type_):
        yield from parts(argument)


def described(field: msgspec.structs.FieldInfo) -> str:
    name = (
        field.type.__name__ if isinstance(field.type, type) and not get_args(field.type) else str(field.type)
    )
    name = re.sub(r"\b(noeta\.core\.\w+|typing|msgspec)\.", "", name)
    if field.default_factory is not msgspec.NODEFAULT:
        return f"{name} = {field.default_factory()!r}"
    if field.default is msgspec.NODEFAULT:
        return name
    default = bytes(field.default) if isinstance(field.default, msgspec.Raw) else field.default
    return f"{name} = {default!r}"


def schema() -> dict[str, Any]:
    types = [Envelope, Body, Message, *CORE_KINDS.values(), *(type_ for type_ in ITEMS.values() if type_)]
    kinds = {
        kind: {"struct": type_.__name__, "v": type_.v, "entry": kind in ENTRY_KINDS}
        for kind, type_ in CORE_KINDS.items()
    }
    items = {kind: type_ and type_.__name__ for kind, type_ in ITEMS.items()}
    return {"kinds": kinds, "items": items, "structs": structs(types)}


def written(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"


def test_the_stored_format_is_the_reviewed_one() -> None:
    assert written(schema()) == SCHEMA.read_text(), (
        "the stored format changed: is every old log still readable?"
    )


def test_every_stored_struct_omits_defaults_and_accepts_unknown_fields() -> None:
    for type_ in [Envelope, Body, Message, *CORE_KINDS.values(), *(t for t in ITEMS.values() if t)]:
        assert type_.__struct_config__.omit_defaults, type_
        assert not type_.__struct_config__.forbid_unknown_fields, type_
        assert type_.__struct_config__.frozen, type_


if __name__ == "__main__":
    SCHEMA.write_text(written(schema()))
