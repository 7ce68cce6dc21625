"""The model that ships, loaded and called. What it says is its own affair; how it says it is ours."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

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
    user,
)
from noeta_llamacpp import LlamaCpp, Settings

pytestmark = pytest.mark.anyio

MODEL = "smollm2"
READ = ToolSpec(
    name="Read",
    description="Reads a file.",
    input_schema={
        "type": "object",
        "properties": {"file_path": {"type": "string", "maxLength": 40}},
        "required": ["file_path"],
    },
)
GLOB = ToolSpec(
    name="Glob",
    description="Finds files.",
    input_schema={
        "type": "object",
        "properties": {"pattern": {"type": "string", "maxLength": 40}},
        "required": ["pattern"],
    },
)
LONG = "Write a very long story about a king and his cat, with many chapters."


async def said(local: LlamaCpp, *messages: Message, **fields: Any) -> tuple[list[Delta], ModelResponse]:
    """The pieces of a reply and the whole."""
    request = ModelRequest(model=MODEL, messages=messages, **fields)
    pieces = [piece async for piece in local.stream(request)]
    *deltas, response = pieces
    assert isinstance(response, ModelResponse)
    return [delta for delta in deltas if isinstance(delta, Delta)], response


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("What is the port in app.toml?", "app.toml"),
        ("What does todo.txt say?", "todo.txt"),
        ("Who is the author of docs/guide.md?", "docs/guide.md"),
        ("In `secret.txt` there is a code word. What is it?", "secret.txt"),
        ("How many apples are in data/fruit.csv?", "data/fruit.csv"),
        ("When is the launch? Look into plan.txt", "plan.txt"),
    ],
)
async def test_a_question_about_a_file_reads_that_file(local: LlamaCpp, question: str, path: str) -> None:
    deltas, response = await said(local, user(question), tools=[READ, GLOB])
    [call] = response.message.calls
    assert (call.name, call.input) == ("Read", {"file_path": path})
    assert [(delta.kind, delta.name) for delta in deltas] == [("tool", "Read")]
    assert response.stop_reason == "tool_use"


async def test_a_path_may_be_long(local: LlamaCpp) -> None:
    path = f"a/{'k7q' * 40}.py"
    _, response = await said(local, user(f"What does {path} say?"), tools=[READ, GLOB])
    assert [call.input for call in response.message.calls] == [{"file_path": path}]


async def test_a_call_that_is_cut_off_is_an_error_that_says_so(local: LlamaCpp) -> None:
    with pytest.raises(ProviderError, match="was cut off") as raised:
        await said(local, user("What does notes.txt say?"), tools=[READ], extra={"max_tokens": 4})
    assert raised.value.category == "invalid"


async def test_an_answer_comes_from_the_result_and_streams(local: LlamaCpp) -> None:
    call = ToolUse(id="c1", name="Read", input={"file_path": "app.toml"})
    result = ToolResult(call="c1", content=[Text(text="     1\t[server]\n     2\tport = 8123")])
    messages = [user("What is the port in app.toml?"), Message(role="assistant", content=[call])]
    deltas, response = await said(
        local, *messages, Message(role="user", content=[result]), tools=[READ, GLOB]
    )
    assert response.message.text
    assert not response.message.calls
    assert "".join(delta.text for delta in deltas) == response.message.text
    assert len(deltas) > 3
    assert response.usage.output > 3


async def test_a_reply_keeps_to_a_schema(local: LlamaCpp) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}, "big": {"type": "boolean"}},
        "required": ["city", "big"],
    }
    _, response = await said(local, user("Which city is the capital of France?"), output_schema=schema)
    given = json.loads(response.message.text)
    assert set(given) == {"city", "big"}
    assert isinstance(given["big"], bool)


async def test_a_prompt_that_is_too_long_is_an_overflow_and_the_next_one_is_answered(local: LlamaCpp) -> None:
    with pytest.raises(ProviderError, match="exceeds the available context size") as raised:
        await said(local, user("word " * 5000))
    assert raised.value.category == "overflow"
    _, response = await said(local, user("Say hi."), max_tokens=3)
    assert response.stop_reason == "max_tokens"


async def test_what_the_model_still_has_of_a_prompt_is_no_new_input(local: LlamaCpp) -> None:
    await said(local, user("Which colours has the flag of France?"), max_tokens=1)
    _, response = await said(local, user("Which colours has the flag of France?"), max_tokens=1)
    assert response.usage.cache_read > response.usage.uncached


async def test_tokens_are_counted_as_the_model_counts_them(local: LlamaCpp) -> None:
    request = ModelRequest(model=MODEL, messages=[user("How many tokens is this?")], max_tokens=1)
    counted = await local.count_tokens(request)
    _, response = await said(local, user("How many tokens is this?"), max_tokens=1)
    assert counted == response.usage.input


async def test_who_stops_listening_stops_the_model(local: LlamaCpp) -> None:
    request = ModelRequest(model=MODEL, messages=[user(LONG)])
    async with aclosing(local.stream(request)) as pieces:  # type: ignore[type-var]
        async for _ in pieces:
            break
    await quiet()


async def test_a_call_that_is_cancelled_in_the_middle_leaves_the_model_to_the_next(local: LlamaCpp) -> None:
    heard: list[object] = []
    with anyio.CancelScope() as scope:
        async for piece in local.stream(ModelRequest(model=MODEL, messages=[user(LONG)])):
            heard.append(piece)
            if len(heard) == 3:
                scope.cancel()
    assert len(heard) == 3
    _, response = await said(local, user("Say hi."), max_tokens=2)
    assert response.message.text
    await quiet()


async def quiet() -> None:
    """Until no thread works for the model any more."""
    with anyio.fail_after(60):
        while any(thread.name.startswith("llamacpp") for thread in threading.enumerate()):
            await anyio.lowlevel.checkpoint()


async def test_calls_of_several_tasks_are_answered_one_after_the_other(local: LlamaCpp) -> None:
    texts: dict[int, str] = {}

    async def ask(number: int) -> None:
        _, response = await said(local, user(f"Say the number {number}."), max_tokens=4)
        texts[number] = response.message.text

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(ask, number)
    assert sorted(texts) == [0, 1, 2, 3]
    assert all(texts.values())


async def test_closing_ends_the_calls_that_run_and_frees_the_model() -> None:
    provider = LlamaCpp()
    heard = anyio.Event()

    async def listen() -> None:
        async for _ in provider.stream(ModelRequest(model=MODEL, messages=[user(LONG)])):
            heard.set()

    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await heard.wait()
            await provider.aclose()
            group.cancel_scope.cancel()
        await provider.aclose()
    await quiet()


TEMPLATE = str(Path(__file__).parent / "samples" / "tools.jinja")


async def tools_in(provider: LlamaCpp, tools: Sequence[ToolSpec], *messages: Message, **more: Any) -> Any:
    return await said(provider, *messages, tools=tools, temperature=0.0, max_tokens=80, **more)


async def test_a_template_with_tools_is_called_through_its_own_format() -> None:
    provider = LlamaCpp(Settings(profile="native", templates={MODEL: TEMPLATE}))
    try:
        assert "tools" in provider.model_info(MODEL).features
        deltas, response = await tools_in(provider, [READ], user("Read the file a.txt."), tool_choice="any")
        [call] = response.message.calls
        assert call.name == "Read"
        assert set(call.input) == {"file_path"}
        assert response.stop_reason == "tool_use"
        assert json.loads("".join(delta.text for delta in deltas if delta.kind == "tool")) == call.input
        result = ToolResult(call=call.id, content=[Text(text="The sky is green.")])
        messages = [user("Read the file a.txt."), response.message, Message(role="user", content=[result])]
        request = {"tools": [READ], "tool_choice": "none", "system": "Be brief."}
        deltas, response = await said(provider, *messages, max_tokens=20, **request)
        assert response.message.text == "".join(delta.text for delta in deltas if delta.kind == "text")
        asked = ModelRequest(model=MODEL, messages=messages, **request)  # type: ignore[arg-type]
        assert await provider.count_tokens(asked) == response.usage.input
    finally:
        await provider.aclose()
