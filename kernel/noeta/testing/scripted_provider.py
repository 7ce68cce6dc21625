"""A model that says what a test wrote down for it.

provider = ScriptedProvider([reply("I look.", call("read", path="a")), "It says hello."])
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, NoReturn, TypeAlias

import anyio.lowlevel
import msgspec

from noeta.core.errors import ProviderError, told
from noeta.core.messages import Block, Message, Text, Thinking, ToolUse, Usage
from noeta.core.ports import Delta, ModelRequest, ModelResponse
from noeta.testing.request_rules import request_fault
from noeta.toolkit.provider import ModelInfo

Reply: TypeAlias = ModelResponse | Message | ToolUse | str | ProviderError
"""What the model says: a whole response, a message, one call, a text, or that the call fails."""
Respond: TypeAlias = Callable[[ModelRequest], Reply | Awaitable[Reply]]
"""Makes up a reply when the request is there. It may take its time, and raise a `ProviderError`."""
PIECE_CHARS = 8


class ScriptError(BaseException):
    """The script and the task do not fit together: the test has failed, and not the turn.

    It is no `Exception`, so that no error policy takes it for a failure of the model or of a plugin.
    """


def reply(text: str = "", *calls: ToolUse, thinking: str = "") -> Message:
    """A message of the model: what it thought, its text and its calls, each only if there is any."""
    content: list[Block] = [Thinking(text=thinking, signature=f"signed:{thinking}")] if thinking else []
    content += [Text(text=text)] if text else []
    return Message(role="assistant", content=[*content, *calls])


def call(name: str, /, **input: Any) -> ToolUse:
    """A call of the tool `name`. Its id is left to who records it; the provider makes up its own."""
    return ToolUse(id="", name=name, input=input)


class ScriptedProvider:
    """A `Provider` whose replies are a script, one for each request.

    - `script` holds a `Reply` for each request, or a function of the request that makes one.
    - `respond` answers the requests that come after the script.
    - `requests` are those that came.

    Like a real one it streams each reply in pieces, counts tokens, and refuses a request that is not sound
    (`request_fault`) or changes thinking it signed. A refusal, and a request too many, is a `ScriptError`:
    it fails the test, whatever the task makes of failures. End a test with `assert_done()`, which also tells
    of one that got lost.
    """

    def __init__(self, script: Iterable[Reply | Respond] = (), *, respond: Respond | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self.closed: bool = False
        self._script = list(script)
        self._respond = respond
        self._signed: dict[str, Thinking] = {}
        self._fault = ""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta | ModelResponse]:
        """The pieces of the next reply and then the reply. Raises `ScriptError`, or what the script says."""
        response = await self.complete(request)
        for index, block in enumerate(response.message.content):
            for piece in _pieces(block, index):
                await anyio.lowlevel.checkpoint()
                yield piece
        await anyio.lowlevel.checkpoint()
        yield response

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The next reply without its pieces: what `TaskView.complete` may be in a test."""
        await anyio.lowlevel.checkpoint()
        try:
            step = self._step(request)
            if inspect.isawaitable(step):
                step = await step
        except ProviderError:
            raise
        except Exception as error:
            self._fail(f"The reply to request {len(self.requests)} could not be made. {told(error)}")
        number = len(self.requests)
        if isinstance(step, ProviderError):
            raise step
        if isinstance(step, str | ToolUse):
            step = reply(step) if isinstance(step, str) else reply("", step)
        if isinstance(step, Message):
            step = ModelResponse(message=step, stop_reason="tool_use" if step.calls else "end_turn")
        if not isinstance(step, ModelResponse):
            self._fail(f"The reply to request {number} is a {type(step).__name__}, which no model says.")
        if (role := step.message.role) != "assistant":
            self._fail(f"The reply to request {number} is of role {role!r}, which is not the model's.")
        response = _complete(step, request, number)
        self._signed |= {
            block.signature: block
            for block in response.message.content
            if isinstance(block, Thinking) and block.signature
        }
        return response

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """A quarter of the characters of the encoded request, the same on every machine."""
        return _tokens(request)

    def model_info(self, model: str) -> ModelInfo:
        """A model with a large window that can do everything, and costs nothing."""
        features = frozenset({"tools", "images", "thinking", "deferred"})
        return ModelInfo(window=200_000, max_output=32_000, features=features)

    async def aclose(self) -> None:
        """Close."""
        self.closed = True

    def assert_done(self) -> None:
        """Raise AssertionError unless the script was played to its end and every request was sound."""
        if self._fault:
            raise AssertionError(self._fault)
        if left := len(self._script):
            raise AssertionError(
                f"The script has {left} more {'reply' if left == 1 else 'replies'}, the first is"
                f" {self._script[0]!r}. The task asked {len(self.requests)} times."
            )

    def _step(self, request: ModelRequest) -> Any:
        """What the script says to `request`, which is kept."""
        self.requests.append(request)
        number = len(self.requests)
        if self.closed:
            self._fail(f"Request {number} came after the provider was closed.")
        if fault := request_fault(request) or self._changed(request):
            self._fail(f"Request {number} would be refused. {fault}")
        if not self._script and self._respond is None:
            self._fail(f"The script has no reply for request {number}. Add one, or give `respond`.")
        step: Any = self._script.pop(0) if self._script else self._respond
        return step(request) if callable(step) else step

    def _changed(self, request: ModelRequest) -> str:
        for i, message in enumerate(request.messages):
            for block in message.content:
                if isinstance(block, Thinking) and self._signed.get(block.signature, block) != block:
                    return f"Message {i} has thinking that is not what was signed."
        return ""

    def _fail(self, fault: str) -> NoReturn:
        self._fault = self._fault or fault
        raise ScriptError(fault)


def _complete(step: ModelResponse, request: ModelRequest, number: int) -> ModelResponse:
    """`step` with all that a vendor would have added."""
    content: list[Block] = [
        msgspec.structs.replace(block, provider_id=block.provider_id or f"call_{number}_{i}")
        if isinstance(block, ToolUse)
        else block
        for i, block in enumerate(step.message.content)
    ]
    message = msgspec.structs.replace(step.message, content=content)
    usage = Usage(uncached=_tokens(request), output=-(-len(msgspec.json.encode(content)) // 4))
    return msgspec.structs.replace(
        step,
        message=message,
        usage=step.usage if step.usage != Usage() else usage,
        model=step.model or request.model,
        request_id=step.request_id or f"request_{number}",
    )


def _pieces(block: Block, index: int) -> list[Delta]:
    match block:
        case Text(text=text):
            return [Delta(kind="text", index=index, text=piece) for piece in _cut(text)]
        case Thinking(text=text):
            return [Delta(kind="thinking", index=index, text=piece) for piece in _cut(text)]
        case ToolUse(name=name, input=input):
            # As vendors do it: the name alone first, then the JSON of the input.
            pieces = ["", *_cut(json.dumps(input))]
            return [Delta(kind="tool", index=index, name=name, text=piece) for piece in pieces]
    return []


def _cut(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]


def _tokens(request: ModelRequest) -> int:
    parts = (request.system, list(request.messages), list(request.tools))
    return -(-len(msgspec.json.encode(parts)) // 4)
