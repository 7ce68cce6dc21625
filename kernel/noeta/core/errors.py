"""Every error noeta raises on purpose.

Each class takes facts, keeps them as attributes and makes its own sentence. The seven store errors are the
only ones a `Store` may let out, besides `UnknownTask` and `TaskOver`.
"""

from __future__ import annotations

from typing import ClassVar


class NoetaError(Exception):
    """The root of all errors of noeta."""


class NotStorable(NoetaError, ValueError):
    """A value cannot be kept in a log. `where` is the place inside it, such as ``$.items[3]``.

    `noeta.core.text.storable` mends most values.
    """

    def __init__(self, where: str, why: str) -> None:
        self.where: str = where
        self.why: str = why
        super().__init__(f"{where} cannot be stored: {why}.")


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


class StoreError(NoetaError):
    """What a store may raise.

    `reason` is one short word that a program can test, `detail` the sentence behind it.
    """

    says: ClassVar[str] = "The store failed"

    def __init__(self, detail: str, *, reason: str = "") -> None:
        self.detail: str = detail
        self.reason: str = reason
        super().__init__(f"{self.says}: {detail}")


class Fenced(StoreError):
    """The claim was superseded or given up: another worker may own the task. Drop it; nothing was written."""

    says: ClassVar[str] = "The claim is no longer valid"


class Conflict(StoreError):
    """Something moved since the caller looked (the log or the inbox).

    Look again and retry; nothing was written.
    """

    says: ClassVar[str] = "The task moved meanwhile"


class Duplicate(StoreError):
    """A task with this id, or a post with this dedupe key, was accepted before. The first one stands."""

    says: ClassVar[str] = "Already accepted"


class Unavailable(StoreError):
    """The store could not be reached or did not answer.

    Whether the call took effect is unknown. Repeating it with the same `append_id`, dedupe key, task id or
    spawn key is safe.
    """

    says: ClassVar[str] = "The store is unavailable"


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
