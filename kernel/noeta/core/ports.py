"""What the kernel needs from its host and never takes by itself: time and randomness."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The only source of time for the kernel and for stores."""

    def now(self) -> float:
        """Epoch seconds. May jump; used for what people see and for timers."""

    def monotonic(self) -> float:
        """Seconds that never go back, from an arbitrary start; used for leases."""

    async def sleep(self, seconds: float) -> None:
        """Wait that long by `monotonic`."""


class Ids(Protocol):
    """The only source of randomness for the kernel and for stores."""

    def token(self) -> bytes:
        """16 random bytes, never given out before."""

    def new(self) -> str:
        """A short text for a new id, never given out before."""
