"""Messages, their blocks, and token usage: what a model reads and writes, in no vendor's terms.

Vendors invent words, so roles, origins and media types are plain text, and a block that this version does not
know is kept as it came (`Unknown`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

T = TypeVar("T")


class Text(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="text"):
    """Plain text."""

    text: str


class Image(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="image"):
    """An image, by the sha-256 (hex) of its bytes in the store's blobs.

    `data` carries the bytes from where the image enters to where it is recorded, and is empty in a log.
    """

    media_type: str
    blob: str = ""
    data: bytes = b""


class ToolUse(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="tool_use"):
    """One call the model asks for.

    `id` is the kernel's own, unique in the task for ever; `provider_id` is what the vendor called it.
    """

    id: str
    name: str
    input: dict[str, Any]
    provider_id: str = ""


class ToolReference(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="tool_reference"
):
    """The name of a deferred tool that a result makes known to the model."""

    name: str


class Thinking(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="thinking"):
    """What the model thought.

    `signature` and `redacted` go back to the vendor as they came, byte for byte.
    """

    text: str = ""
    signature: str = ""
    redacted: str = ""


class Unknown(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="unknown"):
    """A block of another version or of one vendor: its type and its JSON, kept as they came."""

    of: str
    raw: Raw


class ToolResult(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="tool_result"):
    """The result of the call `call` (a `ToolUse.id`).

    With `block_list` it is sent as a list even when it is text.
    """

    call: str
    content: list[Inner]
    is_error: bool = False
    block_list: bool = False


Inner = Text | Image | ToolReference | Unknown
"""What a result may hold."""
Block = Text | Image | ToolUse | ToolResult | Thinking | ToolReference | Unknown


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of a conversation.

    `role` is ``user``, ``assistant`` or ``system``. `origin` says who put it there when neither the person
    nor the model did (``system``, ``memory``). `about` is the seq of the message that this one belongs to,
    such as the file a person's message names: both are erased together.
    """

    role: str
    content: list[Block]
    origin: str = ""
    about: int | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def calls(self) -> list[ToolUse]:
        """The calls this message asks for, in order."""
        return [block for block in self.content if isinstance(block, ToolUse)]

    @property
    def images(self) -> list[Image]:
        """The images, those inside tool results too."""
        inner = [block.content if isinstance(block, ToolResult) else [block] for block in self.content]
        return [block for blocks in inner for block in blocks if isinstance(block, Image)]


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens of one model call, or of many added up.

    The three kinds of input do not overlap; `reasoning` is a part of `output`.
    """

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            uncached=self.uncached + other.uncached,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )

    @property
    def input(self) -> int:
        """All input tokens, cached or not."""
        return self.uncached + self.cache_read + self.cache_write


def unfit(message: Message) -> str:
    """Why APIs would refuse a conversation that this message joins from outside, else the empty text."""
    if message.role not in ("user", "system"):
        return f"its role is {message.role!r}; it can be user or system"
    for block in message.content:
        if isinstance(block, ToolUse | ToolResult | Thinking):
            return "it holds a thought, a call or a result, which stand only where the model made them"
        if blank(block):
            return "it holds a text that is blank, or an image without a type or without bytes"
    return "" if message.content else "it says nothing"


def blank(block: object) -> bool:
    """Whether there is nothing in a text or an image: APIs refuse a conversation that holds one."""
    if isinstance(block, Image):
        return not (block.media_type and (block.data or block.blob))
    return isinstance(block, Text) and not block.text.strip()


def user(text: str) -> Message:
    """A person's message of one text."""
    return Message(role="user", content=[Text(text=text)])


class _LooseMessage(Struct):
    """A message whose blocks are not looked at yet."""

    role: str = "user"
    content: list[Raw] = []
    origin: str = ""
    about: int | None = None


class _LooseResult(Struct, tag_field="type", tag="tool_result"):
    """A result whose blocks are not looked at yet."""

    call: str
    content: list[Raw]
    is_error: bool = False
    block_list: bool = False


class _Type(Struct):
    type: str = ""


_encode = msgspec.json.Encoder().encode
_message = msgspec.json.Decoder(Message)
_block: msgspec.json.Decoder[Block] = msgspec.json.Decoder(Block)
_inner: msgspec.json.Decoder[Inner] = msgspec.json.Decoder(Inner)


def encode_message(message: Message) -> bytes:
    """The JSON of a message, as a record keeps it."""
    return _encode(message)


def decode_message(data: bytes) -> Message:
    """The message in `data`. Total: what cannot be read is an `Unknown` block, the rest is there.

    A block is `Unknown` when its type is from a later version or its fields do not fit; a whole message that
    is no message becomes one `Unknown` block of type ``""``.
    """
    try:
        return _message.decode(data)
    except Exception:
        with suppress(Exception):
            loose = msgspec.json.decode(data, type=_LooseMessage)
            content = [_decode_block(raw) for raw in loose.content]
            return Message(role=loose.role, content=content, origin=loose.origin, about=loose.about)
    return Message(role="user", content=[Unknown(of="", raw=_kept(data))])


def _decode_block(raw: Raw) -> Block:
    try:
        loose = msgspec.json.decode(raw, type=_LooseResult)
    except Exception:
        return _decoded(raw, _block)
    content = [_decoded(inner, _inner) for inner in loose.content]
    return ToolResult(call=loose.call, content=content, is_error=loose.is_error, block_list=loose.block_list)


def _decoded(raw: Raw, decoder: msgspec.json.Decoder[T]) -> T | Unknown:
    """The block in `raw` as `decoder` reads it, else as an `Unknown` one."""
    of = ""
    with suppress(Exception):
        return decoder.decode(raw)
    with suppress(Exception):
        of = msgspec.json.decode(raw, type=_Type).type
    return Unknown(of=of, raw=_kept(bytes(raw)))


def _kept(data: bytes) -> Raw:
    """`data` as JSON that can be written again: itself, or a text of it when it is no JSON."""
    try:
        msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return Raw(_encode(data.decode(errors="replace")))
    return Raw(data.strip())
