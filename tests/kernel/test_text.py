"""What enters a log is made storable, or refused with its place and reason."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.errors import NotStorable
from noeta.core.text import MAX_DEPTH, checked_key, storable, storable_text

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


@given(ANY_TEXT)
def test_any_text_becomes_storable_and_nothing_else_changes(text: str) -> None:
    stored = storable_text(text)
    assert msgspec.json.decode(msgspec.json.encode(stored)) == stored
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert stored == text


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a\0b", "a\0b"),
        ("\ud83d\ude00", "\U0001f600"),
        ("x\ud83d", "x\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        (b"caf\xff".decode(errors="surrogateescape"), "caf\ufffd"),
        ("\u2028", "\u2028"),
    ],
)
def test_surrogates_are_joined_or_replaced_and_all_else_is_kept(text: str, stored: str) -> None:
    assert storable_text(text) == stored


@given(
    st.recursive(
        st.none() | st.floats() | st.integers() | ANY_TEXT,
        lambda x: st.lists(x) | st.dictionaries(ANY_TEXT, x),
    )
)
def test_any_plain_value_becomes_storable_and_is_then_left_alone(value: Any) -> None:
    stored = storable(value)
    assert msgspec.json.decode(msgspec.json.encode(stored)) == stored
    assert storable(stored) == stored


class Point(msgspec.Struct):
    x: float
    tags: tuple[str, ...] = ()


class Colour(Enum):
    RED = "red"


class Half(float): ...


class Count(int): ...


class Name(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (math.nan, "NaN"),
        ([math.inf, -math.inf], ["Infinity", "-Infinity"]),
        ((1, (2,)), [1, [2]]),
        ({1: {"\ud800": 2**80}}, {"1": {"\ufffd": 2**80}}),
        (Point(math.nan, ("\udc80",)), {"x": "NaN", "tags": ["\ufffd"]}),
        (b"\x00\xff", "AP8="),
        ({"a"}, ["a"]),
        (True, True),
        (Colour.RED, "red"),
        ([Half(0.5), Count(3), Name("x\ud800")], [0.5, 3, "x\ufffd"]),
    ],
)
def test_odd_values_get_a_plain_form(value: object, stored: object) -> None:
    assert storable(value) == stored


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "where", "why"),
    [
        ({"a": [1, object()]}, "$.a[1]", "object"),
        (nested(5_000), "$" + "[0]" * MAX_DEPTH, "deeper than 64"),
        ({"k": {(1, 2): 3}}, "$.k", "no text"),
        ({True: 1}, "$", "no text"),
        ({1: "a", "1": "b"}, "$", "become one"),
        ([dict.fromkeys(["\ud800", "\ufffd"])], "$[0]", "become one"),
    ],
)
def test_what_json_cannot_say_is_refused_by_place(value: object, where: str, why: str) -> None:
    with pytest.raises(NotStorable) as caught:
        storable(value)
    assert caught.value.where == where
    assert why in caught.value.why
    assert str(caught.value).startswith(f"{where} cannot be stored: ")


def test_nesting_up_to_the_limit_is_fine() -> None:
    assert storable(nested(MAX_DEPTH - 1)) == nested(MAX_DEPTH - 1)


@pytest.mark.parametrize("text", ["", "x" * 513, "a\0", "a\ud800"])
def test_a_name_that_a_store_might_not_keep_is_refused(text: str) -> None:
    with pytest.raises(NotStorable, match="a queue cannot be stored"):
        checked_key(text, "a queue")


def test_any_other_name_is_kept_as_it_is() -> None:
    assert checked_key("é漢" * 256, "a queue") == "é漢" * 256
