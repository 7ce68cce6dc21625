"""Questions to a person and how a tool reads the answer."""

from __future__ import annotations

from typing import Any

import pytest

from noeta.core.records import Answer
from noeta.toolkit.questions import Question, ask, read_answer

COLOUR: Question = {"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}
PARTS: Question = {"question": "Which parts?", "multiSelect": True, "options": [{"label": "a"}]}


def said(**values: Any) -> Answer:
    return Answer(call="c", park=1, values={f"Which {name}?": value for name, value in values.items()})


def test_questions_park_the_call_with_what_a_front_end_shows() -> None:
    park = ask(COLOUR, PARTS)
    assert park.on == "question"
    assert park.detail == {"questions": [COLOUR, PARTS]}


@pytest.mark.parametrize("asked", [(), (COLOUR, COLOUR), ({"question": ""},)])
def test_questions_need_texts_of_their_own(asked: tuple[Question, ...]) -> None:
    with pytest.raises(ValueError, match="a text of their own"):
        ask(*asked)


@pytest.mark.parametrize("asked", ["x", {"header": "x"}, {"question": 5}, {"question": "q", "options": "ab"}])
def test_a_question_of_another_form_is_refused(asked: Question) -> None:
    with pytest.raises(ValueError, match=r"takes questions such as .* (Expected|Object missing)"):
        ask(asked)


def test_one_question_has_one_answer() -> None:
    assert read_answer(said(colour="red"), COLOUR) == "red"
    assert read_answer(said(parts=["a", "b"]), PARTS) == ["a", "b"]


def test_several_questions_have_a_dict_of_answers() -> None:
    both = read_answer(said(colour="red", parts="a"), [COLOUR, PARTS])
    assert both == {"Which colour?": "red", "Which parts?": ["a"]}


def test_a_question_left_open_is_answered_empty() -> None:
    assert read_answer(said(), [COLOUR, PARTS]) == {"Which colour?": "", "Which parts?": []}


def test_a_withdrawn_or_refused_question_has_no_answer() -> None:
    assert read_answer(None, COLOUR) is None
    assert read_answer(Answer(call="c", park=1, verdict="deny"), [COLOUR]) is None
