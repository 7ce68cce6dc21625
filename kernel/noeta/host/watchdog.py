"""Noticing, from a thread, that the event loop stands still: a plain hook cannot be stopped otherwise."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable

import anyio

TICK_SECONDS = 0.25
REPORT_SECONDS = 1.0
EXIT_STATUS = 70
"""The status of a process that ended itself since its loop stood still: ``EX_SOFTWARE`` of sysexits.h."""

_log = logging.getLogger("noeta")


class Watchdog:
    """Reports a loop that stands still for a second, and ends the process when that outlasts a lease.

    By then other workers take its tasks over, and nothing here would ever go on. `lease` is in seconds;
    `busy` says whether there are tasks to lose. What holds the interpreter itself, such as a call into C
    that lets no other thread run, is not noticed. Time in which the whole process is stopped does not count.
    """

    def __init__(self, lease: float, busy: Callable[[], bool]) -> None:
        self._lease, self._busy = lease, busy
        self._beats, self._over = 0, threading.Event()

    async def run(self) -> None:
        """Watch the loop that runs this, until it is cancelled."""
        arguments = (threading.get_ident(),)
        threading.Thread(target=self._watch, args=arguments, name="noeta-watchdog", daemon=True).start()
        try:
            while True:
                self._beats += 1
                await anyio.sleep(TICK_SECONDS)
        finally:
            self._over.set()

    def _watch(self, loop: int) -> None:
        seen, still = 0, 0.0
        while not self._over.wait(TICK_SECONDS):
            before, still = still, still + TICK_SECONDS if self._beats == seen else 0.0
            seen = self._beats
            if before < REPORT_SECONDS <= still:
                _log.warning("the event loop has not come round for %g s; it is in:\n%s", still, _where(loop))
            if still >= self._lease and self._busy():
                text = "the event loop stood still for %g s, a whole lease: this process ends now\n%s"
                _log.critical(text, still, _where(loop))
                os._exit(EXIT_STATUS)


def _where(thread: int) -> str:
    """What the thread is doing."""
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)[-8:]) if frame else ""
