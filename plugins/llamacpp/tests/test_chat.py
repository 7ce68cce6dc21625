"""Requests in the server's format, and replies out of its chunks."""

from __future__ import annotations

from typing import Any

import pytest

from noeta.toolkit.provider import (
    Delta,
    Image,
    Message,
    ModelRequest,
    ProviderError,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolSpec,
    ToolUse,
    Usage,
    user,
)
from noeta_llamacpp.chat import _Reply, body_of
from noeta_llamacpp.replies import closed

READ = ToolSpec(name="Read", description="Reads.", input_schema={"type": "object"})
GLOB = ToolSpec(name="Glob", description="Finds.", input_schema={"type": "object"})


def body(*messages: Message, **fields: Any) -> dict[str, Any]:
    return body_of(ModelRequest(model="m", messages=messages, **fields))


def test_a_conversation_with_calls_keeps_each_result_behind_its_call() -> None:
    call = ToolUse(id="c1", name="Read", input={"file_path": "a"})
    given = ToolResult(call="c1", content=[Text(text="one"), ToolReference(name="Grep")])
    thought = Thinking(text="hm")
    messages = [user("Go."), Message(role="assistant", content=[thought, Text(text="I read."), call])]
    made = body(*messages, Message(role="user", content=[given]), system="Be brief.")["messages"]
    function = {"name": "Read", "arguments": '{"file_path": "a"}'}
    assert made == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": "I read.",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "one\nThe tool Grep is there now."},
    ]


def test_an_image_is_named_and_not_passed_over_in_silence() -> None:
    image = Message(role="user", content=[Text(text="See:"), Image(media_type="image/png", blob="ab")])
    assert body(image)["messages"][0]["content"] == "See:\n[An image, which this model cannot see.]"


@pytest.mark.parametrize(
    ("choice", "tools", "sent"),
    [
        ("auto", ["Read", "Glob"], "auto"),
        ("none", ["Read", "Glob"], "none"),
        ("any", ["Read", "Glob"], "required"),
        ("Glob", ["Glob"], "required"),
    ],
)
def test_a_choice_of_tools_is_put_in_the_servers_words(choice: str, tools: list[str], sent: str) -> None:
    made = body(user("Go."), tools=[READ, GLOB], tool_choice=choice)
    assert [tool["function"]["name"] for tool in made["tools"]] == tools
    assert made["tool_choice"] == sent


def test_limits_and_a_vendors_own_fields_go_along() -> None:
    made = body(user("Go."), max_tokens=5, temperature=0.0, extra={"seed": 7})
    assert (made["max_tokens"], made["temperature"], made["seed"]) == (5, 0.0, 7)
    assert "max_tokens" not in body(user("Go."))


def test_a_schema_is_closed_where_it_is_silent() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string"}}}
    schema = {"type": "object", "properties": {"a": inner, "c": {"type": "array", "items": inner}}}
    made = closed(schema)
    assert made["additionalProperties"] is False
    assert made["properties"]["a"]["additionalProperties"] is False
    assert made["properties"]["c"]["items"]["additionalProperties"] is False
    assert closed({"type": "object", "properties": {}, "additionalProperties": True}) == {
        "type": "object",
        "properties": {},
        "additionalProperties": True,
    }


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(index: int, **function: str) -> dict[str, Any]:
    return {"index": index, "id": f"x{index}" if "name" in function else None, "function": function}


def test_a_reply_is_put_together_from_its_pieces() -> None:
    reply = _Reply()
    chunks = [
        chunk(role="assistant", content=None),
        chunk(reasoning_content="Let me see."),
        chunk(content="I "),
        chunk(content="read."),
        chunk(tool_calls=[called(0, name="Read", arguments="")]),
        chunk(tool_calls=[called(0, arguments='{"a":')]),
        chunk(tool_calls=[called(0, arguments="1}")]),
        chunk(tool_calls=[called(1, name="Glob", arguments="{}")]),
        chunk("tool_calls"),
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 30,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 20},
            },
        },
    ]
    deltas = [delta for piece in chunks for delta in reply.pieces(piece)]
    assert deltas[:3] == [
        Delta(kind="thinking", index=0, text="Let me see."),
        Delta(kind="text", index=1, text="I "),
        Delta(kind="text", index=1, text="read."),
    ]
    assert [(d.index, d.name, d.text) for d in deltas[3:]] == [
        (2, "Read", ""),
        (2, "Read", '{"a":'),
        (2, "Read", "1}"),
        (3, "Glob", "{}"),
    ]
    response = reply.response()
    assert response.message.content == [
        Thinking(text="Let me see."),
        Text(text="I read."),
        ToolUse(id="x0", name="Read", input={"a": 1}),
        ToolUse(id="x1", name="Glob", input={}),
    ]
    assert response.stop_reason == "tool_use"
    assert response.usage == Usage(uncached=10, cache_read=20, output=9)


@pytest.mark.parametrize(
    ("finish", "why"), [("length", "allow it more tokens"), ("tool_calls", "is no JSON")]
)
def test_half_a_call_is_an_error_and_never_a_record(finish: str, why: str) -> None:
    reply = _Reply()
    list(reply.pieces(chunk(finish, tool_calls=[called(0, name="Read", arguments='{"a":')])))
    with pytest.raises(ProviderError, match=why):
        reply.response()
