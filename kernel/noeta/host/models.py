"""Calling models: which provider, how often, and when to give up for now.

A call that fails for a passing reason is repeated, with growing pauses, for about a minute. Then the other
models of the agent are tried, and then the wait becomes the task's: a row in the store and no process.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import anyio
import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from noeta.core.codec import proved
from noeta.core.errors import ProviderError, told
from noeta.core.messages import Block, Text, Thinking, ToolResult, ToolUse, Unknown
from noeta.core.ports import Clock, Delta, Ids, ModelRequest, ModelResponse
from noeta.core.text import meant, storable_text
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.provider import ModelInfo, Provider
from noeta.toolkit.sanitize import storable
from noeta.toolkit.strays import fault

RETRIED = frozenset({"rate_limit", "overloaded", "network", "timeout", "server"})
"""The categories of `ProviderError` that may pass by themselves."""
PATIENCE = 60.0
"""Seconds from the first failure of a call in which it is repeated in process."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 16.0
FIRST_WAIT, LONGEST_WAIT = 60.0, 3600.0
SILENCE = 600.0
"""Seconds without a piece after which a stream counts as stalled."""
CLOSE_SECONDS = 10.0
"""About how long a stream may take to close: what it does after its last word is of no interest."""
MAX_DETAIL_CHARS = 2_000

_log = logging.getLogger("noeta")


class Reset(Struct, frozen=True):
    """To those who watch live: the pieces of the reply under way are void. It begins again, or not at all."""


