"""Time and randomness that a test controls: the `Clock` and `Ids` of a test."""

from __future__ import annotations

import math
import random

import anyio
import anyio.lowlevel

MICRO = 1_000_000


class FrozenClock:
    """A clock that moves only when told to. It belongs to one event loop.

    It counts whole microseconds, so that ten steps of 0.1 are one second.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._wall = round(now * MICRO)
        self._elapsed = 0
        self._sleepers: list[tuple[float, anyio.Event]] = []

    def now(self) -> float:
        """Epoch seconds."""
        return self._wall / MICRO

    def monotonic(self) -> float:
        """Seconds since the clock was made, as far as it was advanced."""
        return self._elapsed / MICRO

    def advance(self, seconds: float) -> None:
        """Let time pass: both clocks move, and those who have slept long enough wake, in order of time."""
        if seconds < 0:
            raise ValueError(f"Time does not go back by {-seconds} seconds; `jump` moves the wall clock.")
        self._wall += round(seconds * MICRO)
        self._elapsed += round(seconds * MICRO)
        for until, awake in sorted(self._sleepers, key=lambda sleeper: sleeper[0]):
            if until <= self._elapsed:
                awake.set()

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as a person or a time server does. Nobody wakes."""
        self._wall += round(seconds * MICRO)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced that far, by a microsecond at least; for `math.inf`, for ever."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        # Some time has to pass, and all the time there is never does.
        long = math.inf if seconds == math.inf else max(round(seconds * MICRO), 1)
        sleeper = (self._elapsed + long, anyio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)


class SeededIds:
    """Ids that are the same in every run with the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def token(self) -> bytes:
        """16 bytes."""
        return self._random.randbytes(16)

    def new(self) -> str:
        """16 characters: letters and digits in lower case."""
        return self._random.randbytes(8).hex()
