"""How the in-memory store tells those who wait for changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import anyio
import anyio.lowlevel

from noeta.core.ports import Clock

Change = Literal["log", "row", "work"]
"""What changed of a task: its records alone, its inbox or row too, or in a way that gives workers to do."""
REACH: dict[Change, int] = {"log": 1, "row": 2, "work": 4}


class Signal:
    """Remembers a change until it is waited for, by one at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = False
        self._asleep: anyio.CancelScope | None = None

    def mark(self) -> None:
        """Something changed."""
        self._changed = True
        if self._asleep:
            self._asleep.cancel()

    async def wait(self, timeout: float) -> bool:
        """Wait for a change (True), for at most `timeout` seconds of the store's clock (False).

        Without a time it says at once whether there was one.
        """
        if timeout > 0 and self._changed:
            await anyio.lowlevel.checkpoint()
        elif timeout > 0:
            # To cut a sleep off costs far less than another task that sleeps.
            with anyio.CancelScope() as self._asleep:
                await self._clock.sleep(timeout)
        changed, self._changed = self._changed, False
        return changed


class Watches:
    """Everyone who watches one task, or what workers have to do."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._signals: dict[tuple[str | None, bool], set[Signal]] = {}

    @contextmanager
    def watch(self, task: str | None, *, log: bool = True) -> Iterator[Signal]:
        """A signal that is marked when the task changes (None: when a worker may have something to do).

        Without `log`, records alone are no change.
        """
        signal, place = Signal(self._clock), (task, log)
        self._signals.setdefault(place, set()).add(signal)
        try:
            yield signal
        finally:
            self._signals[place].discard(signal)
            if not self._signals[place]:
                del self._signals[place]

    def mark(self, task: str, change: Change) -> None:
        """The task changed."""
        places = ((task, True), (task, False), (None, True), (None, False))
        for place in places[: REACH[change]]:
            for signal in self._signals.get(place, ()):
                signal.mark()

    def mark_all(self) -> None:
        """Anything may have changed."""
        for signals in self._signals.values():
            for signal in signals:
                signal.mark()
