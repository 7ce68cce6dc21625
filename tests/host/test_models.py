"""A model call is repeated while that may help, and never leaves half a reply."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from msgspec import Raw
from msgspec.structs import replace

from noeta.core.errors import ProviderError
from noeta.core.messages import Message, ToolResult, Unknown, Usage, user
from noeta.core.ports import Delta, ModelRequest, ModelResponse
from noeta.host.models import CLOSE_SECONDS, Models, Reset
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.scripted_provider import ScriptedProvider, call, reply

pytestmark = pytest.mark.anyio

ASK = ModelRequest(model="a:one", messages=[user("hi")])
BUSY = ProviderError("overloaded", "busy")


async def quiet() -> None:
    """Let everybody go as far as they get without time."""
    for _ in range(50):
        await anyio.lowlevel.checkpoint()


class Streams:
    """A provider that plays one script of pieces for each call; an exception is raised where it stands."""

    def __init__(self, *scripts: list[Any]) -> None:
        self.scripts = list(scripts)
        self.models: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta | ModelResponse]:
        self.models.append(request.model)
        for piece in self.scripts.pop(0):
            await anyio.lowlevel.checkpoint()
            if isinstance(piece, Exception):
                raise piece
            if piece == "silence":
                await anyio.sleep_forever()
            yield Delta(kind="text", text=piece) if isinstance(piece, str) else piece

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    def model_info(self, model: str) -> Any:
        return None

    async def aclose(self) -> None:
        pass


class Calling:
    """One call at a clock that a test moves."""

    def __init__(self, *, ids: int = 0, **providers: Any) -> None:
        self.clock = FrozenClock()
        self.models = Models(providers, self.clock, SeededIds(ids), silence=40.0)
        self.live: list[object] = []
        self.took = 0.0

    async def __call__(self, request: ModelRequest = ASK, **policy: Any) -> ModelResponse | ProviderError:
        """What the call gives or raises; time passes while nothing else can happen."""
        outcome: list[ModelResponse | ProviderError] = []
        began = self.clock.monotonic()

        async def call() -> None:
            try:
                outcome.append(await self.models(request, self.live.append, **policy))
            except ProviderError as error:
                outcome.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(self.models.watch)
            group.start_soon(call)
            while not outcome:
                await quiet()
                if not outcome:
                    self.clock.advance(0.25)
            group.cancel_scope.cancel()
        self.took = self.clock.monotonic() - began
        return outcome[0]


def said(outcome: ModelResponse | ProviderError) -> str:
    assert isinstance(outcome, ModelResponse), outcome
    return outcome.message.text


def failed(outcome: ModelResponse | ProviderError) -> ProviderError:
    assert isinstance(outcome, ProviderError), outcome
    return outcome


async def test_the_prefix_of_a_model_names_its_provider() -> None:
    one, two = ScriptedProvider(["One."]), ScriptedProvider(["Two."])
    calling = Calling(a=one, b=two)
    assert said(await calling(replace(ASK, model="b:x:y"))) == "Two."
    assert (one.requests, two.requests[0].model) == ([], "x:y")


async def test_a_model_without_a_prefix_is_that_of_the_only_provider() -> None:
    assert said(await Calling(a=ScriptedProvider(["One."]))(replace(ASK, model="x"))) == "One."


@pytest.mark.parametrize(
    ("model", "why"),
    [("alpa:x", "no provider 'alpa' (did you mean 'alpha'?)"), ("x", "the model 'x' names no provider")],
    ids=["unknown", "bare"],
)
async def test_a_model_that_no_provider_has_is_refused_at_once(model: str, why: str) -> None:
    calling = Calling(alpha=ScriptedProvider(), beta=ScriptedProvider())
    error = failed(await calling(replace(ASK, model=model)))
    assert (error.category, calling.took) == ("invalid", 0.0)
    assert why in error.detail


@pytest.mark.parametrize("category", ["rate_limit", "overloaded", "network", "timeout", "server"])
async def test_a_passing_failure_is_tried_again_after_a_pause(category: str) -> None:
    provider = ScriptedProvider([ProviderError(category, "x"), ProviderError(category, "x"), "Hello."])
    calling = Calling(a=provider)
    assert said(await calling()) == "Hello."
    assert 0.5 < calling.took < 3


@pytest.mark.parametrize("category", ["auth", "invalid", "content", "overflow"])
async def test_a_lasting_failure_is_passed_on_at_once(category: str) -> None:
    provider = ScriptedProvider([ProviderError(category, "x")])
    error = failed(await Calling(a=provider)(fallbacks=["a:two"]))
    assert (error.category, error.retry_at, len(provider.requests)) == (category, None, 1)


async def test_the_server_says_how_long_to_wait() -> None:
    calling = Calling(a=ScriptedProvider([ProviderError("rate_limit", "x", retry_after=20.0), "Hello."]))
    assert said(await calling()) == "Hello."
    assert calling.took == pytest.approx(20, abs=0.25)


async def test_pauses_differ_from_host_to_host() -> None:
    took = set()
    for seed in range(4):
        calling = Calling(ids=seed, a=ScriptedProvider([BUSY, BUSY, BUSY, BUSY, "Hello."]))
        await calling()
        took.add(calling.took)
    assert len(took) > 1


async def test_an_outage_ends_the_patience_after_a_minute_and_says_when_to_come_back() -> None:
    provider = ScriptedProvider(respond=lambda request: BUSY)
    calling = Calling(a=provider)
    error = failed(await calling())
    assert 30 < calling.took <= 60.25
    assert 5 <= len(provider.requests) <= 12
    assert error.retry_at is not None
    assert 54 <= error.retry_at - calling.clock.now() <= 60


@pytest.mark.parametrize(("failures", "wait"), [(1, 120), (3, 480), (6, 3600), (5000, 3600)])
async def test_each_outage_in_a_row_doubles_the_wait_up_to_an_hour(failures: int, wait: float) -> None:
    calling = Calling(a=ScriptedProvider(respond=lambda request: BUSY))
    error = failed(await calling(failures=failures))
    assert error.retry_at is not None
    assert 0.9 * wait <= error.retry_at - calling.clock.now() <= wait


@pytest.mark.parametrize(
    ("after", "wait"),
    [(1e9, 3600), (float("inf"), 3600), (600.0, 600), (float("nan"), 60), (-5.0, 60)],
)
async def test_a_wait_that_is_too_long_for_the_process_is_the_tasks_and_never_absurd(
    after: float, wait: float
) -> None:
    limited = ProviderError("rate_limit", "x", retry_after=after)
    calling = Calling(a=ScriptedProvider(respond=lambda request: limited))
    error = failed(await calling())
    assert error.retry_at is not None
    assert 0.9 * wait <= error.retry_at - calling.clock.now() <= wait


async def test_a_provider_may_name_the_time_itself() -> None:
    provider = ScriptedProvider([ProviderError("rate_limit", "quota", retry_at=2e9)])
    assert failed(await Calling(a=provider)()).retry_at == 2e9


async def test_fallback_models_are_tried_before_the_task_waits() -> None:
    primary, other = ScriptedProvider(respond=lambda request: BUSY), ScriptedProvider(["Other."])
    calling = Calling(a=primary, b=other)
    outcome = await calling(fallbacks=["b:two"])
    assert said(outcome) == "Other."
    assert isinstance(outcome, ModelResponse)
    assert outcome.model == "two"
    assert calling.took <= 30.25


async def test_a_fallback_that_cannot_be_used_does_not_fail_the_turn() -> None:
    calling = Calling(a=ScriptedProvider(respond=lambda request: BUSY))
    error = failed(await calling(fallbacks=["gone:two"]))
    assert error.category == "overloaded"
    assert error.retry_at is not None


async def test_a_cut_stream_is_repeated_and_what_was_told_of_it_is_void() -> None:
    whole = ModelResponse(message=reply("Hello."))
    calling = Calling(a=Streams(["He", "l"], ["Hel", "lo.", whole]))
    assert said(await calling()) == "Hello."
    texts = [piece.text if isinstance(piece, Delta) else piece for piece in calling.live]
    assert texts == ["He", "l", Reset(), "Hel", "lo."]


async def test_what_comes_after_the_reply_does_not_spoil_it() -> None:
    whole = ModelResponse(message=reply("Hello."))
    calling = Calling(a=Streams(["Hello.", whole, ValueError("closed badly")]))
    assert said(await calling()) == "Hello."
    assert Reset() not in calling.live


async def test_an_error_of_another_type_is_the_servers_and_keeps_its_text_in_bounds() -> None:
    broken = ValueError("\ud800" + "x" * 5_000)
    calling = Calling(a=Streams(*[[broken]] * 20))
    error = failed(await calling())
    assert error.category == "server"
    assert error.detail.startswith("ValueError: \ufffdxx")
    assert len(error.detail) == 2_000


class Gives:
    """A provider whose stream is whatever it was given."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def stream(self, request: ModelRequest) -> Any:
        return self.given


