"""Cancelling a call at an exact place: where it suspends for the n-th time."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any

import anyio


class Cut:
    """Awaits `call` in `scope`, and cancels the scope where the call suspends for the `at`-th time.

    `reached` says whether it came that far.
    """

    def __init__(self, call: Awaitable[Any], scope: anyio.CancelScope, at: int) -> None:
        self.call: Awaitable[Any] = call
        self.scope: anyio.CancelScope = scope
        self.at: int = at
        self.reached: bool = False

    def __await__(self) -> Generator[Any, Any, Any]:
        inner: Any = self.call.__await__()
        answer: Any = None
        raised: BaseException | None = None
        count = 0
        while True:
            try:
                signal = inner.send(answer) if raised is None else inner.throw(raised)
            except StopIteration as done:
                return done.value
            count += 1
            if count == self.at:
                self.reached = True
                self.scope.cancel()
            answer = raised = None
            try:
                answer = yield signal
            except BaseException as error:
                raised = error
