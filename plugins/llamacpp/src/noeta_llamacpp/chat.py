"""Calling a model through its own chat template, with the tool format that this has."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from noeta.toolkit.provider import (
    Block,
    Delta,
    Image,
    Message,
    ModelRequest,
    ModelResponse,
    ProviderError,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from noeta_llamacpp.engine import Engine
from noeta_llamacpp.replies import closed, stop_reason, usage_of


def body_of(request: ModelRequest) -> dict[str, Any]:
    """The body of a chat completion, in the format that llama.cpp shares with other servers."""
    messages = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        messages += _messages(message)
    body: dict[str, Any] = {"messages": messages, "stream_options": {"include_usage": True}}
    tools, choice = [tool for tool in request.tools if tool.name], request.tool_choice
    if choice not in ("auto", "none", "any"):
        # llama.cpp takes no name here, so a list of one tool has to do.
        tools, choice = [tool for tool in tools if tool.name == choice], "any"
    if tools:
        body["tools"] = [{"type": "function", "function": _function(tool)} for tool in tools]
        body["tool_choice"] = "required" if choice == "any" else choice
    if request.output_schema is not None:
        schema = {"name": "reply", "schema": closed(request.output_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    given = {"max_tokens": request.max_tokens, "temperature": request.temperature}
    return body | {name: value for name, value in given.items() if value is not None} | dict(request.extra)


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}


async def chat(engine: Engine, request: ModelRequest) -> AsyncGenerator[Delta | ModelResponse, None]:
    """The reply and its pieces. Raises `ProviderError`."""
    reply = _Reply()
    async with aclosing(engine.chat(body_of(request))) as chunks:
        async for chunk in chunks:
            for delta in reply.pieces(chunk):
                yield delta
    yield reply.response()


class _Reply:
    """A reply that is put together from its chunks: thoughts, a text, calls."""

    def __init__(self) -> None:
        self._thoughts = self._text = ""
        self._calls: dict[int, dict[str, str]] = {}
        self._finish = ""
        self._last: dict[str, Any] = {}

    def pieces(self, chunk: dict[str, Any]) -> Iterator[Delta]:
        """What a chunk adds."""
        if chunk.get("usage"):
            self._last = chunk
        for choice in chunk.get("choices", ()):
            self._finish = choice.get("finish_reason") or self._finish
            delta = choice.get("delta", {})
            if thought := delta.get("reasoning_content"):
                self._thoughts += thought
                yield Delta(kind="thinking", index=0, text=thought)
            ahead = 1 if self._thoughts else 0
            if text := delta.get("content"):
                self._text += text
                yield Delta(kind="text", index=ahead, text=text)
            ahead += 1 if self._text else 0
            for piece in delta.get("tool_calls") or ():
                place = piece.get("index", 0)
                call = self._calls.setdefault(place, {"id": "", "name": "", "arguments": ""})
                function = piece.get("function", {})
                call["id"] += piece.get("id") or ""
                call["name"] += function.get("name") or ""
                more = function.get("arguments") or ""
                call["arguments"] += more
                yield Delta(kind="tool", index=ahead + place, text=more, name=call["name"])

    def response(self) -> ModelResponse:
        """The whole. Raises `ProviderError` for a call that was cut off."""
        content: list[Block] = []
        if self._thoughts:
            content.append(Thinking(text=self._thoughts))
        if self._text:
            content.append(Text(text=self._text))
        for _, call in sorted(self._calls.items()):
            content.append(ToolUse(id=call["id"], name=call["name"], input=self._input(call)))
        return ModelResponse(
            message=Message(role="assistant", content=content),
            stop_reason="tool_use" if self._calls else stop_reason(self._finish),
            usage=usage_of(self._last),
        )

    def _input(self, call: dict[str, str]) -> dict[str, Any]:
        try:
            given = json.loads(call["arguments"] or "{}")
        except ValueError as error:
            if self._finish == "length":
                why = f"the reply was cut in the middle of a call of {call['name']!r}: allow it more tokens"
            else:
                why = f"the input of a call of {call['name']!r} is no JSON"
            raise ProviderError("invalid", why) from error
        return given if isinstance(given, dict) else {"input": given}


def _messages(message: Message) -> list[dict[str, Any]]:
    """One message in the server's format, where each result is one of its own."""
    results = [block for block in message.content if isinstance(block, ToolResult)]
    made: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": result.call, "content": plain(result.content)} for result in results
    ]
    rest = [block for block in message.content if not isinstance(block, ToolResult)]
    calls = [
        {
            "id": block.id,
            "type": "function",
            "function": {"name": block.name, "arguments": json.dumps(block.input)},
        }
        for block in rest
        if isinstance(block, ToolUse)
    ]
    said = plain(rest)
    if said or calls:
        made.append({"role": message.role, "content": said} | ({"tool_calls": calls} if calls else {}))
    return made


def plain(blocks: Sequence[object]) -> str:
    """Blocks as text."""
    return "\n".join(text for block in blocks if (text := _plain(block)))


def _plain(block: object) -> str:
    match block:
        case Text(text=text):
            return text
        case ToolReference(name=name):
            return f"The tool {name} is there now."
        case Image():
            return "[An image, which this model cannot see.]"
    return ""
