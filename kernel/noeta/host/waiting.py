"""Waiting for a task through a host, which ends at the latest when the host is left."""

from __future__ import annotations

from noeta.host.bell import Bell
from noeta.toolkit.store import Watch


class Waiting:
    """Who waits for tasks of a host. Once it is left, nobody may be there to get on with them."""

    def __init__(self) -> None:
        self._bells: set[Bell] = set()
        self._left = False

    async def on(self, bell: Bell, watch: Watch, seconds: float) -> None:
        """Wait as `bell` does. Raises `RuntimeError` once the host is left."""
        self._bells.add(bell)
        try:
            if not self._left:
                await bell.wait(watch, seconds)
        finally:
            self._bells.discard(bell)
        if self._left:
            raise RuntimeError("the host was left before this was done")

    def leave(self) -> None:
        """The host is left: nobody waits any longer."""
        self._left = True
        for bell in self._bells:
            bell.ring()
