"""Real time and real randomness: the `Clock` and `Ids` of a running process."""

from __future__ import annotations

import secrets
import time


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> float:
        """Epoch seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        # Who only reads the clock needs no event loop.
        import anyio

        await anyio.sleep(seconds)


class RandomIds:
    """Ids from the operating system's random source."""

    def token(self) -> bytes:
        """16 random bytes."""
        return secrets.token_bytes(16)

    def new(self) -> str:
        """16 random characters: letters and digits in lower case."""
        return secrets.token_hex(8)
