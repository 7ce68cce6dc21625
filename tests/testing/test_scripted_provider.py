"""The scripted provider plays its script like a real model, and fails the test when the task strays."""

from __future__ import annotations

import re
from contextlib import suppress

import anyio
import pytest
from hypothesis import given

from noeta.core.codec import Line
from noeta.core.errors import ProviderError
from noeta.core.messages import (
    Block,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
    decode_message,
    user,
)
from noeta.core.ports import Delta, ModelRequest, ModelResponse, ToolSpec
from noeta.testing import LogWriter, ScriptedProvider, ScriptError, call, reply, request_fault
from noeta.testing.logs import logs
from noeta.toolkit.provider import Provider

ASK = ModelRequest(model="m", messages=[user("hello")])
TOOL = ToolSpec(name="read", description="Read.", input_schema={"type": "object"})


def assistant(*content: Block) -> Message:
    return Message(role="assistant", content=list(content))


def use(id: str) -> ToolUse:
    return ToolUse(id=id, name="read", input={})


def result(call: str, text: str = "ok") -> Message:
    return Message(role="user", content=[ToolResult(call=call, content=[Text(text=text)])])


async def played(provider: ScriptedProvider, request: ModelRequest = ASK) -> list[Delta | ModelResponse]:
    return [piece async for piece in provider.stream(request)]


@pytest.mark.anyio
async def test_each_request_gets_the_next_reply_and_is_kept() -> None:
    provider: Provider = (scripted := ScriptedProvider(["one", "two"]))
    other = ModelRequest(model="n", messages=[user("again")])
    first = [piece async for piece in provider.stream(ASK)][-1]
    second = [piece async for piece in provider.stream(other)][-1]
    assert isinstance(first, ModelResponse)
    assert isinstance(second, ModelResponse)
    assert (first.message.text, second.message.text) == ("one", "two")
    assert (second.model, second.request_id) == ("n", "request_2")
    assert scripted.requests == [ASK, other]
    scripted.assert_done()


@pytest.mark.parametrize(
    ("step", "text", "stop_reason"),
    [
        ("hi", "hi", "end_turn"),
        (reply("hi"), "hi", "end_turn"),
        (reply("hi", call("read")), "hi", "tool_use"),
        (call("read", path="a"), "", "tool_use"),
        (ModelResponse(message=reply("hi"), stop_reason="max_tokens"), "hi", "max_tokens"),
        (lambda request: request.messages[-1].text.upper(), "HELLO", "end_turn"),
    ],
)
@pytest.mark.anyio
async def test_a_step_may_have_any_of_these_forms(step: object, text: str, stop_reason: str) -> None:
    response = await ScriptedProvider([step]).complete(ASK)  # type: ignore[list-item]
    assert (response.message.text, response.stop_reason) == (text, stop_reason)


@pytest.mark.anyio
async def test_the_pieces_of_a_stream_are_those_of_the_response_that_ends_it() -> None:
    said = reply("I look into it now.", call("read", path="a/long/path"), thinking="where is it, I wonder")
    *pieces, response = await played(ScriptedProvider([said]))
    assert isinstance(response, ModelResponse)
    deltas = [piece for piece in pieces if isinstance(piece, Delta)]
    assert len(deltas) == len(pieces) > 6

    def joined(index: int) -> str:
        return "".join(delta.text for delta in deltas if delta.index == index)

    assert [joined(i) for i in range(3)] == [
        "where is it, I wonder",
        "I look into it now.",
        '{"path": "a/long/path"}',
    ]
    assert {delta.kind for delta in deltas if delta.index == 2} == {"tool"}
    assert {delta.name for delta in deltas if delta.index == 2} == {"read"}
    assert response.message.content[:2] == said.content[:2]


@pytest.mark.anyio
async def test_every_call_gets_a_vendors_id_of_its_own_and_none_of_the_kernels() -> None:
    provider = ScriptedProvider([reply("", call("read"), call("read")), call("read")])
    calls = [*(await provider.complete(ASK)).message.calls, *(await provider.complete(ASK)).message.calls]
    assert [call.provider_id for call in calls] == ["call_1_0", "call_1_1", "call_2_0"]
    assert {call.id for call in calls} == {""}


