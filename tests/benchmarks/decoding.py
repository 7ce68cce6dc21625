"""What the fold is measured against: msgspec decoding the same lines and nothing else.

``full`` decodes what a log has to say in the two levels it is written in: the envelope, then the payload with
the type of its kind, then the message. ``one_pass`` decodes the same with one call a line, by a tagged union
of a struct a kind: no reader can be built that way, since an unknown kind would be an error, but nothing in
Python is faster. ``envelopes`` leaves payload and message as bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from plugins import TYPES

from noeta.core.codec import Envelope, Line
from noeta.core.messages import Message
from noeta.core.records import CORE_KINDS

_envelope = msgspec.json.Decoder(Envelope).decode
_message = msgspec.json.Decoder(Message).decode
_builtins = msgspec.json.Decoder().decode
_KINDS: dict[tuple[str, str], Any] = {("core", kind): type_ for kind, type_ in CORE_KINDS.items()} | TYPES
_PAYLOADS = {name: msgspec.json.Decoder(type_).decode for name, type_ in _KINDS.items()}


def envelopes(lines: Iterable[Line]) -> None:
    """Decode the envelopes."""
    for line in lines:
        _envelope(line.data)


def full(lines: Iterable[Line]) -> None:
    """Decode envelope, payload and message, a call each."""
    payloads, builtins = _PAYLOADS, _builtins
    for line in lines:
        envelope = _envelope(line.data)
        payloads.get((envelope.extension, envelope.kind), builtins)(envelope.data)
        if envelope.message:
            _message(envelope.message)


def _union(kinds: dict[str, Any]) -> Any:
    rest = [("by", str, ""), ("hook", str, ""), ("v", int, 1), ("blob", str, ""), ("erased", bool, False)]
    union: Any = None
    for kind, type_ in kinds.items():
        fields = [("seq", int), ("at", float), ("extension", str), ("data", type_)]
        both = [*fields, ("message", Message | None, None), *rest]
        struct = msgspec.defstruct(f"One_{kind}", both, tag_field="kind", tag=kind, frozen=True, gc=False)
        union = struct if union is None else union | struct
    return union


def one_pass() -> Callable[[Iterable[Line]], None]:
    """What decodes everything with one call a line, for the kinds that the sample logs hold."""
    own = dict.fromkeys(("read", "write", "run", "added", "finished", "reminded"), Any)
    typed = {kind: type_ for (_, kind), type_ in TYPES.items()}
    decode = msgspec.json.Decoder(_union(CORE_KINDS | own | typed)).decode

    def run(lines: Iterable[Line]) -> None:
        for line in lines:
            decode(line.data)

    return run
