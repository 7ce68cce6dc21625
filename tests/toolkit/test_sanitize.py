"""What enters a log is made storable, or refused with its place and reason."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.codec import encode, recorded
from noeta.core.errors import NotStorable
from noeta.toolkit.sanitize import MAX_DEPTH, storable

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)


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


def test_nesting_up_to_the_limit_is_fine_and_fits_into_a_record() -> None:
    deep = nested(MAX_DEPTH - 1)
    assert storable(deep) == deep
    assert recorded(encode(1, 0.0, "x", "k", deep).envelope).data == deep
