"""The model port, for those who connect a model API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from msgspec import Struct

from noeta.core.errors import ProviderError as ProviderError
from noeta.core.messages import Block as Block
from noeta.core.messages import Image as Image
from noeta.core.messages import Message as Message
from noeta.core.messages import Text as Text
from noeta.core.messages import Thinking as Thinking
from noeta.core.messages import ToolReference as ToolReference
from noeta.core.messages import ToolResult as ToolResult
from noeta.core.messages import ToolUse as ToolUse
from noeta.core.messages import Unknown as Unknown
from noeta.core.messages import Usage as Usage
from noeta.core.messages import user as user
from noeta.core.ports import Delta as Delta
from noeta.core.ports import Effort as Effort
from noeta.core.ports import ModelRequest as ModelRequest
from noeta.core.ports import ModelResponse as ModelResponse
from noeta.core.ports import ToolSpec as ToolSpec


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What is known of a model: its window and longest reply in tokens, None where nobody knows.

    `features` are words such as ``tools``, ``images``, ``thinking``, ``deferred``. `prices` are dollars for a
    million tokens, by the fields of `Usage`. `parameters` is how many weights it has; small
    models are offered fewer tools.
    """

    window: int | None = None
    max_output: int | None = None
    features: frozenset[str] = frozenset()
    prices: Mapping[str, float] = {}
    parameters: int | None = None


class Provider(Protocol):
    """A model API.

    Raises only `ProviderError`, and never in the middle of a message it has given.

    A provider may have ``check(model)``, which raises `ProviderError` when the model cannot be called, as far
    as that shows without a call: its file or its key is missing.
    """

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta | ModelResponse]:
        """Call the model. The `ModelResponse` comes last, once; closing early ends the call."""

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """The exact number of input tokens of `request`, None when the API cannot tell."""

    def model_info(self, model: str) -> ModelInfo:
        """What is known of `model`. Never raises."""

    async def aclose(self) -> None:
        """Close. Idempotent."""