@pytest.mark.anyio
async def test_tokens_are_counted_the_same_each_time_and_usage_is_made_of_them() -> None:
    counted = await ScriptedProvider().count_tokens(ASK)
    response = await ScriptedProvider(["hi"]).complete(ASK)
    assert counted == response.usage.uncached == await ScriptedProvider().count_tokens(ASK) == 17
    assert response.usage.output > 0
    given = ModelResponse(message=reply("hi"), usage=Usage(uncached=7))
    assert (await ScriptedProvider([given]).complete(ASK)).usage == Usage(uncached=7)


@pytest.mark.anyio
async def test_a_provider_error_in_the_script_is_the_models_and_the_script_goes_on() -> None:
    provider = ScriptedProvider([ProviderError("overloaded", "busy"), "hi"])
    with pytest.raises(ProviderError, match="busy"):
        await provider.complete(ASK)
    assert (await provider.complete(ASK)).message.text == "hi"


@pytest.mark.anyio
async def test_respond_answers_what_comes_after_the_script() -> None:
    async def respond(request: ModelRequest) -> str:
        await anyio.lowlevel.checkpoint()
        return f"heard {request.messages[-1].text}"

    provider = ScriptedProvider(["first"], respond=respond)
    assert [(await provider.complete(ASK)).message.text for _ in range(3)] == ["first", *["heard hello"] * 2]
    provider.assert_done()


@pytest.mark.anyio
async def test_a_reply_that_does_not_come_can_be_given_up() -> None:
    async def never(request: ModelRequest) -> str:
        scope.cancel()
        await anyio.sleep_forever()
        return ""

    provider = ScriptedProvider([never, "hi"])
    with anyio.CancelScope() as scope:
        await provider.complete(ASK)
    assert scope.cancelled_caught
    assert (await provider.complete(ASK)).message.text == "hi"


@pytest.mark.anyio
async def test_a_request_past_the_end_fails_the_test_and_no_error_policy_can_take_it() -> None:
    provider = ScriptedProvider(["hi"])
    await provider.complete(ASK)
    sentence = "The script has no reply for request 2. Add one, or give `respond`."
    with pytest.raises(ScriptError) as caught, suppress(Exception):
        await provider.complete(ASK)
    assert str(caught.value) == sentence
    with pytest.raises(AssertionError) as told:
        provider.assert_done()
    assert str(told.value) == sentence


@pytest.mark.anyio
async def test_a_script_that_was_not_played_to_its_end_is_told() -> None:
    provider = ScriptedProvider(["one", "two", "three"])
    await provider.complete(ASK)
    with pytest.raises(AssertionError) as told:
        provider.assert_done()
    assert str(told.value) == "The script has 2 more replies, the first is 'two'. The task asked 1 times."


@pytest.mark.anyio
async def test_a_request_that_a_vendor_would_refuse_fails_the_test() -> None:
    request = ModelRequest(model="m", messages=[user("a"), assistant(use("c1")), user("b")])
    with pytest.raises(ScriptError) as caught:
        await played(ScriptedProvider(["hi"]), request)
    assert (
        str(caught.value) == "Request 1 would be refused. Message 2 stands between call 'c1' and its result."
    )


@pytest.mark.anyio
async def test_thinking_goes_back_as_it_was_signed_or_not_at_all() -> None:
    provider = ScriptedProvider([reply("a", thinking="hm"), "b", "c"])
    said = (await provider.complete(ASK)).message
    for content in (said.content, said.content[1:]):
        await provider.complete(ModelRequest(model="m", messages=[user("q"), assistant(*content), user("r")]))
    changed = assistant(Thinking(text="hmm", signature="signed:hm"), *said.content[1:])
    with pytest.raises(
        ScriptError, match=r"^Request 4 would be refused\. Message 1 has thinking that is not"
    ):
        await provider.complete(ModelRequest(model="m", messages=[user("q"), changed, user("r")]))


@pytest.mark.anyio
async def test_nothing_is_answered_after_closing() -> None:
    provider = ScriptedProvider(["hi"])
    await provider.aclose()
    await provider.aclose()
    with pytest.raises(ScriptError, match=r"^Request 1 came after the provider was closed\.$"):
        await provider.complete(ASK)


