"""Text that enters a log is made storable, and names that a store might not keep are refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.errors import NotStorable
from noeta.core.text import checked_key, storable_text

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


@pytest.mark.parametrize("text", ["", "x" * 513, "a\0", "a\ud800"])
def test_a_name_that_a_store_might_not_keep_is_refused(text: str) -> None:
    with pytest.raises(NotStorable, match="a queue cannot be stored"):
        checked_key(text, "a queue")


def test_any_other_name_is_kept_as_it_is() -> None:
    assert checked_key("é漢" * 256, "a queue") == "é漢" * 256
