"""What a request is made of, and the request that it makes.

A task's request is built by this, and built again from the log by this: so both are the same, byte for byte.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from noeta.core import records as r
from noeta.core.codec import encode
from noeta.core.conversation import Conversation, Item
from noeta.core.messages import encode_message
from noeta.core.ports import ModelRequest, ToolSpec
from noeta.host.messages import Edited, Messages

PARAMETERS: Mapping[str, Any] = {
    field.name: field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    for field in msgspec.structs.fields(ModelRequest)
    if field.name not in ("model", "system", "messages", "tools")
}
"""The fields of a request that are recorded as its parameters besides the model, and their defaults."""


class Parts(Struct, frozen=True, kw_only=True):
    """What a request is made of besides the conversation, each part with its plugin.

    The fields are those of `ContextComposed`.
    """

    system: Sequence[r.SystemPart] = ()
    tools: Sequence[r.ToolPart] = ()
    parameters: Mapping[str, Any] = {}
    edits: Sequence[r.Edit] = ()

    @property
    def encoded(self) -> dict[str, bytes]:
        """The JSON of each part."""
        return {name: _encode(getattr(self, name)) for name in self.__struct_fields__}

    def request(self, messages: Messages) -> ModelRequest:
        """The request that these parts make of the messages of a conversation.

        Raises `TypeError` for a parameter or a field of a tool that this version does not know.
        """
        parameters: dict[str, Any] = {"model": "", **self.parameters}
        return ModelRequest(
            system="\n".join(part.text for part in self.system),
            messages=self.edited(messages),
            tools=[ToolSpec(**part.spec) for part in self.tools],
            **parameters,
        )

    def edited(self, messages: Messages) -> Messages:
        """The messages of a conversation with the edits made to them."""
        for edit in self.edits:
            items = [Edited(0, encode_message(message), by=edit.by) for message in edit.messages]
            messages = messages.replaced(edit.start, edit.end, items)
        return messages


def parameters_of(request: ModelRequest) -> dict[str, Any]:
    """The parameters of a request as a log keeps them: the model, and what is not at its default.

    Raises `NotStorable`, a `TypeError` or a `ValueError` for one that no log can hold as it is, such as NaN.
    """
    changed = {name: getattr(request, name) for name in PARAMETERS}
    changed = {name: value for name, value in changed.items() if value != PARAMETERS[name]}
    plain: dict[str, Any] = msgspec.json.decode(_encode({"model": request.model, **changed}))
    for name, value in changed.items():
        if plain[name] != value:
            # A tuple or a struct reads back as something like it. NaN would be sent, and null recorded.
            encode(0, 0.0, "request", name, value)
    return plain


def begun_with(encoded: Mapping[str, bytes]) -> Any:
    """What the digests of all requests of these parts (`Parts.encoded`) begin with."""
    hasher = sha256()
    for part in encoded.values():
        _add(hasher, part)
    return hasher


def digest_of(begun: Any, items: bytes) -> str:
    """The digest of a request of parts (`begun_with`) and of items with this digest (`Hashed`)."""
    hasher = begun.copy()
    _add(hasher, items)
    return urlsafe_b64encode(hasher.digest()).rstrip(b"=").decode()


class Hashed:
    """The sha-256 of all items of a conversation. Asked again, it costs what is new since the last time."""

    def __init__(self) -> None:
        self._hasher, self._hashed = sha256(), 0
        self._hashed_of: list[Item] | None = None

    def of(self, conversation: Conversation) -> bytes:
        """The digest of the items in order."""
        settled, start = conversation.settled, self._hashed
        if settled is not self._hashed_of or start > conversation.length:
            # A compaction or an erasure put another list in its place.
            self._hashed_of, self._hasher, start = settled, sha256(), 0
        for item in settled[start : conversation.length]:
            _add(self._hasher, item.data)
        self._hashed = conversation.length
        hasher = self._hasher.copy()
        for item in conversation.tail:
            _add(hasher, item.data)
        return hasher.digest()


_encode = msgspec.json.Encoder().encode


def _add(hasher: Any, data: bytes) -> None:
    # The length ahead keeps two pieces from reading like one.
    hasher.update(b"%d " % len(data))
    hasher.update(data)
