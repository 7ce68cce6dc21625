"""The conversation is shared between copies and stays in order."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.conversation import Conversation


def long(length: int) -> Conversation:
    conversation = Conversation()
    for seq in range(1, length + 1):
        conversation.add(seq, b"{}")
    return conversation


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["reply", "copy", "late", "erase"]))))
def test_conversations_that_share_their_items_behave_like_lists_of_their_own(
    steps: list[tuple[int, str]],
) -> None:
    pairs: list[tuple[Conversation, list[int]]] = [(long(1), [1])]
    for seq, (who, what) in enumerate(steps, 2):
        conversation, plain = pairs[who % len(pairs)]
        if what == "copy":
            pairs.append((conversation.copy(), list(plain)))
        elif what == "reply":
            conversation.add_reply(seq, b'{"role":"assistant","content":[]}', seq - 1)
            plain.append(seq)
        elif what == "late":
            conversation.add(seq, b"{}")
            plain.append(seq)
        else:
            conversation.erase(plain[:1])
            del plain[: not conversation or conversation[0].seq != plain[0]]
    for conversation, plain in pairs:
        assert [item.seq for item in conversation] == plain
        assert len(conversation) == len(plain)
        for part in (slice(None), slice(1, None), slice(-2, None), slice(None, None, -1), slice(0, 9, 2)):
            assert [item.seq for item in conversation[part]] == plain[part]
        for at in range(-len(plain), len(plain)):
            assert conversation[at].seq == plain[at]
        with pytest.raises(IndexError):
            conversation[len(plain)]


def test_a_copy_shares_the_items_however_many_there_are() -> None:
    sizes = []
    for length in (10, 10_000):
        conversation = long(length)
        conversation.add_reply(length + 1, b"{}", length)
        copy = conversation.copy()
        copy.add(length + 2, b"{}")
        conversation.add(length + 2, b"{}")
        conversation.add_reply(length + 3, b"{}", length + 2)
        assert copy.settled is conversation.settled
        own = set(Conversation.__slots__) - {"settled"}
        sizes.append(sum(sys.getsizeof(getattr(copy, name)) for name in own))
    assert sizes[0] == sizes[1]


def test_a_conversation_is_equal_to_one_of_the_same_items_alone() -> None:
    conversation = long(2)
    copy = conversation.copy()
    assert copy == conversation
    copy.add(3, b"{}")
    assert copy != conversation
    assert copy != [1, 2, 3]
