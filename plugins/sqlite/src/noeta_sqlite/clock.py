"""The clock of leases: it runs from the start of the machine, through sleep too, and nobody can set it."""

from __future__ import annotations

import time
from pathlib import Path

from noeta.toolkit.system import SystemClock


class BootClock(SystemClock):
    """The machine's clocks, the monotonic one the same for all processes."""

    def monotonic(self) -> float:
        """Seconds since the machine was started."""
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """A name of this start of the machine: another name means that every lease is over."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        # Elsewhere the start itself names it, to the minute: reading it twice gives the same.
        return f"{round((time.time() - time.monotonic()) / 60)}"