@pytest.mark.anyio
async def test_a_step_that_no_model_says_fails_the_test() -> None:
    with pytest.raises(ScriptError, match=r"^The reply to request 1 is a int, which no model says\.$"):
        await ScriptedProvider([7]).complete(ASK)  # type: ignore[list-item]


@pytest.mark.anyio
async def test_an_assertion_in_a_reply_that_is_made_up_fails_the_test_and_not_the_turn() -> None:
    def respond(request: ModelRequest) -> str:
        raise AssertionError("the request lacks the file")

    provider = ScriptedProvider(respond=respond)
    with pytest.raises(ScriptError, match=r"request 1 could not be made\. AssertionError: the request lacks"):
        await provider.complete(ASK)
    with pytest.raises(AssertionError, match="the request lacks the file"):
        provider.assert_done()


@pytest.mark.anyio
async def test_a_reply_of_another_role_fails_the_test() -> None:
    with pytest.raises(ScriptError, match="request 1 is of role 'user', which is not the model's"):
        await ScriptedProvider([user("hi")]).complete(ASK)


GOOD = [
    [user("a")],
    [user("a"), reply("b"), user("c")],
    [user("a"), assistant(use("c1"), use("c2")), result("c1"), result("c2"), user("b")],
    [user("a"), assistant(use("c1"), use("c2")), result("c2"), result("c1")],
    [
        user("a"),
        assistant(use("c1")),
        Message(role="user", content=[ToolResult(call="c1", content=[]), Text(text="b")]),
    ],
    [user("a"), Message(role="system", content=[Text(text="b")])],
    [user("a"), assistant(Thinking(text="", redacted="x"), Text(text="b")), user("c")],
]


@pytest.mark.parametrize("messages", GOOD)
def test_a_sound_request_has_no_fault(messages: list[Message]) -> None:
    assert request_fault(ModelRequest(model="m", messages=messages, tools=[TOOL])) is None


SURROGATE = (
    "The request cannot be encoded: 'utf-8' codec can't encode character '\\ud800' in position 1: "
    "surrogates not allowed."
)
BAD: list[tuple[list[Message], str]] = [
    ([], "The request has no message."),
    ([reply("a"), user("b")], "The first message is of role 'assistant', not 'user'."),
    (
        [user("a"), Message(role="tool", content=[Text(text="b")])],
        "Message 1 is of role 'tool', which no model knows.",
    ),
    ([user("a"), reply(), user("b")], "Message 1 is empty."),
    ([user(" \n")], "Message 0 has an empty text."),
    ([user("a"), assistant(use("c1")), result("c1", "")], "The result of 'c1' has an empty text."),
    ([user("a"), reply("b")], "The last message is the model's own, so there is nothing to reply to."),
    (
        [user("a"), assistant(use("c1"))],
        "The last message is the model's own, so there is nothing to reply to.",
    ),
    (
        [Message(role="user", content=[Image(media_type="image/png")])],
        "Message 0 has an image without a type or without bytes.",
    ),
    ([Message(role="user", content=[use("c1")])], "Message 0 has a call, and is of role 'user'."),
    (
        [Message(role="user", content=[Thinking(text="a")])],
        "Message 0 has thinking, and is of role 'user'.",
    ),
    (
        [user("a"), assistant(ToolResult(call="c1", content=[])), user("b")],
        "Message 1 has a result, and is of role 'assistant'.",
    ),
    (
        [user("a"), assistant(ToolUse(id="c1", name="a.b", input={})), result("c1")],
        "Message 1 names a tool 'a.b'; names are 1 to 64 letters, digits, _ and -.",
    ),
    (
        [user("a"), assistant(use("")), result("")],
        "Message 1 has a call with the id ''; ids are 1 to 64 letters, digits, _ and -.",
    ),
    ([user("a"), result("c1")], "Message 1 has a result of call 'c1', which is not in the reply before it."),
    (
        [user("a"), assistant(use("c1")), result("c1"), result("c1")],
        "Message 3 has a result of call 'c1', which has one already.",
    ),
    (
        [user("a"), assistant(use("c1")), reply("b"), user("c")],
        "Message 2 stands between call 'c1' and its result.",
    ),
    (
        [user("a"), assistant(use("c1"), use("c2")), result("c1"), user("b"), result("c2")],
        "Message 3 stands between call 'c2' and its result.",
    ),
    (
        [
            user("a"),
            assistant(use("c1")),
            Message(role="user", content=[Text(text="b"), ToolResult(call="c1", content=[])]),
        ],
        "Message 2 stands between call 'c1' and its result.",
    ),
    (
        [user("a"), assistant(use("c1")), result("c1"), assistant(use("c1")), result("c1")],
        "Message 3 has a second call with the id 'c1'.",
    ),
    ([user("a"), assistant(use("c1"), use("c2")), result("c1")], "Call 'c2' has no result."),
    (
        [user("a\ud800")],
        SURROGATE,
    ),
]


