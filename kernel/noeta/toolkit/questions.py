"""Questions to a person: how a tool's call waits for an answer, and how the tool reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, overload

import msgspec

from noeta.core.records import Answer
from noeta.core.tool import Park


class Option(TypedDict):
    """One of the answers a question offers."""

    label: str
    description: NotRequired[str]


class Question(TypedDict):
    """One question.

    `header` is a word or two for a narrow place. Without `options` the answer is free text; with
    `multiSelect` several options may be chosen.
    """

    question: str
    header: NotRequired[str]
    options: NotRequired[list[Option]]
    multiSelect: NotRequired[bool]


def ask(*questions: Question) -> Park:
    """What a tool gives as `ToolOutput.park` to put these questions to the person, all at once.

    Raises `ValueError` for no question, one of another form, an empty one, or the same one twice: answers go
    by their text.
    """
    try:
        texts = [question["question"] for question in msgspec.convert(questions, tuple[Question, ...])]
    except msgspec.ValidationError as error:
        raise ValueError(f"ask() takes questions such as {{'question': 'Where to?'}}. {error}") from None
    if not all(texts) or len(set(texts)) < len(texts) or not texts:
        raise ValueError(f"ask() takes questions with a text of their own, not {texts}")
    return Park(on="question", detail={"questions": list(questions)})


@overload
def read_answer(outcome: Answer | None, asked: Question) -> str | list[str] | None: ...
@overload
def read_answer(outcome: Answer | None, asked: Sequence[Question]) -> dict[str, str | list[str]] | None: ...
def read_answer(outcome: Answer | None, asked: Question | Sequence[Question]) -> Any:
    """What the person said, for the `outcome` that `resume` was given and what was `asked`.

    For one question its answer: text, or with `multiSelect` a list of texts. For several, a dict from each
    question's text to its answer. A question left open is answered ``""`` or ``[]``. None when the question
    was withdrawn, or the person refused to answer.
    """
    if outcome is None or outcome.verdict == "deny":
        return None
    if isinstance(asked, Mapping):
        return _read(outcome.values, asked)
    return {question["question"]: _read(outcome.values, question) for question in asked}


def _read(values: Mapping[str, Any], question: Any) -> str | list[str]:
    given = values.get(question["question"])
    chosen = [str(value) for value in (given if isinstance(given, list) else [given] if given else [])]
    return chosen if question.get("multiSelect") else ", ".join(chosen)
