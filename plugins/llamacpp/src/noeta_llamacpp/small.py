"""Making a tiny model act: worked examples, a grammar, and fresh short prompts.

A model of a hundred million weights does not follow the description of a tool, and gets lost in a long
conversation. What it can do is to go on with a pattern. So it sees a few examples as turns of a chat, a
grammar lets it name only a tool and words of the person's message, and its answer is asked for with a prompt
that holds nothing but the result and the question.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from noeta.toolkit.provider import (
    Delta,
    Message,
    ModelRequest,
    ModelResponse,
    ProviderError,
    Text,
    ToolResult,
    ToolSpec,
    ToolUse,
)
from noeta_llamacpp.chat import plain
from noeta_llamacpp.engine import Engine
from noeta_llamacpp.replies import closed, stop_reason, usage_of

MAX_TOOLS = 2
ANSWER_TOKENS = 60
"""How long an answer about a result may be. What a tiny model says behind that is repetition."""
CHAT_TOKENS = 200
CALL_TOKENS = 80
"""How long a call may be besides its value."""
RESULT_CHARS = 3_000
EVERYTHING = "**/*"
PATH = re.compile(r"[\w-][./*\\]\S|\*")
"""What makes a word look like a path or a pattern."""
FILES = re.compile(r"\b(files?|folders?|director(y|ies))\b", re.IGNORECASE)
NUMBERED = re.compile(r"^\s*\d+[\t→|:]", re.MULTILINE)
"""The number at the head of a line, which a tiny model takes for a part of the text."""


class Example(NamedTuple):
    """A message and the call that is right for it."""

    said: str
    tool: str
    argument: str
    value: str


EXAMPLES = (
    Example("What does notes.txt say?", "Read", "file_path", "notes.txt"),
    Example("Which files are there?", "Glob", "pattern", EVERYTHING),
    Example("Tell me the port in config/server.toml, please.", "Read", "file_path", "config/server.toml"),
    Example("Show me the names of all files in this folder.", "Glob", "pattern", EVERYTHING),
    Example("Who wrote README.md?", "Read", "file_path", "README.md"),
)


class Prompt(NamedTuple):
    """What is sent: a prompt, the rest of its body, and whether the reply is a call."""

    text: str
    body: dict[str, Any]
    calls: bool = False


def prompt_of(request: ModelRequest) -> Prompt:
    """The prompt that stands for a request: one that calls a tool, answers from a result, or only talks."""
    messages = list(request.messages)
    asked = _question(messages)
    results = _results(messages, asked)
    question = plain(messages[asked].content) if asked is not None else ""
    limit = request.max_tokens
    sampling = {"temperature": 0.0 if request.temperature is None else request.temperature}
    if request.output_schema is not None:
        said = "\n\n".join([*results, question])
        schema = {"json_schema": closed(request.output_schema)}
        return Prompt(_turn("user", said) + _open(), sampling | schema | {"max_tokens": limit or CHAT_TOKENS})
    if results:
        said = "\n\n".join([*results, question])
        body = {"max_tokens": min(limit or ANSWER_TOKENS, ANSWER_TOKENS), "stop": ["\n\n"]}
        return Prompt(_turn("user", said) + _open(), sampling | body)
    tools = [tool for tool in request.tools if tool.name][:MAX_TOOLS]
    if request.tool_choice != "none" and (grammar := _grammar(tools, question, request.tool_choice)):
        names = {tool.name for tool in tools}
        shown = [example for example in EXAMPLES if example.tool in names]
        turns = [
            _turn("user", e.said) + _turn("assistant", f"{e.tool} {json.dumps({e.argument: e.value})}")
            for e in shown
        ]
        text = "".join(turns) + _turn("user", question) + _open()
        # No value is longer than the message, and no token shorter than a character of its JSON.
        limit = CALL_TOKENS + len(json.dumps(question))
        return Prompt(text, sampling | {"grammar": grammar, "max_tokens": limit}, calls=True)
    turns = [_turn(message.role, plain(message.content)) for message in messages[-4:] if message.text.strip()]
    body = {"max_tokens": min(limit or CHAT_TOKENS, CHAT_TOKENS), "stop": ["\n\n\n"]}
    return Prompt("".join(turns) + _open(), sampling | body)


async def reply(engine: Engine, request: ModelRequest) -> AsyncGenerator[Delta | ModelResponse, None]:
    """The reply and its pieces. Raises `ProviderError`."""
    prompt, text, finish = prompt_of(request), "", ""
    last: dict[str, Any] = {}
    async with aclosing(engine.complete({"prompt": prompt.text, **prompt.body, **request.extra})) as chunks:
        async for chunk in chunks:
            last = chunk if chunk.get("usage") else last
            for choice in chunk.get("choices", ()):
                finish = choice.get("finish_reason") or finish
                # It opens with line breaks now and then, and they mean nothing.
                piece = choice.get("text") or ""
                piece = piece if text else piece.lstrip()
                text += piece
                if piece and not prompt.calls:
                    yield Delta(kind="text", text=piece)
    if not prompt.calls:
        said = Message(role="assistant", content=[Text(text=text)] if text else [])
        yield ModelResponse(message=said, stop_reason=stop_reason(finish), usage=usage_of(last))
        return
    name, _, given = text.partition(" ")
    yield Delta(kind="tool", name=name, text=given)
    try:
        call = ToolUse(id="", name=name, input=json.loads(given))
    except ValueError as error:
        # The grammar lets nothing else through, up to what a limit of tokens cuts off.
        raise ProviderError("invalid", f"the call of {name!r} was cut off: {text!r}") from error
    yield ModelResponse(
        message=Message(role="assistant", content=[call]), stop_reason="tool_use", usage=usage_of(last)
    )


def _question(messages: Sequence[Message]) -> int | None:
    """Where the person's last message is, None when there is none."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role == "user" and not message.origin and message.text.strip():
            return place
    return None


