"""The messages of a request are a list that costs nothing to make."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noeta.core.conversation import Conversation, Item
from noeta.core.messages import decode_message, encode_message, user
from noeta.host.messages import Messages


@given(st.lists(st.integers(0, 3), max_size=8), st.data())
def test_messages_with_some_replaced_are_a_list_with_some_replaced(texts: list[int], data: Any) -> None:
    messages, plain = of_texts(texts), [str(text) for text in texts] or [""]
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, len(plain)))
        end = data.draw(st.integers(start, len(plain)))
        new = data.draw(st.lists(st.sampled_from("ab"), max_size=3))
        messages = messages.replaced(start, end, [Item(0, encode_message(user(text))) for text in new])
        plain[start:end] = new
    found = [message.text for message in messages]
    assert [text if text in "0123ab" else "" for text in found] == plain
    assert len(messages) == len(plain)
    assert [messages[i].text for i in range(-len(plain), len(plain))] == found * 2
    assert [message.text for message in messages[1:3]] == found[1:3]
    assert [decode_message(encoded).text for encoded in messages.encoded] == found


@given(st.lists(st.integers(0, 1), max_size=6), st.lists(st.integers(0, 1), max_size=6), st.data())
def test_what_two_requests_share_is_their_common_beginning(
    one: list[int], other: list[int], data: Any
) -> None:
    first, second = of_texts(one), of_texts(other)
    if data.draw(st.booleans()):
        second = first
    made = []
    for messages in (first, second):
        at = data.draw(st.integers(0, len(messages)))
        new = data.draw(st.lists(st.just(Item(0, encode_message(user("0")))), max_size=2))
        made.append(messages.replaced(at, at + data.draw(st.integers(0, 1)), new))
    a, b = ([message.text for message in messages] for messages in made)
    common = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    assert made[0].shared(made[1]) == made[1].shared(made[0]) == common


def of_texts(texts: list[int]) -> Messages:
    conversation = Conversation()
    for seq, text in enumerate(texts, 1):
        conversation.add(seq, encode_message(user(str(text))))
    if len(texts) % 2:
        # Some of them settled.
        settled = [*conversation]
        conversation = Conversation(settled, len(settled))
    return Messages(conversation)
