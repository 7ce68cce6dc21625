"""A record is proved readable before it is written, and reading one never fails."""

from __future__ import annotations

import hashlib
import math
from functools import cache
from typing import Any, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.codec import (
    MAX_INLINE_BYTES,
    MAX_NESTING,
    NULL,
    UNREADABLE,
    Body,
    Line,
    decode,
    encode,
    placed,
    recorded,
    with_body,
)
from noeta.core.errors import NotStorable
from noeta.core.messages import Image, Message, Text, ToolResult, ToolUse, Unknown, decode_message, user
from noeta.core.records import CORE_KINDS, Compacted, Fact, Notice, Received, TimerSet, ToolFinished

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text(st.characters(exclude_characters=".\0", exclude_categories=["Cs"]), min_size=1, max_size=10)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    Any: JSON,
    str: st.text(),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    # Bytes of images leave the record for blobs, so they do not read back in it.
    bytes: st.just(b""),
    type(None): st.none(),
    msgspec.Raw: JSON.map(lambda value: msgspec.Raw(msgspec.json.encode(value))),
}


@cache
def values(type_: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for a type that a stored struct mentions."""
    if type_ in SIMPLE:
        return SIMPLE[type_]
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is list:
        return st.lists(values(arguments[0]), max_size=3)
    if origin is dict:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=3)
    if arguments:
        return st.one_of(*map(values, arguments))
    return st.builds(type_, **{field.name: values(field.type) for field in msgspec.structs.fields(type_)})


@given(NAMES.filter(lambda name: name != "core"), NAMES, JSON, st.text(), st.integers(1, 2**63))
def test_a_plugins_record_reads_back_equal(name: str, kind: str, data: Any, text: str, seq: int) -> None:
    made = encode(seq, 1796055984.123, name, kind, data, message=user(text), by=name, hook="on_event")
    assert decode(made.line) == made.envelope
    back = recorded(made.envelope)
    assert (back.seq, back.at, back.extension, back.kind) == (seq, 1796055984.123, name, kind)
    assert (back.data, back.message, back.by, back.hook, back.erased) == (
        data,
        user(text),
        name,
        "on_event",
        False,
    )


@pytest.mark.parametrize("kind", CORE_KINDS)
@given(data=st.data())
def test_a_core_record_reads_back_equal(kind: str, data: st.DataObject) -> None:
    fact = data.draw(values(CORE_KINDS[kind]))
    assert recorded(decode(encode(7, 1.0, "core", kind, fact).line)).data == fact


class Pair(msgspec.Struct, frozen=True):
    a: int
    b: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("data", "back"),
    [
        (Pair(1, ("x",)), {"a": 1, "b": ["x"]}),
        ((1, 2), [1, 2]),
        ({3: {4}}, {"3": [4]}),
        ([(1, {2: Pair(3, ("y",))})], [[1, {"2": {"a": 3, "b": ["y"]}}]]),
        (b"\x00", "AA=="),
        (2**100, 2**100),
        ("a\0b\u2028", "a\0b\u2028"),
    ],
)
def test_data_of_other_types_comes_back_as_builtins(data: object, back: object) -> None:
    assert recorded(encode(1, 0.0, "x", "k", data).envelope).data == back


def test_data_comes_back_as_the_declared_type() -> None:
    envelope = encode(1, 0.0, "x", "k", Pair(1, ("y",))).envelope
    assert recorded(envelope, {"k": Pair}).data == Pair(1, ("y",))
    assert recorded(envelope, {"k": int}).data is None
    assert recorded(envelope, {"other": int}).data == {"a": 1, "b": ["y"]}


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"a": math.nan}, "NaN"),
        ([math.inf], "infinity"),
        ((1, {2: (math.nan,)}), "NaN"),
        ("\ud800", "surrogates"),
        ({"\udfff": 1}, "surrogates"),
        (object(), "unsupported"),
        (nested(5_000), "recursion|nested deeper"),
        (nested(MAX_NESTING + 1), "nested deeper"),
        (Pair("one"), "Expected `int`"),  # type: ignore[arg-type]
    ],
)
def test_what_would_not_read_back_is_refused_where_it_is_made(data: object, why: str) -> None:
    with pytest.raises(NotStorable, match="(?i)" + why) as caught:
        encode(1, 0.0, "x", "k", data)
    assert caught.value.where == "x.k"


def test_nesting_up_to_the_limit_is_stored_and_brackets_in_a_text_are_not_nesting() -> None:
    for data in (nested(MAX_NESTING - 1), "[{" * 1_000, [[i] for i in range(1_000)]):
        assert recorded(encode(1, 0.0, "x", "k", data).envelope).data == data
    with pytest.raises(NotStorable, match="nested deeper"):
        encode(1, 0.0, "core", "tool_finished", ToolFinished(call="c", meta={"deep": nested(MAX_NESTING)}))
    deep = ToolUse(id="c", name="n", input={"deep": nested(MAX_NESTING)})
    with pytest.raises(NotStorable, match="nested deeper"):
        encode(1, 0.0, "x", "k", None, message=Message(role="assistant", content=[deep]))


@pytest.mark.parametrize(
    "fact",
    [
        TimerSet(name="t", at=math.nan),
        TimerSet(name=5, at=1.0),  # type: ignore[arg-type]
        ToolFinished(call="c", meta={"x": math.inf}),
        Notice(text="\ud800"),
    ],
)
def test_a_core_record_with_a_wrong_value_is_refused(fact: Fact) -> None:
    with pytest.raises(NotStorable):
        encode(1, 0.0, "core", fact.kind, fact)


def test_a_core_record_needs_its_own_struct() -> None:
    with pytest.raises(NotStorable, match="no dict"):
        encode(1, 0.0, "core", "notice", {"text": "x"})
    with pytest.raises(NotStorable, match="no Notice"):
        encode(1, 0.0, "core", "timer_set", Notice(text="x"))


def test_a_tuple_where_a_list_is_read_is_no_fault() -> None:
    fact = ToolFinished(call="c", meta={"lines": (1, 2)})
    assert recorded(encode(1, 0.0, "core", fact.kind, fact).envelope).data.meta == {"lines": [1, 2]}
    call = ToolUse(id="c", name="n", input={"lines": (1, 2)})
    message = Message(role="assistant", content=[call])
    back = recorded(encode(1, 0.0, "x", "k", None, message=message).envelope).message
    assert back is not None
    assert back.calls[0].input == {"lines": [1, 2]}


def test_a_message_with_a_wrong_value_is_refused() -> None:
    with pytest.raises(NotStorable, match=r"content\[0\]"):
        encode(1, 0.0, "x", "k", None, message=Message(role="user", content=[Text(text=5)]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("extension", "kind"), [("a.b", "k"), ("a", "k.l"), ("", "k"), ("a", ""), ("a", "k\0")]
)
def test_names_that_a_store_or_a_selection_could_not_tell_apart_are_refused(
    extension: str, kind: str
) -> None:
    with pytest.raises(NotStorable):
        encode(1, 0.0, extension, kind, None)


def test_image_bytes_become_blobs_inside_results_too() -> None:
    pixels = b"\x89PNG" * 10
    name = hashlib.sha256(pixels).hexdigest()
    image = Image(media_type="image/png", data=pixels)
    message = Message(role="user", content=[image, ToolResult(call="c", content=[Text(text="x"), image])])
    made = encode(1, 0.0, "x", "k", None, message=message)
    assert {(blob.sha256, blob.data) for blob in made.blobs} == {(name, pixels)}
    kept = recorded(decode(made.line)).message
    assert kept is not None
    assert kept.images == [Image(media_type="image/png", blob=name)] * 2


@pytest.mark.parametrize(("data", "text"), [("x" * MAX_INLINE_BYTES, ""), ("", "x" * MAX_INLINE_BYTES)])
def test_a_large_body_is_stored_beside_the_line_and_comes_back_whole(data: str, text: str) -> None:
    made = encode(1, 0.0, "x", "k", [data, "kept"], message=user(text))
    assert len(made.line.data) < 1_000
    (blob,) = made.blobs
    bare = decode(made.line)
    assert bare.blob == blob.sha256 == hashlib.sha256(blob.data).hexdigest()
    whole = with_body(bare, blob.data)
    assert whole == made.envelope
    assert (recorded(whole).data, recorded(whole).message) == ([data, "kept"], user(text))
    # What is small stays readable without the blob.
    assert (bare.data == NULL) == bool(data)
    assert bool(bare.message) == (not text)


@pytest.mark.parametrize("data", ["", "x" * MAX_INLINE_BYTES])
def test_a_record_made_before_its_place_is_known_is_the_one_made_there(data: str) -> None:
    staged = encode(0, 0.0, "x", "k", data, message=user("m"), by="x", hook="on_event")
    assert placed(staged, 7, 2.5) == encode(
        7, 2.5, "x", "k", data, message=user("m"), by="x", hook="on_event"
    )


def test_a_body_at_the_limit_stays_in_the_line() -> None:
    at_limit = "x" * (MAX_INLINE_BYTES - 2)
    assert encode(1, 0.0, "x", "k", at_limit).blobs == ()
    assert len(encode(1, 0.0, "x", "k", at_limit + "x").blobs) == 1


def test_a_damaged_blob_makes_the_record_unreadable_and_says_which() -> None:
    bare = decode(encode(1, 0.0, "x", "k", "x" * MAX_INLINE_BYTES).line)
    lost = with_body(bare, b"")
    assert (lost.seq, lost.extension, lost.kind) == (1, "core", UNREADABLE)
    assert bare.blob in bytes(lost.data).decode()


@given(st.integers(0, 2**40), st.binary())
def test_reading_any_bytes_gives_an_envelope_of_that_seq(seq: int, data: bytes) -> None:
    assert decode(Line(seq, data)).seq == seq


def test_a_line_at_the_wrong_place_is_unreadable() -> None:
    line = encode(3, 0.0, "x", "k", None).line
    assert decode(Line(4, line.data)).kind == UNREADABLE
    assert decode(line).kind == "k"


def test_a_compaction_reads_back_with_its_messages() -> None:
    fact = Compacted(through=5, summary=[user("s")], keep=[2], lead=[user("l")], after=[user("a")])
    assert recorded(encode(6, 0.0, "core", "compacted", fact).envelope).data == fact


def test_image_bytes_inside_a_compaction_become_blobs_too() -> None:
    pixels = Message(role="user", content=[Image(media_type="image/png", data=b"pixels")])
    made = encode(1, 0.0, "core", "compacted", Compacted(through=0, lead=[pixels], after=[pixels]))
    assert {blob.data for blob in made.blobs} == {b"pixels"}
    assert b"cGl4ZWxz" not in made.line.data


RAW_BREAK = msgspec.Raw(b'{\n"a":1}')


@pytest.mark.parametrize(
    "arguments",
    [
        {"data": {1: "a", "1": "b"}},
        {"data": {1: "a", "1": "a"}},
        {"data": 10**5_000},
        {"at": math.nan},
        {"at": math.inf},
        {"by": "\ud800"},
        {"message": {"role": "user"}},
        {"message": Message(role="user", content=[Unknown(of="x", raw=RAW_BREAK)])},
        {"message": Message(role="user", content=[Unknown(of="x", raw=msgspec.Raw(b'"\xff"'))])},
        {"message": Message(role="user", content=[Unknown(of="x", raw=msgspec.Raw(b"[" * 200))])},
        {
            "extension": "core",
            "kind": "received",
            "data": Received(n=1, key="k", item="entry", data=RAW_BREAK),
        },
    ],
)
def test_a_record_that_would_break_its_line_or_a_reader_is_refused(arguments: dict[str, Any]) -> None:
    given = {"seq": 1, "at": 0.0, "extension": "x", "kind": "k", "data": None, **arguments}
    with pytest.raises(NotStorable):
        encode(**given)


class Unequal(msgspec.Struct):
    a: int

    def __post_init__(self) -> None:
        if self.a == 2:
            raise KeyError("two")

    def __eq__(self, other: object) -> bool:
        raise KeyError("never")


def test_a_plugins_type_that_raises_anything_is_no_ones_fault_but_its_own() -> None:
    with pytest.raises(NotStorable, match="KeyError"):
        encode(1, 0.0, "x", "k", Unequal(1))
    assert recorded(encode(1, 0.0, "x", "k", {"a": 2}).envelope, {"k": Unequal}).data is None


def test_an_unknown_block_with_white_space_around_it_can_be_written_again() -> None:
    message = decode_message(b"[] \n")
    assert recorded(encode(1, 0.0, "x", "k", None, message=message).envelope).message == message


def test_absent_parts_of_a_body_are_not_written() -> None:
    assert msgspec.json.encode(Body()) == b"{}"
