"""Waiting for the store and for something in this process at once."""

from __future__ import annotations

import anyio

from noeta.toolkit.store import Watch


class Bell:
    """Wakes the one who waits for a store's changes, on one event loop. A ring with nobody there is kept."""

    def __init__(self) -> None:
        self._rung = False
        self._waiting: anyio.CancelScope | None = None

    def ring(self) -> None:
        """Wake whoever waits, or the next one who would."""
        self._rung = True
        if self._waiting:
            self._waiting.cancel()

    async def wait(self, watch: Watch, seconds: float) -> None:
        """Wait for a change or a ring, for at most those seconds of the store's clock."""
        if not self._rung:
            with anyio.CancelScope() as self._waiting:
                await watch.wait(seconds)
        self._rung, self._waiting = False, None
