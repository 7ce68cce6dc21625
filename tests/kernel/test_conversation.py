"""The conversation is shared between copies and stays in order."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.conversation import Conversation, Run, Shared


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["extend", "copy"]), st.integers())))
def test_shared_sequences_behave_like_lists_of_their_own(steps: list[tuple[int, str, int]]) -> None:
    pairs: list[tuple[Shared[int], list[int]]] = [(Shared([1]), [1])]
    for who, what, value in steps:
        shared, plain = pairs[who % len(pairs)]
        if what == "extend":
            shared.extend([value, value])
            plain.extend([value, value])
        else:
            pairs.append((shared.copy(), list(plain)))
    for shared, plain in pairs:
        assert list(shared) == plain
        assert len(shared) == len(plain)
        assert shared[1:] == plain[1:]
        assert shared[::-1] == plain[::-1]
        assert shared[-1] == plain[-1]
        with pytest.raises(IndexError):
            shared[len(plain)]


def long(length: int) -> Conversation:
    conversation = Conversation()
    for seq in range(1, length + 1):
        conversation.add(seq, b"{}")
    return conversation


def test_a_copy_shares_the_items_however_many_there_are() -> None:
    sizes = []
    for length in (10, 10_000):
        conversation = long(length)
        conversation.add_reply(length + 1, b"{}", length)
        copy = conversation.copy()
        copy.add(length + 2, b"{}")
        conversation.add(length + 2, b"{}")
        conversation.add_reply(length + 3, b"{}", length + 2)
        assert copy._settled._list is conversation._settled._list
        sizes.append(sum(sys.getsizeof(getattr(copy, name)) for name in Conversation.__slots__))
    assert sizes[0] == sizes[1]


def test_items_that_follow_each_other_are_one_run() -> None:
    conversation = long(3)
    conversation.add_reply(5, b"{}", 4)
    conversation.add(6, b"{}")
    conversation.add_reply(9, b"{}", 8)
    assert conversation.runs == [Run(1, 9)]
    assert [item.seq for item in conversation.tail] == []


def test_what_stands_out_of_order_or_beside_a_gap_is_a_run_of_its_own() -> None:
    conversation = long(2)
    conversation.add(3, b"late")
    conversation.add_reply(4, b"{}", 2)
    conversation.add_reply(5, b"{}", 4)
    assert [item.seq for item in conversation] == [1, 2, 4, 3, 5]
    assert conversation.runs == [Run(1, 2), Run(4, 4), Run(3, 3), Run(5, 5)]
    conversation.erase([2])
    assert conversation.runs == [Run(1, 1), Run(4, 4), Run(3, 3), Run(5, 5)]


def test_a_compaction_makes_runs_of_parts() -> None:
    conversation = long(4)
    conversation.add_reply(5, b"{}", 4)
    conversation.compact(6, 4, [2], [b"lead", b"summary"], [b"after"])
    conversation.add(7, b"{}")
    conversation.add_reply(8, b"{}", 7)
    assert [(item.seq, item.part) for item in conversation] == [
        (6, 1),
        (6, 2),
        (2, 0),
        (6, 3),
        (5, 0),
        (7, 0),
        (8, 0),
    ]
    assert conversation.runs == [Run(6, 2, 1), Run(2, 2), Run(6, 3, 3), Run(5, 5), Run(7, 8)]


def test_asking_for_runs_changes_no_copy() -> None:
    conversation = long(2)
    conversation.add_reply(3, b"{}", 2)
    copy = conversation.copy()
    assert conversation.runs == [Run(1, 3)]
    conversation.add_reply(4, b"{}", 3)
    assert conversation.runs == [Run(1, 4)]
    assert copy.runs == [Run(1, 3)]
    assert copy != conversation
    assert copy != [1, 2, 3]
