"""A log written record by record, for tests of what reads one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from noeta.core.codec import Blob, Envelope, Line, decode, encode
from noeta.core.fold import Reducer, fold
from noeta.core.messages import Message, Text, ToolResult, ToolUse, user
from noeta.core.records import CallRef, Fact, ModelReplied, Received, TaskCreated, ToolFinished, ToolStarted
from noeta.core.state import TaskState


class Log:
    """The records of a task, its blobs, and what they fold to."""

    def __init__(self, created: TaskCreated | None = None, through: int = 0) -> None:
        self.through = through
        self.lines: list[Line] = []
        self.blobs: list[Blob] = []
        self.put(created or TaskCreated(task="t", agent="a", root="t"))

    @property
    def seq(self) -> int:
        return self.through + len(self.lines)

    @property
    def records(self) -> list[Envelope]:
        return [decode(line) for line in self.lines]

    def put(self, fact: Fact, message: Message | None = None) -> int:
        return self.note("core", fact.kind, fact, message)

    def note(self, extension: str, kind: str, data: object = None, message: Message | None = None) -> int:
        made = encode(self.seq + 1, 1.5, extension, kind, data, message=message)
        self.lines.append(made.line)
        self.blobs += made.blobs
        return self.seq

    def say(self, text: str) -> int:
        number = self.seq
        return self.put(Received(n=number, key=f"k{number}", item="message"), user(text))

    def reply(self, text: str, calls: int = 0, built_at: int | None = None) -> list[str]:
        ids = [f"c{self.seq + 1}_{i}_00000000" for i in range(calls)]
        blocks = [Text(text=text), *(ToolUse(id=id, name="echo", input={}) for id in ids)]
        fact = ModelReplied(
            built_at=self.seq if built_at is None else built_at,
            calls=[CallRef(id=id, name="echo") for id in ids],
        )
        self.put(fact, Message(role="assistant", content=blocks))
        return ids

    def run(self, call: str, text: str = "") -> int:
        self.put(ToolStarted(call=call))
        return self.finish(call, text)

    def finish(self, call: str, text: str = "") -> int:
        result = ToolResult(call=call, content=[Text(text=text)])
        return self.put(ToolFinished(call=call), Message(role="user", content=[result]))

    def fold(self, reducers: Sequence[Reducer] = ()) -> TaskState:
        return fold(self.records, reducers)


def shown(state: TaskState) -> list[str]:
    """Return the conversation in short: each item's text, or the call it answers."""
    words = []
    for item in state.conversation:
        message = item.message
        results = [block.call for block in message.content if isinstance(block, ToolResult)]
        words.append(results[0] if results else message.text)
    return words


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def new_log() -> type[Log]:
    return Log


@pytest.fixture(name="shown")
def shown_fixture() -> object:
    return shown
