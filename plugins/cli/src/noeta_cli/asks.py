"""What waits for a person: finding it, showing it, and reading what the person says to it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from noeta_cli.output import one_line
from noeta_cli.readers import Wrong
from noeta_cli.task_ids import every

if TYPE_CHECKING:
    from noeta import TaskState
    from noeta.host.outcome import Asked
    from noeta.toolkit.store import Reader

VERDICTS = ("allow", "deny")
INPUT_CHARS = 200


def state_of(reader: Reader, task: str) -> TaskState:
    """The state of a task as far as it is the kernel's, for which no plugin is needed."""
    from noeta.host.agents import Agents
    from noeta.host.at_once import at_once, looking
    from noeta.host.reading import Reader as Reading

    return at_once(Reading(looking(reader), Agents([])).state(task))


def asks_of(reader: Reader, task: str) -> list[Asked]:
    """The calls of a task and of its children that wait for a person, whatever else goes on."""
    from noeta.host.outcome import asked_of

    found = list(asked_of(state_of(reader, task)))
    for child in every(reader, parent=task):
        if child.status != "ended":
            found += asks_of(reader, child.task)
    return found


def questions_of(asked: Asked) -> list[Mapping[str, Any]]:
    """The questions of a call. A tool may wait with a detail of its own, which has none."""
    given = asked.detail.get("questions")
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def labels_of(question: Mapping[str, Any]) -> list[str]:
    """The options of a question."""
    return [str(option["label"]) for option in question.get("options") or ()]


def shown_ask(asked: Asked) -> list[str]:
    """What a call asks, in lines for people."""
    if asked.on == "approval":
        prompt = one_line(str(asked.detail.get("prompt") or "May it run?"))
        name = str(asked.detail.get("name") or asked.name)
        return [f"{shown_call(name, asked.detail.get('input'))}: {prompt}"]
    if not (questions := questions_of(asked)):
        return [f"{asked.name} waits for values: {one_line(str(asked.detail), INPUT_CHARS)}"]
    lines = []
    for question in questions:
        lines.append(one_line(str(question.get("question"))))
        for number, option in enumerate(question.get("options") or (), 1):
            about = f": {one_line(option['description'])}" if option.get("description") else ""
            lines.append(f"  {number}. {one_line(str(option['label']))}{about}")
        if question.get("multiSelect"):
            lines[-1] += "  (several may be chosen)"
    return lines


def shown_call(name: str, input: object) -> str:
    """A call in one line."""
    given = input if isinstance(input, dict) else {}
    return one_line(f"{name}({', '.join(f'{key}={value}' for key, value in given.items())})", INPUT_CHARS)


def answer_line(asked: Asked, store: str | None = None) -> str:
    """The command that answers, ready to be run; of a question, with the first option or a gap."""
    words = ["noeta", "answer", asked.task, asked.call]
    if asked.on == "approval":
        words.append("allow")
    else:
        firsts = [(labels_of(question) or ["..."])[0] for question in questions_of(asked)]
        words += firsts or ["KEY=VALUE"]
    return shlex.join([*words, *(["--store", store] if store else [])])


def read_words(asked: Asked, words: Sequence[str]) -> str | dict[str, Any]:
    """A verdict or values, of the words that a person said. Raises `Wrong`.

    A question takes one word each, several for a single one with `multiSelect`. A word is an option, its
    number, or a text of the person's own. `deny` refuses to answer.
    """
    if asked.on == "approval":
        if len(words) != 1 or words[0] not in VERDICTS:
            raise Wrong(
                f"{' '.join(words)!r} is no verdict{_meant(' '.join(words), VERDICTS)}; say allow or deny"
            )
        return words[0]
    questions = questions_of(asked)
    offered = {label for question in questions for label in labels_of(question)}
    if list(words) == ["deny"] and "deny" not in offered:
        return "deny"
    if not questions:
        pairs = [word.partition("=") for word in words]
        if not pairs or not all(key and equals for key, equals, _ in pairs):
            raise Wrong(f"{asked.name} waits for values; write KEY=VALUE for each")
        return {key: value for key, _, value in pairs}
    if len(questions) == 1 and questions[0].get("multiSelect"):
        return {questions[0]["question"]: [_chosen(questions[0], word) for word in words]}
    if len(words) != len(questions):
        raise Wrong(
            f"{asked.name} asks {_count(len(questions), 'question')} and got {_count(len(words), 'answer')}; "
            "put each answer in quotes"
        )
    return {
        question["question"]: [_chosen(question, part.strip()) for part in word.split(",")]
        if question.get("multiSelect")
        else _chosen(question, word)
        for question, word in zip(questions, words, strict=True)
    }


def _chosen(question: Mapping[str, Any], text: str) -> str:
    labels = labels_of(question)
    if text.isdecimal() and labels:
        if 1 <= int(text) <= len(labels):
            return labels[int(text) - 1]
        raise Wrong(f"there is no option {text}; there are {len(labels)}: {', '.join(labels)}")
    for label in labels:
        if label.casefold() == text.casefold():
            return label
    # Own words are welcome. What is nearly an option is a slip, and an answer cannot be taken back.
    if hint := _meant(text, labels):
        raise Wrong(f"{text!r} is no option{hint}; there are: {', '.join(labels)}")
    if not text.strip():
        raise Wrong("an answer is empty")
    return text


def _meant(text: str, known: Sequence[str]) -> str:
    from noeta.toolkit.errors import meant

    return meant(text, known)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