@pytest.mark.parametrize(("messages", "fault"), BAD)
def test_a_fault_in_the_messages_is_told_in_a_sentence(messages: list[Message], fault: str) -> None:
    assert request_fault(ModelRequest(model="m", messages=messages)) == fault


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"model": ""}, "The request names no model."),
        ({"tools": [TOOL, TOOL]}, "Two tools are named 'read'."),
        (
            {"tools": [ToolSpec(name="a b", description="A.", input_schema={"type": "object"})]},
            "A tool is named 'a b'; names are 1 to 64 letters, digits, _ and -.",
        ),
        (
            {"tools": [ToolSpec(name="a", input_schema={"type": "object"})]},
            "Tool 'a' has no description.",
        ),
        (
            {"tools": [ToolSpec(name="a", description="A.")]},
            "The schema of tool 'a' is not that of an object.",
        ),
        ({"tool_choice": "read"}, "The tool choice is 'read', and there is no such tool."),
        ({"tool_choice": "any"}, "The tool choice is 'any', and there is no tool."),
        ({"max_tokens": 0}, "The reply may have 0 tokens."),
        ({"cache_at": [1]}, "The prompt is to be cached behind message 1, which is not there."),
        (
            {"extra": {"x": object()}},
            "The request cannot be encoded: Encoding objects of type object is unsupported.",
        ),
    ],
)
def test_a_fault_in_the_rest_of_a_request_is_told_in_a_sentence(
    fields: dict[str, object], fault: str
) -> None:
    request = ModelRequest(**{"model": "m", "messages": [user("a")], **fields})  # type: ignore[arg-type]
    assert request_fault(request) == fault


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": None},
        {"messages": ["x"]},
        {"messages": [Message(role="user", content=["x"])]},  # type: ignore[list-item]
        {"tools": None},
        {"tools": ["x"]},
        {"tools": [ToolSpec(name="a", description="A.", input_schema=None)]},  # type: ignore[arg-type]
        {"system": None},
        {"max_tokens": "5"},
        {"cache_at": ["a"]},
        {"effort": "huge"},
    ],
)
def test_a_field_of_another_type_is_told_in_a_sentence(fields: dict[str, object]) -> None:
    request = ModelRequest(**{"model": "m", "messages": [user("a")], **fields})  # type: ignore[arg-type]
    assert str(request_fault(request)).startswith("The request cannot be encoded: ")


def test_an_entry_that_is_no_tool_and_a_choice_by_name_are_sound() -> None:
    entry = ToolSpec(extra={"type": "mode"})
    assert request_fault(ModelRequest(model="m", messages=[user("a")], tools=[entry, TOOL])) is None
    chosen = ModelRequest(model="m", messages=[user("a")], tools=[TOOL], tool_choice="read")
    assert request_fault(chosen) is None


@given(logs())
def test_whatever_a_log_holds_it_folds_to_a_sound_conversation_once_its_calls_are_finished(
    lines: list[Line],
) -> None:
    log = LogWriter()
    log.lines = lines
    for open_call in log.fold().open_calls:
        log.finish(open_call.id, "never ran")
    # What people and models say may be empty, and a runner does not send that.
    texts = [re.sub(rb'"text":"[^"]*"', b'"text":"x"', item.data) for item in log.fold().conversation]
    messages = [user("begin"), *map(decode_message, texts), user("go on")]
    assert request_fault(ModelRequest(model="m", messages=messages)) is None
