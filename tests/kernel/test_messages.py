"""Messages read back as they were written, and reading them never fails."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.messages import (
    Block,
    Image,
    Message,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
    decode_message,
    encode_message,
    user,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
RAW = JSON.map(lambda value: msgspec.Raw(msgspec.json.encode(value)))
LEAVES = [
    st.builds(Text, text=st.text()),
    st.builds(Image, media_type=st.text(), blob=st.text(), data=st.binary()),
    st.builds(ToolReference, name=st.text()),
    st.builds(Unknown, of=st.text(), raw=RAW),
]
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    *LEAVES,
    st.builds(Thinking, text=st.text(), signature=st.text(), redacted=st.text()),
    st.builds(
        ToolUse, id=st.text(), name=st.text(), input=st.dictionaries(st.text(), JSON), provider_id=st.text()
    ),
    st.builds(ToolResult, call=st.text(), content=st.lists(st.one_of(*LEAVES), max_size=3)),
)
MESSAGES = st.builds(Message, role=st.text(), content=st.lists(BLOCKS, max_size=4), origin=st.text())


@given(MESSAGES)
def test_a_message_reads_back_equal(message: Message) -> None:
    assert decode_message(encode_message(message)) == message


@given(st.binary() | JSON.map(msgspec.json.encode))
def test_reading_never_fails_and_gives_a_message_that_can_be_written(data: bytes) -> None:
    message = decode_message(data)
    assert decode_message(encode_message(message)) == message


@given(MESSAGES, st.data())
def test_one_strange_block_costs_no_other(message: Message, data: st.DataObject) -> None:
    strange = data.draw(JSON)
    raw = msgspec.json.decode(encode_message(message))
    blocks = raw.setdefault("content", [])
    at = data.draw(st.integers(0, len(blocks)))
    blocks.insert(at, {"type": "of_tomorrow", "x": strange})
    read = decode_message(msgspec.json.encode(raw))
    assert [*read.content[:at], *read.content[at + 1 :]] == message.content
    block = read.content[at]
    assert isinstance(block, Unknown)
    assert msgspec.json.decode(block.raw) == {"type": "of_tomorrow", "x": strange}


def test_what_a_model_thought_is_kept_byte_for_byte() -> None:
    thinking = Thinking(text="so\u2028…\0", signature="EqQB+/==", redacted="\u00e9")
    data = encode_message(Message(role="assistant", content=[thinking]))
    assert decode_message(data).content == [thinking]
    assert encode_message(decode_message(data)) == data


@pytest.mark.parametrize(
    ("data", "of"),
    [
        (b"\xff\xfe", ""),
        (b"[" * 5_000, ""),
        (b'{"role":5,"content":[]}', ""),
        (b'{"role":"user","content":[{"type":"text","text":5}]}', "text"),
        (b'{"role":"user","content":[{"text":"no type"}]}', ""),
        (b'{"role":"user","content":[7]}', ""),
        (b'{"role":"user","content":[{"type":"tool_result","call":7}]}', "tool_result"),
    ],
)
def test_what_is_no_block_is_kept_as_an_unknown_one(data: bytes, of: str) -> None:
    block = decode_message(data).content[0]
    assert isinstance(block, Unknown)
    assert block.of == of
    msgspec.json.decode(block.raw)


def test_a_result_keeps_its_readable_blocks() -> None:
    content: list[Any] = [{"type": "text", "text": "a"}, {"type": "thinking"}, {"type": "of_tomorrow"}]
    raw = {"role": "user", "content": [{"type": "tool_result", "call": "c", "content": content}]}
    (block,) = decode_message(msgspec.json.encode(raw)).content
    assert isinstance(block, ToolResult)
    assert block.content[0] == Text(text="a")
    assert [inner.of for inner in block.content[1:] if isinstance(inner, Unknown)] == [
        "thinking",
        "of_tomorrow",
    ]


def test_a_message_names_its_text_its_calls_and_its_images() -> None:
    image = Image(media_type="image/png", blob="0" * 64)
    call = ToolUse(id="c1_0_00000000", name="echo", input={})
    result = ToolResult(call=call.id, content=[image])
    message = Message(role="user", content=[Text(text="a"), call, Text(text="b"), image, result])
    assert (message.text, message.calls, message.images) == ("ab", [call], [image, image])
    assert user("hi") == Message(role="user", content=[Text(text="hi")])


@given(st.lists(st.builds(Usage, **dict.fromkeys(Usage.__struct_fields__, st.integers(0, 10**12)))))
def test_usage_adds_up_field_by_field(usages: list[Usage]) -> None:
    total = sum(usages, Usage())
    for name in Usage.__struct_fields__:
        assert getattr(total, name) == sum(getattr(usage, name) for usage in usages)
    assert total.input == total.uncached + total.cache_read + total.cache_write
