"""What the kernel needs from its host: time, randomness, a model, a place to act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from noeta.core.messages import Message, Usage

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
"""How hard a model should think, where it can be told."""


class Clock(Protocol):
    """The only source of time for the kernel and for stores."""

    def now(self) -> float:
        """Epoch seconds. May jump; used for what people see and for timers."""

    def monotonic(self) -> float:
        """Seconds that never go back, from an arbitrary start; used for leases."""

    async def sleep(self, seconds: float) -> None:
        """Wait that long by `monotonic`."""


class Ids(Protocol):
    """The only source of randomness for the kernel and for stores."""

    def token(self) -> bytes:
        """16 random bytes, never given out before."""

    def new(self) -> str:
        """A short text for a new id, never given out before."""


class ToolSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as a request names it.

    `input_schema` is a JSON Schema. `deferred`: the model knows the name alone until a result refers to it.
    `extra` holds a vendor's own keys; an entry that is no tool, such as a mode switch, has only those.
    """

    name: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    deferred: bool = False
    extra: dict[str, Any] = {}


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One call of a model, in no vendor's terms.

    `messages` decodes as it is read; giving the same object on costs nothing. `tool_choice` is ``auto``,
    ``none``, ``any`` or a tool's name. With `output_schema` (JSON Schema) the reply is JSON of that form.
    `max_tokens` bounds the reply. `thinking` is ``adaptive``, ``disabled`` or empty for the model's own way.
    `cache_at` are the indexes of messages behind which the prompt should be cached. `extra` goes to the
    vendor as it is.
    """

    model: str
    system: str = ""
    messages: Sequence[Message] = ()
    tools: Sequence[ToolSpec] = ()
    tool_choice: str = "auto"
    output_schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    effort: Effort | None = None
    thinking: str = ""
    cache_at: Sequence[int] = ()
    extra: Mapping[str, Any] = {}


class ModelResponse(Struct, frozen=True, kw_only=True):
    """A complete reply.

    `stop_reason` is ``end_turn``, ``tool_use``, ``max_tokens``, ``refusal`` or a vendor's word.
    """

    message: Message
    stop_reason: str = "end_turn"
    usage: Usage = Usage()
    model: str = ""
    request_id: str = ""


class Delta(Struct, frozen=True, kw_only=True):
    """A piece of a reply under way: of the `index`-th block, for a tool the name and a piece of its input."""

    kind: Literal["text", "thinking", "tool"]
    index: int = 0
    text: str = ""
    name: str = ""
