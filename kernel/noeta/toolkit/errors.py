"""Errors that noeta raises on purpose and the kernel neither raises nor tells apart.

As in `noeta.core.errors`, each class takes facts, keeps them as attributes and makes its own sentence. The
store errors of both modules (`StoreError`) are the only ones a `Store` may let out, besides `UnknownTask`,
`TaskOver` and `NotStorable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from noeta.core.errors import NoetaError, StoreError
from noeta.core.text import meant as meant


class UnknownTask(NoetaError):
    """No task has this id in the store asked."""

    def __init__(self, task: str) -> None:
        self.task: str = task
        super().__init__(f"There is no task {task!r} in this store.")


class TaskOver(NoetaError):
    """The task has ended and takes no more messages; only an erasure is still accepted."""

    def __init__(self, task: str) -> None:
        self.task: str = task
        super().__init__(
            f"Task {task!r} has ended and takes no more messages. Start a new task or fork this one."
        )


class Duplicate(StoreError):
    """A task with this id, or a post with this dedupe key, was accepted before. The first one stands."""

    says: ClassVar[str] = "Already accepted"


class Full(StoreError):
    """There is no room for the write. Nothing was written; free space and retry."""

    says: ClassVar[str] = "The store is full"


class ReadOnly(StoreError):
    """The store takes no writes. Nothing was written; reading still works."""

    says: ClassVar[str] = "The store is read-only"


class Corrupt(StoreError):
    """The store holds what no store of ours would write.

    Nothing was changed; copy the data aside before repairing.
    """

    says: ClassVar[str] = "The store is damaged"


class Changed(NoetaError):
    """A file is not what it was when it was read. Read it again."""

    def __init__(self, path: str) -> None:
        self.path: str = path
        super().__init__(f"{path} has changed since it was read. Read it again before writing.")


class ComposeError(NoetaError):
    """An agent cannot be put together, or what a host is to use does not exist or does not work.

    `plugin` is at fault, `place` says where in it or who wants it, `way_out` what to do. `kind` is what it is
    when it is no plugin, such as a store.
    """

    def __init__(self, plugin: str, place: str, why: str, way_out: str, *, kind: str = "plugin") -> None:
        self.plugin: str = plugin
        self.place: str = place
        self.why: str = why
        self.way_out: str = way_out
        super().__init__(f"{kind.capitalize()} {plugin!r}, {place}: {why}. {way_out}.")


class NotWaiting(NoetaError):
    """The call does not wait for an answer: it runs, is settled, or was never made. `why` says which."""

    def __init__(self, task: str, call: str, why: str = "") -> None:
        self.task: str = task
        self.call: str = call
        self.why: str = why
        tail = f": {why}" if why else ""
        super().__init__(f"Call {call!r} of task {task!r} does not wait for an answer{tail}.")


class NoRequest(NoetaError):
    """No request led to this record of a task. `near` are the seqs of the nearest replies and failures."""

    def __init__(self, task: str, seq: int, near: Sequence[int]) -> None:
        self.task: str = task
        self.seq: int = seq
        self.near: Sequence[int] = near
        places = ", ".join(map(str, near))
        way_out = f"There are requests of the records {places}." if near else "It has sent no request yet."
        super().__init__(f"Record {seq} of task {task!r} is no reply to a request. {way_out}")


class UnknownCall(NoetaError):
    """A task has made no call with this id. `near` are ids that may be meant, or those of its last calls."""

    def __init__(self, task: str, call: str, near: Sequence[str]) -> None:
        self.task: str = task
        self.call: str = call
        self.near: Sequence[str] = near
        way_out = f"There are calls {', '.join(near)}." if near else "It has made no call yet."
        super().__init__(f"Task {task!r} has no call {call!r}. {way_out}")
