"""Stopping a call at an exact place: where it suspends for the n-th time. There it is cancelled, or held."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

import anyio

from noeta.core.errors import NoetaError

PATIENCE = 0.05
"""The seconds for which a held call waits for one that does not go on before the held one does."""


class Cut:
    """Awaits `call` in `scope`, and cancels the scope where the call suspends for the `at`-th time.

    `reached` says whether it came that far.
    """

    def __init__(self, call: Awaitable[Any], scope: anyio.CancelScope, at: int) -> None:
        self.call: Awaitable[Any] = call
        self.scope: anyio.CancelScope = scope
        self.at: int = at
        self.reached: bool = False

    def suspends(self) -> None:
        """The call suspends for that time."""
        self.scope.cancel()

    async def resumes(self) -> None:
        """It is about to go on after that."""

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
                self.suspends()
            answer = raised = None
            try:
                answer = yield signal
                if count == self.at:
                    yield from self.resumes().__await__()
            except BaseException as error:
                raised = error


class Hold(Cut):
    """Awaits `call`, and holds it where it suspends for the `at`-th time until `over` is set.

    `begun` is set when it is held. It is not held for ever, since the one to wait for may need what it has.
    """

    def __init__(self, call: Awaitable[Any], at: int) -> None:
        super().__init__(call, anyio.CancelScope(), at)
        self.begun: anyio.Event = anyio.Event()
        self.over: anyio.Event = anyio.Event()

    def suspends(self) -> None:
        self.begun.set()

    async def resumes(self) -> None:
        with anyio.move_on_after(PATIENCE):
            await self.over.wait()


async def outcome(call: Awaitable[Any]) -> Any:
    """What a call returns, or the name of the error of the port that it raises."""
    try:
        return await call
    except NoetaError as error:
        return type(error).__name__


async def within(
    call: Callable[[], Awaitable[Any]], at: int, other: Callable[[], Awaitable[Any]]
) -> tuple[Any, Any, bool]:
    """Run `call` until it suspends for the `at`-th time, then `other` whole, then the rest of `call`.

    Gives both outcomes, and whether `call` came that far; when not, `other` ran after it.
    """
    held = Hold(call(), at)
    found: list[Any] = []

    async def run() -> None:
        await held.begun.wait()
        found.append(await outcome(other()))
        held.over.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        first = await outcome(held)
        held.begun.set()
    return first, found[0], held.reached
