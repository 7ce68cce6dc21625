"""Records as bytes: the envelope that can always be read, and the way in and out of it.

A record is one JSON line of two levels. The envelope names who wrote it and what it is. Its `data` and its
`message` decode second, and only when somebody needs them. Stores keep the bytes made here and give the same
bytes back, so fields and kinds of later versions are never lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from noeta.core.errors import NotStorable
from noeta.core.messages import Image, Message, ToolResult, decode_message
from noeta.core.records import CORE, CORE_KINDS, NULL, Compacted, Fact, Recorded
from noeta.core.text import checked_key

MAX_INLINE_BYTES = 128 * 1024
"""Data or a message larger than this is stored once, by its content, and the line keeps a reference."""
ABSENT = Raw(b"")
"""A part of a record that is not there. False as a truth value, as no other `Raw` is."""
MAX_NESTING = 72
"""How deep data or a message may be nested."""
UNREADABLE = "unreadable"
"""The kind that stands in for a line whose envelope cannot be decoded."""


class Line(NamedTuple):
    """One row of a log: the original bytes of a record, and what a store may select it by.

    `name` is ``extension.kind``, and `message` says that the record carries a message, in the line or in its
    blob.
    """

    seq: int
    data: bytes
    name: str = ""
    message: bool = False


class Envelope(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One record as it is stored.

    `seq` counts a task's records from 1, `at` is epoch seconds. `by` and `hook` name the plugin and the hook
    that made an entry. `v` is the schema version. `blob` is the sha-256 of a body too large
    for the line. `erased` marks a line whose content was taken out. Optional fields are absent, never empty.
    """

    seq: int
    at: float
    extension: str
    kind: str
    data: Raw = NULL
    message: Raw = ABSENT
    by: str = ""
    hook: str = ""
    v: int = 1
    blob: str = ""
    erased: bool = False


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Data and message: what the blob of a large record holds of them, and what an inbox item carries."""

    data: Raw = ABSENT
    message: Raw = ABSENT


class Blob(NamedTuple):
    """Bytes named by their sha-256 in hex."""

    sha256: str
    data: bytes


class Encoded(NamedTuple):
    """A record ready to append: its line, the blobs the line refers to, the whole envelope for the fold."""

    line: Line
    blobs: tuple[Blob, ...]
    envelope: Envelope


class CompactedParts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`Compacted` with its messages still encoded, as the fold needs them."""

    through: int
    summary: list[Raw] = []
    keep: list[int] = []
    lead: list[Raw] = []
    after: list[Raw] = []
    trigger: str = "auto"


_encode = msgspec.json.Encoder().encode
_untyped = msgspec.json.Decoder().decode
_envelope = msgspec.json.Decoder(Envelope).decode
_body = msgspec.json.Decoder(Body).decode
DECODERS: Mapping[str, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(CompactedParts if type_ is Compacted else type_)
    for kind, type_ in CORE_KINDS.items()
}
"""A decoder for the data of each core kind. Compactions come as `CompactedParts`."""
MADE = ("lead", "summary", "after")
"""The messages that a compaction makes, in the order of the conversation but for what it keeps."""


def blob_of(data: bytes) -> Blob:
    """`data` with its name."""
    return Blob(hashlib.sha256(data).hexdigest(), data)


def encode(
    seq: int,
    at: float,
    extension: str,
    kind: str,
    data: object,
    *,
    message: Message | None = None,
    by: str = "",
    hook: str = "",
) -> Encoded:
    """Encode one record, and prove that it reads back equal.

    `data` is a `Fact` for the extension ``core``; for a plugin it is a struct or builtins. Image bytes in
    `message`, and a body over 128 KiB, become blobs.

    Raises `NotStorable` for what does not read back: lone surrogates, NaN, values of a wrong type, endless
    nesting, a name with a dot in it.
    """
    where = f"{extension}.{kind}"
    _check_name(extension)
    _check_name(kind)
    if extension == CORE and not (isinstance(data, Fact) and data.kind == kind):
        raise NotStorable(where, f"a core record of this kind is no {type(data).__name__}")
    blobs: list[Blob] = []
    try:
        if isinstance(data, Compacted):
            data = _without_bytes(data, blobs)
        if message is not None and message.images:
            message = _without_bytes(message, blobs)
        raw = proved(data, type(data) if isinstance(data, Struct) else Any, where)
        said = ABSENT if message is None else proved(message, Message, where)
        version = data.v if isinstance(data, Fact) else 1
        head = Envelope(seq=seq, at=at, extension=extension, kind=kind, by=by, hook=hook, v=version)
        made = _made(replace(head, data=raw, message=said), blobs)
        made.line.data.decode()
    except NotStorable:
        raise
    except Exception as error:
        raise NotStorable(where, f"{type(error).__name__}: {error}") from None
    if b"\n" in made.line.data or decode(made.line).kind != kind:
        raise NotStorable(where, "it holds a line break outside a text, or a time that is no number")
    return made


def placed(made: Encoded, seq: int, at: float) -> Encoded:
    """`made` at its place in the log."""
    line = line_of(replace(decode(made.line), seq=seq, at=at), made.line.message)
    return Encoded(line, made.blobs, replace(made.envelope, seq=seq, at=at))


@lru_cache(maxsize=1_000)
def _check_name(name: str) -> None:
    checked_key(name, f"the name {name!r}")
    if "." in name:
        raise NotStorable(f"the name {name!r}", "names of extensions and kinds hold no dots")


