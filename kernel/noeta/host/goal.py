"""What a task is about: the first thing it was told. For lists, so it reads as little as it can."""

from __future__ import annotations

from noeta.core.codec import decode, with_body
from noeta.core.items import decode_body
from noeta.core.messages import decode_message
from noeta.toolkit.store import Reader, TaskRow

LOOKED = 5
"""How many items are looked at. The first one is a message, but for an odd task."""


def goal(reader: Reader, row: TaskRow) -> str:
    """The text of the first message of a task, recorded or still in its inbox; empty when there is none yet.

    The history that a task continues does not count.
    """
    for line in reader.read(row.task, only=["core.received"], limit=LOOKED):
        if line.message:
            envelope = decode(line)
            if envelope.blob:
                envelope = with_body(envelope, reader.read_blob(envelope.blob) or b"")
            return decode_message(bytes(envelope.message)).text if envelope.message else ""
    for item in reader.inbox(row.task, LOOKED) if row.unread else ():
        try:
            body = decode_body(item.body)
        except ValueError:
            continue
        if body.message:
            return decode_message(bytes(body.message)).text
    return ""
