"""Records as bytes: the envelope that can always be read, and the way in and out of it.

A record is one JSON line of two levels. The envelope names who wrote it and what it is. Its `data` and its
`message` decode second, and only when somebody needs them. Stores keep the bytes made here and give the same
bytes back, so fields and kinds of later versions are never lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from noeta.core.errors import NotStorable
from noeta.core.messages import Image, Message, ToolResult, decode_message, encode_message
from noeta.core.records import CORE, CORE_KINDS, NULL, Compacted, Fact, Recorded
from noeta.core.text import MAX_DEPTH, checked_key, storable

MAX_INLINE_BYTES = 128 * 1024
"""Data or a message larger than this is stored once, by its content, and the line keeps a reference."""
ABSENT = Raw(b"")
"""A part of a record that is not there. False as a truth value, as no other `Raw` is."""
MAX_NESTING = MAX_DEPTH + 8
"""How deep data or a message may be nested: what `storable` allows, and a message's blocks around it."""
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
    blobs: list[Blob] = []
    try:
        if isinstance(data, Compacted):
            data = _without_bytes_inside(data, blobs)
        raw_message = ABSENT
        if message is not None:
            raw_message = Raw(_verified_message(_without_bytes(message, blobs), where))
        envelope = Envelope(
            seq=seq,
            at=at,
            extension=extension,
            kind=kind,
            data=Raw(_verified_data(extension, kind, data, where)),
            message=raw_message,
            by=by,
            hook=hook,
            v=data.v if isinstance(data, Fact) else 1,
        )
        short, body = _shortened(envelope)
        line = line_of(short, message is not None)
        line.data.decode()
    except NotStorable:
        raise
    except Exception as error:
        raise NotStorable(where, f"{type(error).__name__}: {error}") from None
    if b"\n" in line.data or decode(line).kind != kind:
        raise NotStorable(where, "it holds a line break outside a text, or a time that is no number")
    if body:
        envelope = msgspec.structs.replace(envelope, blob=short.blob)
    return Encoded(line, (*blobs, *body), envelope)


def placed(made: Encoded, seq: int, at: float) -> Encoded:
    """`made` at its place in the log."""
    short, _ = _shortened(envelope := msgspec.structs.replace(made.envelope, seq=seq, at=at, blob=""))
    line = line_of(short, bool(envelope.message))
    return Encoded(line, made.blobs, msgspec.structs.replace(envelope, blob=short.blob))


@lru_cache(maxsize=1_000)
def _check_name(name: str) -> None:
    checked_key(name, f"the name {name!r}")
    if "." in name:
        raise NotStorable(f"the name {name!r}", "names of extensions and kinds hold no dots")


def _shortened(envelope: Envelope) -> tuple[Envelope, tuple[Blob, ...]]:
    """`envelope` as its line says it, and the blob that holds what is too large for the line."""
    large = Body(
        data=envelope.data if len(bytes(envelope.data)) > MAX_INLINE_BYTES else ABSENT,
        message=envelope.message if len(bytes(envelope.message)) > MAX_INLINE_BYTES else ABSENT,
    )
    if not large.data and not large.message:
        return envelope, ()
    body = blob_of(_encode(large))
    data, message = (NULL if large.data else envelope.data), (ABSENT if large.message else envelope.message)
    return msgspec.structs.replace(envelope, data=data, message=message, blob=body.sha256), (body,)


def line_of(envelope: Envelope, message: bool) -> Line:
    """The row of a log that holds this envelope; `message` says whether the record carries one."""
    return Line(envelope.seq, _encode(envelope), f"{envelope.extension}.{envelope.kind}", message)


def _without_bytes_inside(data: Compacted, blobs: list[Blob]) -> Compacted:
    moved = {
        name: [_without_bytes(message, blobs) for message in getattr(data, name)]
        for name in ("lead", "summary", "after")
    }
    return msgspec.structs.replace(data, **moved)


def _without_bytes(message: Message, blobs: list[Blob]) -> Message:
    """`message` with the bytes of its images moved to `blobs`."""
    if not any(image.data for image in message.images):
        return message

    def lifted(block: Any) -> Any:
        if isinstance(block, ToolResult):
            return msgspec.structs.replace(block, content=[lifted(inner) for inner in block.content])
        if not (isinstance(block, Image) and block.data):
            return block
        blobs.append(blob_of(block.data))
        return Image(media_type=block.media_type, blob=blobs[-1].sha256)

    return msgspec.structs.replace(message, content=[lifted(block) for block in message.content])


