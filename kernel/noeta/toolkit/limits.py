"""The time limit of a hook, and when it stands still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio


class Limit:
    """The time limit of the hook that runs. It stands still while the hook waits for `waits` things."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self.scope: anyio.CancelScope = scope
        self.waits: int = 0
        self.left: float = 0.0


LIMIT: ContextVar[Limit | None] = ContextVar("limit", default=None)
"""The limit of the hook that runs here."""


@contextmanager
def unlimited() -> Iterator[None]:
    """Inside, the time limit of the hook that runs stands still: it waits for a model, a person or other
    plugins.
    """
    limit = LIMIT.get()
    if limit is None:
        yield
        return
    if not limit.waits:
        limit.left, limit.scope.deadline = limit.scope.deadline - anyio.current_time(), float("inf")
    limit.waits += 1
    try:
        yield
    finally:
        limit.waits -= 1
        if not limit.waits:
            limit.scope.deadline = anyio.current_time() + limit.left
