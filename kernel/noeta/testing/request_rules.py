"""What model APIs ask of a request, as one strict check. A real API would answer with an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from noeta.core.messages import Block, Image, Message, Text, Thinking, ToolReference, ToolResult, ToolUse
from noeta.core.ports import ModelRequest, ToolSpec

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What a tool and a call may be named."""
ROLES = ("user", "assistant", "system")


def request_fault(request: ModelRequest) -> str | None:
    """What is wrong with `request`, in a sentence; None when a model can be called with it.

    - Calls and results are paired: right behind a message with calls stand the results of all of them, and
      nowhere else. Ids are legal, and none is used twice.
    - The first message is the user's, the last is not the model's, and no message and no text is empty.
    - Tools have legal names of their own, a description, and a schema of an object.
    - What the parameters name is there. Every field is of its type, and all text can be encoded.
    """
    if why := _unlike(request):
        return why
    faults = chain(
        _in_messages(request.messages),
        _in_pairs(request.messages),
        _in_tools(request.tools),
        _in_parameters(request),
    )
    return next(faults, None)


def _in_messages(messages: Sequence[Message]) -> Iterator[str]:
    if not messages:
        yield "The request has no message."
        return
    if messages[0].role != "user":
        yield f"The first message is of role {messages[0].role!r}, not 'user'."
    for i, message in enumerate(messages):
        if message.role not in ROLES:
            yield f"Message {i} is of role {message.role!r}, which no model knows."
        if not message.content:
            yield f"Message {i} is empty."
        for block in message.content:
            yield from _in_block(f"Message {i}", message.role, block)
    if messages[-1].role == "assistant":
        yield "The last message is the model's own, so there is nothing to reply to."


def _in_block(place: str, role: str, block: Block) -> Iterator[str]:
    match block:
        case Text(text=text) if not text.strip():
            yield f"{place} has an empty text."
        case Image(media_type=media_type, blob=blob, data=data) if not media_type or not (blob or data):
            yield f"{place} has an image without a type or without bytes."
        case ToolUse() if role != "assistant":
            yield f"{place} has a call, and is of role {role!r}."
        case Thinking() if role != "assistant":
            yield f"{place} has thinking, and is of role {role!r}."
        case ToolResult() if role != "user":
            yield f"{place} has a result, and is of role {role!r}."
        case ToolUse(name=name) | ToolReference(name=name) if not LEGAL.fullmatch(name):
            yield f"{place} names a tool {name!r}; names are 1 to 64 letters, digits, _ and -."
        case ToolUse(id=id) if not LEGAL.fullmatch(id):
            yield f"{place} has a call with the id {id!r}; ids are 1 to 64 letters, digits, _ and -."
        case ToolResult(call=call, content=content):
            for inner in content:
                yield from _in_block(f"The result of {call!r}", role, inner)


def _in_pairs(messages: Sequence[Message]) -> Iterator[str]:
    """Walk over all blocks. What `waiting` holds must come before anything else does."""
    seen: set[str] = set()
    waiting: list[str] = []
    for i, message in enumerate(messages):
        for block in message.content:
            if isinstance(block, ToolResult):
                if block.call not in waiting:
                    why = "has one already" if block.call in seen else "is not in the reply before it"
                    yield f"Message {i} has a result of call {block.call!r}, which {why}."
                else:
                    waiting.remove(block.call)
            elif waiting and message.role != "assistant":
                yield f"Message {i} stands between call {waiting[0]!r} and its result."
                return
        if waiting and message.role == "assistant":
            yield f"Message {i} stands between call {waiting[0]!r} and its result."
            return
        for call in message.calls:
            if call.id in seen:
                yield f"Message {i} has a second call with the id {call.id!r}."
            seen.add(call.id)
            waiting.append(call.id)
    if waiting:
        yield f"Call {waiting[0]!r} has no result."


def _in_tools(tools: Sequence[ToolSpec]) -> Iterator[str]:
    seen: set[str] = set()
    for tool in tools:
        if not tool.name and tool.extra:
            continue
        if not LEGAL.fullmatch(tool.name):
            yield f"A tool is named {tool.name!r}; names are 1 to 64 letters, digits, _ and -."
        if tool.name in seen:
            yield f"Two tools are named {tool.name!r}."
        if not tool.description.strip():
            yield f"Tool {tool.name!r} has no description."
        if tool.input_schema.get("type") != "object":
            yield f"The schema of tool {tool.name!r} is not that of an object."
        seen.add(tool.name)


def _in_parameters(request: ModelRequest) -> Iterator[str]:
    names = {tool.name for tool in request.tools if tool.name}
    if not request.model:
        yield "The request names no model."
    if request.tool_choice not in ("auto", "none", "any", *names):
        yield f"The tool choice is {request.tool_choice!r}, and there is no such tool."
    if request.tool_choice == "any" and not names:
        yield "The tool choice is 'any', and there is no tool."
    if request.max_tokens is not None and request.max_tokens < 1:
        yield f"The reply may have {request.max_tokens} tokens."
    if outside := [at for at in request.cache_at if not 0 <= at < len(request.messages)]:
        yield f"The prompt is to be cached behind message {outside[0]}, which is not there."


def _unlike(request: ModelRequest) -> str | None:
    """Why the request does not come back from JSON as a request."""
    try:
        # `messages` may be a sequence that decodes as it is read, which the encoder does not know.
        whole = msgspec.structs.replace(request, messages=list(request.messages))
        msgspec.json.decode(msgspec.json.encode(whole), type=ModelRequest)
    except (TypeError, ValueError, RecursionError) as error:
        return f"The request cannot be encoded: {error}."
    return None
