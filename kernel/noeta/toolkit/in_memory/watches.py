"""How the in-memory store tells those who wait for changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.lowlevel

from noeta.core.ports import Clock


class Signal:
    """Remembers a change until it is waited for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = anyio.Event()

    def mark(self) -> None:
        """Something changed."""
        self._changed.set()

    async def wait(self, timeout: float) -> bool:
        """Wait for a change (True), for at most `timeout` seconds of the store's clock (False)."""
        if self._changed.is_set():
            await anyio.lowlevel.checkpoint()
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(self._stop, group.cancel_scope, timeout)
                await self._changed.wait()
                group.cancel_scope.cancel()
        if not self._changed.is_set():
            return False
        self._changed = anyio.Event()
        return True

    async def _stop(self, waiting: anyio.CancelScope, timeout: float) -> None:
        await self._clock.sleep(timeout)
        waiting.cancel()


class Watches:
    """Everyone who watches one task, or all of them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._signals: dict[str | None, set[Signal]] = {}

    @contextmanager
    def watch(self, task: str | None) -> Iterator[Signal]:
        """A signal that is marked when the task (None: any) changes."""
        signal = Signal(self._clock)
        self._signals.setdefault(task, set()).add(signal)
        try:
            yield signal
        finally:
            self._signals[task].discard(signal)
            if not self._signals[task]:
                del self._signals[task]

    def mark(self, task: str) -> None:
        """The task changed."""
        for signal in (*self._signals.get(task, ()), *self._signals.get(None, ())):
            signal.mark()