class Models:
    """The models of a host, by the names of their providers.

    ``anthropic:claude`` is the model ``claude`` of the provider named ``anthropic``. A host with one provider
    gives it every name that has no prefix. `more` gives providers that are not among `providers`, by name,
    and raises `ComposeError` for one that it does not have. `names` are other names of models: one each, and
    those to go on with.
    Streams that fall silent are given up while `watch` runs.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        clock: Clock,
        ids: Ids,
        *,
        patience: float = PATIENCE,
        silence: float = SILENCE,
        more: Callable[[str], Provider] | None = None,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._providers, self._more, self._names = dict(providers), more, names or {}
        self._clock, self._ids = clock, ids
        self._patience, self._silence = patience, silence
        self._streams: set[_Stream] = set()

    def info(self, model: str) -> ModelInfo:
        """What is known of a model. Raises `ProviderError` as `find` does."""
        provider, name = self.find(model)
        return provider.model_info(name)

    def find(self, model: str) -> tuple[Provider, str]:
        """The provider of a model, and what it calls it. Raises `ProviderError`, mostly ``invalid``."""
        model = self._names[model][0] if model in self._names else model
        prefix, colon, name = model.partition(":")
        if colon and prefix in self._providers:
            return self._providers[prefix], name
        if not colon and len(self._providers) == 1:
            return next(iter(self._providers.values())), model
        if not colon:
            raise ProviderError("invalid", f"the model {model!r} names no provider; write 'provider:model'")
        why = f"this host has no provider {prefix!r}{meant(prefix, self._providers)}"
        if self._more is None:
            raise ProviderError("invalid", why)
        try:
            return self._more(prefix), name
        except ProviderError:
            raise
        except ComposeError as error:
            raise ProviderError("invalid", f"{why}: {error}") from error
        except Exception as error:
            raise ProviderError("invalid", f"provider {prefix!r} cannot be opened: {told(error)}") from error

    async def __call__(
        self,
        request: ModelRequest,
        live: Callable[[Any], None],
        *,
        fallbacks: Sequence[str] = (),
        failures: int = 0,
    ) -> ModelResponse:
        """The reply, its pieces told to `live` as they come; a `Reset` follows those of a failed attempt.

        `fallbacks` are models to try when `request.model` is not to be had; all share one patience.
        Raises `ProviderError`. After a passing failure it says when to come back (`retry_at`): in a minute,
        and in twice the time for each of `failures`, the times that this happened before, up to an hour.
        """
        asked = [request.model, *fallbacks]
        models = [each for name in asked for each in self._names.get(name, (name,))]
        first: ProviderError | None = None
        for model in models:
            try:
                return await self._patiently(replace(request, model=model), live, len(models))
            except ProviderError as error:
                if first is None and error.category not in RETRIED:
                    raise
                # What a fallback fails with says nothing about the model that was meant.
                first = first or error
        assert first is not None
        wait = min(FIRST_WAIT * 2.0 ** min(failures, 10), LONGEST_WAIT) * (0.9 + self._chance() / 10)
        wait = max(wait, min(_seconds(first.retry_after), LONGEST_WAIT))
        raise _again(first, first.detail, first.retry_at or self._clock.now() + wait) from first

    async def _patiently(
        self, request: ModelRequest, live: Callable[[Any], None], models: int
    ) -> ModelResponse:
        """The reply of one model, which has its share of the patience when there are several."""
        attempt, until = 0, None
        while True:
            try:
                return await self._attempt(request, live)
            except ProviderError as error:
                now = self._clock.monotonic()
                until = until or now + self._patience / models
                pause = min(FIRST_PAUSE * 2.0 ** min(attempt, 10), LONGEST_PAUSE)
                pause = max(pause * (0.5 + self._chance() / 2), _seconds(error.retry_after))
                if error.category not in RETRIED or error.retry_at is not None or now + pause > until:
                    raise
                attempt += 1
                _log.info("%s: %s; trying again in %.1f s", request.model, error, pause)
                await self._clock.sleep(pause)

    async def _attempt(self, request: ModelRequest, live: Callable[[Any], None]) -> ModelResponse:
        provider, name = self.find(request.model)
        stream = _Stream(live, self._clock.monotonic())
        self._streams.add(stream)
        try:
            with stream.scope:
                await stream.read(lambda: provider.stream(replace(request, model=name)))
        finally:
            self._streams.discard(stream)
            stream.close()
        if (response := stream.response) is not None:
            return replace(response, model=response.model or request.model)
        if stream.scope.cancelled_caught:
            raise ProviderError("timeout", f"the model said nothing for {self._silence:g} seconds")
        raise stream.error or ProviderError("network", "the stream ended before the reply was complete")

    async def watch(self) -> None:
        """Give up every stream that falls silent. One task does it for all calls, and runs beside them."""
        while True:
            await self._clock.sleep(min(self._silence / 4, CLOSE_SECONDS))
            now = self._clock.monotonic()
            for stream in self._streams:
                if now - stream.heard_at(now) >= (CLOSE_SECONDS if stream.closing else self._silence):
                    stream.scope.cancel()

    def _chance(self) -> float:
        return int.from_bytes(self._ids.token()[:4], "big") / 2**32


class _Stream:
    """One attempt: what came of it, and who is told."""

    def __init__(self, live: Callable[[Any], None], now: float) -> None:
        self._live = live
        self._heard = ((0, False), now)
        self.scope = anyio.CancelScope()
        self.count = 0
        self.closing = False
        self.response: ModelResponse | None = None
        self.error: ProviderError | None = None

    async def read(self, begin: Callable[[], AsyncIterator[Delta | ModelResponse]]) -> None:
        """Read up to the reply. An error is kept, since it would leave a task group in a group."""
        try:
            pieces = _stream(begin())
            try:
                async for piece in pieces:
                    if isinstance(piece, ModelResponse):
                        self.response = recordable(piece)
                        return
                    if not isinstance(piece, Delta):
                        why = (
                            f"its stream holds a {type(piece).__name__}, neither a Delta nor a ModelResponse"
                        )
                        raise ProviderError("invalid", why)
                    self.count += 1
                    self._live(piece)
            finally:
                self.closing = True
                if close := getattr(pieces, "aclose", None):
                    await close()
        except BaseException as error:
            known = error if isinstance(error, ProviderError) else ProviderError("server", fault(error))
            self.error = _again(known, str(known.detail)[:MAX_DETAIL_CHARS], known.retry_at)

    def heard_at(self, now: float) -> float:
        """When it was first seen to have come as far as it has now."""
        place = (self.count, self.closing)
        if self._heard[0] != place:
            self._heard = (place, now)
        return self._heard[1]

    def close(self) -> None:
        """Say that the pieces told are void, unless the reply came."""
        if self.count and self.response is None:
            self._live(Reset())


def _stream(given: Any) -> AsyncIterator[Any]:
    if not hasattr(given, "__aiter__"):
        why = f"its stream is of type {type(given).__name__}, not an async iterator"
        raise ProviderError("invalid", why)
    stream: AsyncIterator[Any] = given
    return stream


def recordable(response: ModelResponse) -> ModelResponse:
    """The response as a log can hold it, its texts and its inputs mended. Raises `ProviderError` for one that
    none can hold.
    """
    try:
        content = [_mended(block) for block in response.message.content]
        made = replace(response, message=replace(response.message, content=content))
        proved(made, ModelResponse, "the reply")
    except (AttributeError, TypeError, ValueError) as error:
        raise ProviderError("invalid", f"the reply cannot be recorded: {told(error)}") from error
    return made


def _mended(block: Block) -> Block:
    match block:
        case Text(text=str(text)) | Thinking(text=str(text), signature=""):
            return replace(block, text=storable_text(text))
        case ToolUse(input=dict(input)):
            return replace(block, input=storable(input))
        case Unknown(raw=raw):
            # A log is lines of UTF-8.
            return replace(block, raw=Raw(msgspec.json.format(bytes(raw).decode(), indent=-1).encode()))
        case ToolResult():
            raise TypeError("it holds a result, and a model makes none")
    return block


def _again(error: ProviderError, detail: str, retry_at: float | None) -> ProviderError:
    """Another error of the kind, as a log can hold it.

    One that a provider raised is its own, and may be raised again.
    """
    again = ProviderError(storable_text(str(error.category)), storable_text(detail), status=error.status)
    if isinstance(error.retry_after, int | float) and not math.isnan(error.retry_after):
        again.retry_after = error.retry_after
    if isinstance(retry_at, int | float) and math.isfinite(retry_at):
        again.retry_at = retry_at
    return again


def _seconds(given: float | None) -> float:
    """A time that a server asked for, 0 for none and for nonsense."""
    return given if given is not None and given > 0 else 0.0
