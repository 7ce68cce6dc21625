"""Tombstones: what stays of a record after its content is erased.

Folding a log with tombstones gives the state of the kernel that the erasure left. So a tombstone keeps what
later folds need to count and to order, and nothing that anybody said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from noeta.core.codec import ABSENT, DECODERS, UNREADABLE, Envelope, Line, compacted, decode, line_of
from noeta.core.messages import decode_message
from noeta.core.records import CORE, NULL, Received
from noeta.toolkit.history import history
from noeta.toolkit.store import Store

KEPT = frozenset({"model_replied", "tool_finished"})
"""Core kinds that are never erased: a call must keep its result."""


def _bare_item(data: Received) -> Received:
    # A timer that fired must stay fired.
    return data if data.item == "timer" else replace(data, data=NULL)


LEFT: Mapping[str, Callable[[Any], Any]] = {
    "received": _bare_item,
    "continue": lambda data: data,
    "compacted": lambda data: replace(data, lead=[], summary=[], after=[]),
    "context_composed": lambda data: replace(data, edits=[replace(edit, messages=[]) for edit in data.edits]),
}
"""What stays of the data of each kind of `STONES`. Of other kinds nothing does."""


async def check_erasable(store: Store, task: str, seqs: Sequence[int]) -> None:
    """Raise `ValueError` for the first of these seqs with nothing that can be erased: no record, or one that
    holds no message but a reply's or a result's. What is erased already can be erased again.
    """
    last = (await store.task(task)).last_seq
    for seq in seqs:
        if not 1 <= seq <= last:
            raise ValueError(f"task {task!r} has no record {seq}; its last one is {last}")
        async with aclosing(history(store, task, seq - 1, through=seq)) as pages:
            async for [line] in pages:
                record = decode(line)
                kept = record.extension == CORE and record.kind in KEPT
                if kept or not (line.message or line.name == "core.compacted" or record.erased):
                    holds = "stays, so that no call is without its result" if kept else "holds no message"
                    raise ValueError(f"record {seq} of task {task!r} is a {record.kind}, which {holds}")


def tombstone(envelope: Envelope) -> tuple[Line, tuple[str, ...]]:
    """The tombstone of a record, and the names of the blobs that the record needed.

    `envelope` is whole (`with_body`). Seq, time and names stay. The tombstone of a tombstone is itself, as is
    that of a reply, of a result and of what cannot be read.
    """
    core = envelope.extension == CORE
    if core and envelope.kind in KEPT | {UNREADABLE}:
        return line_of(envelope, bool(envelope.message)), ()
    data = NULL
    if core and envelope.kind in LEFT:
        with suppress(ValueError, RecursionError):
            data = Raw(
                msgspec.json.encode(LEFT[envelope.kind](DECODERS[envelope.kind].decode(envelope.data)))
            )
    stone = replace(envelope, data=data, message=ABSENT, blob="", erased=True)
    return line_of(stone, False), blobs_of(envelope)


def blobs_of(envelope: Envelope) -> tuple[str, ...]:
    """The names of the blobs that a record needs: that of its body, and of the images in its messages.

    `envelope` is whole (`with_body`).
    """
    messages = [decode_message(bytes(envelope.message))] if envelope.message else []
    if (envelope.extension, envelope.kind) == (CORE, "compacted"):
        with suppress(ValueError, RecursionError):
            whole = compacted(DECODERS[envelope.kind].decode(envelope.data))
            messages += [*whole.lead, *whole.summary, *whole.after]
    images = [image.blob for message in messages for image in message.images if image.blob]
    return (*([envelope.blob] if envelope.blob else []), *images)