def _without_bytes(part: Any, blobs: list[Blob]) -> Any:
    """`part` with the bytes of the images in its messages moved to `blobs`."""
    match part:
        case Image() if part.data:
            blobs.append(blob_of(part.data))
            return Image(media_type=part.media_type, blob=blobs[-1].sha256)
        case Message() | ToolResult():
            return replace(part, content=[_without_bytes(block, blobs) for block in part.content])
        case Compacted():
            moved = {name: [_without_bytes(m, blobs) for m in getattr(part, name)] for name in MADE}
            return replace(part, **moved)
    return part


def proved(value: object, type_: Any, where: str) -> Raw:
    """The JSON of `value`, which reads back equal as a `type_`.

    Raises `NotStorable`, and what msgspec raises for what is no JSON.
    """
    raw = _encode(value)
    # How deep a decoder goes depends on the version of Python, so what one writes another might not read.
    if raw.count(b"[") + raw.count(b"{") > MAX_NESTING and _nesting(_untyped(raw)) > MAX_NESTING:
        raise NotStorable(where, f"it is nested deeper than {MAX_NESTING}")
    back = msgspec.json.decode(raw, type=type_)
    if back != value and not _alike(msgspec.to_builtins(value), msgspec.to_builtins(back, str_keys=True)):
        why = "it reads back as something else: mend NaN, an infinity or a wrong type (`storable`)"
        raise NotStorable(where, why)
    return Raw(raw)


def _nesting(value: Any) -> int:
    """How many lists and dicts stand inside each other."""
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(_nesting, value if isinstance(value, list) else value.values()), default=0)


def _alike(value: Any, back: Any) -> bool:
    """Whether `back` is what JSON says of `value`: a tuple comes back as a list, an int key as text."""
    if isinstance(value, dict) and isinstance(back, dict):
        return len(value) == len(back) and all(_alike(value[key], back.get(str(key))) for key in value)
    if isinstance(value, list | tuple) and isinstance(back, list):
        return len(value) == len(back) and all(map(_alike, value, back))
    return bool(value == back)


def _made(envelope: Envelope, blobs: Sequence[Blob]) -> Encoded:
    """The record with its line, and with a blob for what is too large for a line."""
    line, large, short = line_of(envelope, bool(envelope.message)), Body(), envelope
    if len(line.data) > MAX_INLINE_BYTES and len(bytes(envelope.data)) > MAX_INLINE_BYTES:
        large, short = replace(large, data=envelope.data), replace(short, data=NULL)
    if len(line.data) > MAX_INLINE_BYTES and len(bytes(envelope.message)) > MAX_INLINE_BYTES:
        large, short = replace(large, message=envelope.message), replace(short, message=ABSENT)
    if short is not envelope:
        blobs = (*blobs, blob_of(_encode(large)))
        envelope, short = (replace(whole, blob=blobs[-1].sha256) for whole in (envelope, short))
        line = line_of(short, line.message)
    return Encoded(line, tuple(blobs), envelope)


def line_of(envelope: Envelope, message: bool) -> Line:
    """The row of a log that holds this envelope; `message` says whether the record carries one."""
    return Line(envelope.seq, _encode(envelope), f"{envelope.extension}.{envelope.kind}", message)


def decode(line: Line) -> Envelope:
    """The envelope of `line`. Total: a line that is no envelope, or of another seq, comes as core kind
    ``unreadable``.

    Its data is a JSON text that says why.
    """
    seq = line.seq
    try:
        envelope = _envelope(line.data)
    except (ValueError, RecursionError) as error:
        return _unreadable(seq, 0.0, str(error))
    if envelope.seq != seq:
        return _unreadable(seq, 0.0, f"the line says seq {envelope.seq}")
    if envelope.erased and envelope.message:
        return _unreadable(seq, 0.0, "a tombstone holds a message")
    return envelope


def with_body(envelope: Envelope, body: bytes) -> Envelope:
    """`envelope` with the data and message of its blob put back.

    Total: bytes that are no body make it unreadable.
    """
    try:
        whole = _body(body)
    except (ValueError, RecursionError) as error:
        why = f"its blob {envelope.blob} is damaged: {error}"
        return _unreadable(envelope.seq, envelope.at, why)
    return replace(envelope, data=whole.data or envelope.data, message=whole.message or envelope.message)


def _unreadable(seq: int, at: float, why: str) -> Envelope:
    return Envelope(seq=seq, at=at, extension=CORE, kind=UNREADABLE, data=Raw(_encode(why)))


def recorded(envelope: Envelope, types: Mapping[str, Any] | None = None) -> Recorded:
    """`envelope` decoded. `types` maps a plugin's kinds to what to decode them as; other data comes as
    builtins.

    Total: data that does not decode is None.
    """
    data: Any = None
    with suppress(Exception):
        if envelope.extension != CORE or envelope.kind not in DECODERS:
            data = msgspec.json.decode(envelope.data, type=(types or {}).get(envelope.kind, Any))
        elif not envelope.erased or envelope.data != NULL:
            data = DECODERS[envelope.kind].decode(envelope.data)
    data = compacted(data) if isinstance(data, CompactedParts) else data
    message = decode_message(bytes(envelope.message)) if envelope.message else None
    fields = {name: getattr(envelope, name) for name in Recorded.__struct_fields__}
    return Recorded(**fields | {"data": data, "message": message})


def compacted(parts: CompactedParts) -> Compacted:
    """`parts` with its messages decoded."""
    made = {name: [decode_message(bytes(raw)) for raw in getattr(parts, name)] for name in MADE}
    return Compacted(through=parts.through, keep=parts.keep, trigger=parts.trigger, **made)