NO_STREAMS: dict[str, Any] = {"nothing": None, "a list": [ModelResponse(message=reply("Hello."))]}


@pytest.mark.parametrize("given", NO_STREAMS.values(), ids=NO_STREAMS)
async def test_what_is_no_stream_fails_at_once_and_says_so(given: Any) -> None:
    error = failed(await Calling(a=Gives(given))())
    assert error.category == "invalid"
    assert "not an async iterator" in error.detail


@pytest.mark.parametrize("junk", [None, 5, reply("Hello.")], ids=repr)
async def test_a_piece_of_another_type_fails_at_once_and_says_so(junk: Any) -> None:
    error = failed(await Calling(a=Streams([junk]))())
    assert error.category == "invalid"
    assert f"its stream holds a {type(junk).__name__}" in error.detail


def nested(deep: int) -> list[Any]:
    return [nested(deep - 1)] if deep else []


NO_REPLIES: dict[str, Any] = {
    "no message": ModelResponse(message=None),  # type: ignore[arg-type]
    "no content": ModelResponse(message=Message(role="assistant", content=None)),  # type: ignore[arg-type]
    "a text of another type": ModelResponse(message=reply(5)),  # type: ignore[arg-type]
    "a call without a name": ModelResponse(message=reply("", call(None))),  # type: ignore[arg-type]
    "an input without end": ModelResponse(message=reply("", call("x", deep=nested(80)))),
    "a usage of nothing": ModelResponse(message=reply("x"), usage=Usage(output=None)),  # type: ignore[arg-type]
    "a result": ModelResponse(message=Message(role="assistant", content=[ToolResult(call="c", content=[])])),
    "bytes that are no text": ModelResponse(
        message=Message(role="assistant", content=[Unknown(of="new", raw=Raw(b'{"a":"\xff"}'))])
    ),
    "no reason to stop": ModelResponse(message=reply("x"), stop_reason=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("response", NO_REPLIES.values(), ids=NO_REPLIES)
async def test_a_reply_that_no_log_can_hold_fails_the_call(response: ModelResponse) -> None:
    error = failed(await Calling(a=Streams([response]))())
    assert error.category == "invalid"
    assert "the reply cannot be recorded" in error.detail


async def test_texts_and_inputs_of_a_reply_are_mended() -> None:
    made = reply("a\ud800", call("x", n=float("nan"), s="b\udfff"), thinking="")
    response = await Calling(a=Streams([ModelResponse(message=made)]))()
    assert isinstance(response, ModelResponse)
    assert response.message.text == "a\ufffd"
    assert response.message.calls[0].input == {"n": "NaN", "s": "b\ufffd"}


async def test_a_block_of_a_vendor_comes_without_the_line_breaks_that_no_log_holds() -> None:
    block = Unknown(of="new", raw=Raw(b'{"type": "new",\n "text": "a\\nb"}'))
    made = Message(role="assistant", content=[block])
    response = await Calling(a=Streams([ModelResponse(message=made)]))()
    assert isinstance(response, ModelResponse)
    assert response.message.content == [Unknown(of="new", raw=Raw(b'{"type":"new","text":"a\\nb"}'))]


async def test_an_error_with_nonsense_for_times_is_still_an_error() -> None:
    odd = ProviderError("quota", "no more", retry_after="soon", retry_at=float("nan"))  # type: ignore[arg-type]
    error = failed(await Calling(a=Streams([odd]))())
    assert (error.category, error.retry_after, error.retry_at) == ("quota", None, None)


async def test_a_stream_that_does_not_close_keeps_nobody_from_the_reply() -> None:
    class Hangs(Streams):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta | ModelResponse]:
            try:
                yield ModelResponse(message=reply("Hello."))
            finally:
                await anyio.sleep_forever()

    calling = Calling(a=Hangs())
    assert said(await calling()) == "Hello."
    assert calling.took <= 2.5 * CLOSE_SECONDS


async def test_a_stream_that_falls_silent_is_given_up() -> None:
    whole = ModelResponse(message=reply("Hello."))
    provider = Streams(["He", "silence"], ["Hello.", whole])
    calling = Calling(a=provider)
    assert said(await calling()) == "Hello."
    assert 40 <= calling.took <= 82
    assert len(provider.models) == 2


async def test_a_stream_that_goes_on_slowly_is_not_given_up() -> None:
    class Slow(Streams):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta | ModelResponse]:
            for _ in range(5):
                await calling.clock.sleep(30)
                yield Delta(kind="text", text="x")
            yield ModelResponse(message=reply("xxxxx"))

    calling = Calling(a=Slow())
    assert said(await calling()) == "xxxxx"
    assert calling.took >= 150


async def test_the_pieces_of_a_call_that_is_cancelled_are_void() -> None:
    calling = Calling(a=Streams(["He", "silence"]))
    async with anyio.create_task_group() as group:
        group.start_soon(calling.models, ASK, calling.live.append)
        await quiet()
        group.cancel_scope.cancel()
    assert calling.live == [Delta(kind="text", text="He"), Reset()]


async def test_the_models_name_is_kept_when_the_provider_gives_none() -> None:
    answer = await Calling(a=Streams([ModelResponse(message=reply("x"))]))()
    assert isinstance(answer, ModelResponse)
    assert answer.model == "a:one"
