"""A log written record by record, for tests of what reads one: a reducer, a fold, a store."""

from __future__ import annotations

from collections.abc import Sequence

from noeta.core.codec import Blob, Envelope, Line, decode, encode
from noeta.core.fold import Reducer, fold
from noeta.core.messages import Block, Message, Text, ToolResult, ToolUse, user
from noeta.core.records import CallRef, Fact, ModelReplied, Received, TaskCreated, ToolFinished, ToolStarted
from noeta.core.state import TaskState


class LogWriter:
    """The records of a task, from its first one on. Each method adds to the log.

    `through` is where a continued task begins. `at` is the time of every record.
    """

    def __init__(self, created: TaskCreated | None = None, *, through: int = 0, at: float = 1.5) -> None:
        self.through: int = through
        self.at: float = at
        self.lines: list[Line] = []
        self.blobs: list[Blob] = []
        self.put(created or TaskCreated(task="t", agent="a", root="t"))

    @property
    def seq(self) -> int:
        """The seq of the last record."""
        return self.through + len(self.lines)

    @property
    def records(self) -> list[Envelope]:
        """The envelopes so far, without what lies in blobs."""
        return [decode(line) for line in self.lines]

    def fold(self, reducers: Sequence[Reducer] = ()) -> TaskState:
        """The state of the task."""
        return fold(self.records, reducers)

    def put(self, fact: Fact, message: Message | None = None) -> int:
        """Add a core record; its seq."""
        return self.note("core", fact.kind, fact, message)

    def note(self, extension: str, kind: str, data: object = None, message: Message | None = None) -> int:
        """Add a record of a plugin; its seq."""
        made = encode(self.seq + 1, self.at, extension, kind, data, message=message)
        self.lines.append(made.line)
        self.blobs += made.blobs
        return self.seq

    def say(self, text: str) -> int:
        """Add a person's message; its seq."""
        number = self.seq
        return self.put(Received(n=number, key=f"k{number}", item="message"), user(text))

    def reply(self, text: str, calls: int = 0, built_at: int | None = None) -> list[str]:
        """Add a reply with so many calls of a tool ``echo``; their ids.

        `built_at` is the seq of the request, by default that of the last record.
        """
        ids = [f"c{self.seq + 1}_{i}_00000000" for i in range(calls)]
        blocks: list[Block] = [Text(text=text), *(ToolUse(id=id, name="echo", input={}) for id in ids)]
        refs = [CallRef(id=id, name="echo") for id in ids]
        fact = ModelReplied(built_at=self.seq if built_at is None else built_at, calls=refs)
        self.put(fact, Message(role="assistant", content=blocks))
        return ids

    def run(self, call: str, text: str = "") -> int:
        """Add the start and the result of a call; the seq of the result."""
        self.put(ToolStarted(call=call))
        return self.finish(call, text)

    def finish(self, call: str, text: str = "", *, is_error: bool = False) -> int:
        """Add the result of a call; its seq."""
        result = ToolResult(call=call, content=[Text(text=text)], is_error=is_error)
        return self.put(ToolFinished(call=call, is_error=is_error), Message(role="user", content=[result]))