def _results(messages: Sequence[Message], asked: int | None) -> list[str]:
    """What the calls since the question gave, short enough for a tiny window."""
    later = messages[asked + 1 :] if asked is not None else messages
    found = [block for message in later for block in message.content if isinstance(block, ToolResult)]
    texts = [NUMBERED.sub("", plain(result.content)).strip() for result in found]
    return [text[:RESULT_CHARS] for text in texts if text][-2:]


def _grammar(tools: Sequence[ToolSpec], question: str, choice: str) -> str:
    """The grammar of the calls that may be right for a question; the empty text when none is wanted."""
    chosen = [tool for tool in tools if choice in ("auto", "any", tool.name)]
    words = [word.strip("'\"`.,;:!?()[]<>") for word in question.split()]
    paths = list(dict.fromkeys(word for word in words if PATH.search(word)))
    if not paths and not FILES.search(question) and choice == "auto":
        return ""
    calls = []
    for tool in chosen:
        argument = _argument(tool)
        values = [*paths, *([EVERYTHING] if argument == "pattern" else [])]
        if not argument or not values:
            continue
        head = f"{tool.name} {{{json.dumps(argument)}: "
        either = " | ".join(_literal(json.dumps(value)) for value in values)
        calls.append(f'{_literal(head)} ({either}) "}}"')
    return f"root ::= {' | '.join(calls)}\n" if calls else ""


def _argument(tool: ToolSpec) -> str:
    """The argument that a call of the tool cannot do without, if it is one text."""
    properties = tool.input_schema.get("properties", {})
    wanted = tool.input_schema.get("required", ())
    texts = [name for name in wanted if properties.get(name, {}).get("type") == "string"]
    return texts[0] if len(texts) == len(wanted) == 1 else ""


def _literal(text: str) -> str:
    """A text as a grammar of llama.cpp writes it."""
    return json.dumps(text, ensure_ascii=False)


def _turn(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _open() -> str:
    return "<|im_start|>assistant\n"
