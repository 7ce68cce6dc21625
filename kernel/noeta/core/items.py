"""Inbox items: what others post to a task, before the runner records it.

An item has a kind (`ITEMS`), a payload and sometimes a message. Its body is JSON of two levels like a record,
so that a kind of a later version can still be carried and shown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from noeta.core.codec import ABSENT, Body, encode
from noeta.core.errors import NotStorable
from noeta.core.messages import Message, encode_message, unfit, user
from noeta.core.records import CORE, NULL, Answer, ChildEnded
from noeta.core.text import storable_text


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inbox item ``entry``: a plugin's own record, made by whoever consumes it."""

    extension: str
    kind: str
    data: Raw = NULL


class Interrupt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inbox item ``interrupt``: stop the turn that began at seq `turn`, and no other."""

    turn: int
    by: str = ""


class Cancel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inbox item ``cancel``: stop, then end the task."""

    by: str = ""
    reason: str = ""


class Erase(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inbox item ``erase``: take these messages out."""

    seqs: list[int]
    by: str = ""


class TimerFired(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Inbox item ``timer``: the timer set at seq `gen` is due."""

    name: str
    gen: int


ITEMS: dict[str, type[Struct] | None] = {
    "message": None,
    "entry": Entry,
    "answer": Answer,
    "interrupt": Interrupt,
    "cancel": Cancel,
    "erase": Erase,
    "child_ended": ChildEnded,
    "timer": TimerFired,
}
"""The kinds of inbox items and the type of each one's `data`."""


class NewEntry(NamedTuple):
    """An entry to be recorded by whoever consumes the item: `data` as a plugin's record has it."""

    extension: str
    kind: str
    data: Any = None
    message: Message | None = None


class Post(Struct, frozen=True, kw_only=True):
    """One item on its way into the inbox of `task`.

    `key` is the dedupe key: for the life of the task, a second post with it is refused. `kind` is one of
    `ITEMS`; `body` is what `encode_body` made.
    """

    task: str
    key: str
    kind: str
    body: bytes


_encode = msgspec.json.Encoder().encode
_body = msgspec.json.Decoder(Body)


def encode_body(data: object = None, message: Message | None = None) -> bytes:
    """The body of an item with this payload (a struct of `ITEMS`, or None) and this message."""
    payload = ABSENT if data is None else Raw(_encode(data))
    said = ABSENT if message is None else Raw(encode_message(message))
    return _encode(Body(data=payload, message=said))


def decode_body(body: bytes) -> Body:
    """The payload and message in `body`; raises `msgspec.DecodeError` for bytes that `encode_body` did not
    make.
    """
    return _body.decode(body)


def post_of(task: str, key: str, body: str | Message | NewEntry) -> Post:
    """The post of a person's text, a message or an entry.

    Raises `NotStorable` for a message that would spoil the conversation, and what no log can hold, such as an
    entry of the kernel's own; `TypeError` for any other body.
    """
    if not isinstance(body, str | Message | NewEntry):
        raise TypeError(f"a post is text, a Message or a NewEntry, not a {type(body).__name__}")
    message = user(storable_text(body)) if isinstance(body, str) else body
    entry = message if isinstance(message, NewEntry) else NewEntry("inbox", "message", None, message)
    if entry.extension == CORE:
        raise NotStorable(f"the entry {entry.kind!r}", "what the kernel records of itself is not posted")
    # It is received two levels deeper than it is posted.
    encode(0, 0.0, entry.extension, entry.kind, [[entry.data]], message=entry.message)
    if entry.message and (why := unfit(entry.message)):
        raise NotStorable("the message", why)
    if entry is not body:
        return Post(task=task, key=key, kind="message", body=encode_body(None, entry.message))
    made = encode(0, 0.0, entry.extension, entry.kind, entry.data).envelope
    data = Entry(extension=entry.extension, kind=entry.kind, data=made.data)
    return Post(task=task, key=key, kind="entry", body=encode_body(data, entry.message))