def _verified_message(message: Message, where: str) -> bytes:
    raw = encode_message(message)
    _check_nesting(raw, where)
    if decode_message(raw) != message:
        raise NotStorable(where, "its message does not read back equal: a field has a wrong type")
    return raw


def _verified_data(extension: str, kind: str, data: object, where: str) -> bytes:
    if extension == CORE and not (isinstance(data, Fact) and data.kind == kind):
        raise NotStorable(where, f"a core record of this kind is no {type(data).__name__}")
    raw = _encode(data)
    _check_nesting(raw, where)
    try:
        back = msgspec.json.decode(raw, type=type(data)) if isinstance(data, Struct) else _untyped(raw)
    except ValueError as error:
        raise NotStorable(where, f"it does not read back: {error}") from None
    # Equal is not enough to refuse: a tuple reads back as a list, an int key as text. `storable` knows those.
    if back != data and storable(back) != storable(data):
        raise NotStorable(
            where, "it does not read back equal: it holds NaN, an infinity or a value of a wrong type"
        )
    return raw


def _check_nesting(raw: bytes, where: str) -> None:
    # How deep a decoder goes depends on the version of Python, so what one writes another might not read.
    if raw.count(b"[") + raw.count(b"{") > MAX_NESTING and _nesting(_untyped(raw)) > MAX_NESTING:
        raise NotStorable(where, f"it is nested deeper than {MAX_NESTING}")


def _nesting(value: Any) -> int:
    """How many lists and dicts stand inside each other."""
    depth, level = 0, [value]
    while level := [outer for outer in level if isinstance(outer, list | dict)]:
        depth += 1
        level = [inner for outer in level for inner in (outer if isinstance(outer, list) else outer.values())]
    return depth


def decode(line: Line) -> Envelope:
    """The envelope of `line`. Total: a line that is no envelope, or of another seq, comes as core kind
    ``unreadable``.

    Its data is a JSON text that says why.
    """
    seq = line.seq
    try:
        envelope = _envelope(line.data)
    except (ValueError, RecursionError) as error:
        why = str(error)
    else:
        if envelope.seq == seq and not (envelope.erased and envelope.message):
            return envelope
        why = f"the line says seq {envelope.seq}" if envelope.seq != seq else "a tombstone holds a message"
    return Envelope(seq=line.seq, at=0.0, extension=CORE, kind=UNREADABLE, data=Raw(_encode(why)))


def with_body(envelope: Envelope, body: bytes) -> Envelope:
    """`envelope` with the data and message of its blob put back.

    Total: bytes that are no body make it unreadable.
    """
    try:
        whole = _body(body)
    except (ValueError, RecursionError) as error:
        why = Raw(_encode(f"its blob {envelope.blob} is damaged: {error}"))
        return Envelope(seq=envelope.seq, at=envelope.at, extension=CORE, kind=UNREADABLE, data=why)
    return msgspec.structs.replace(
        envelope,
        data=whole.data or envelope.data,
        message=whole.message or envelope.message,
    )


def recorded(envelope: Envelope, types: Mapping[str, Any] | None = None) -> Recorded:
    """`envelope` decoded. `types` maps a plugin's kinds to what to decode them as; other data comes as
    builtins.

    Total: data that does not decode is None.
    """
    data: Any = None
    try:
        if envelope.extension != CORE or envelope.kind not in DECODERS:
            type_ = (types or {}).get(envelope.kind, Any)
            data = _untyped(envelope.data) if type_ is Any else msgspec.json.decode(envelope.data, type=type_)
        elif not envelope.erased or envelope.data != NULL:
            data = DECODERS[envelope.kind].decode(envelope.data)
            if isinstance(data, CompactedParts):
                data = compacted(data)
    except Exception:
        data = None
    return Recorded(
        seq=envelope.seq,
        at=envelope.at,
        extension=envelope.extension,
        kind=envelope.kind,
        data=data,
        message=decode_message(bytes(envelope.message)) if envelope.message else None,
        by=envelope.by,
        hook=envelope.hook,
        erased=envelope.erased,
    )


def compacted(parts: CompactedParts) -> Compacted:
    """`parts` with its messages decoded."""

    def messages(raws: list[Raw]) -> list[Message]:
        return [decode_message(bytes(raw)) for raw in raws]

    return Compacted(
        through=parts.through,
        keep=parts.keep,
        trigger=parts.trigger,
        summary=messages(parts.summary),
        lead=messages(parts.lead),
        after=messages(parts.after),
    )
