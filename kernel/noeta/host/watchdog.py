"""Noticing, from a thread, that the event loop stands still: a plain hook cannot be stopped otherwise."""

from __future__ import annotations

import inspect
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType

import anyio

TICK_SECONDS = 0.25
REPORT_SECONDS = 3.0
"""A second is soon over: a local model is loaded, and other programs want the processor too."""
EXIT_STATUS = 70
"""The status of a process that ended itself since its loop stood still: ``EX_SOFTWARE`` of sysexits.h."""

_log = logging.getLogger("noeta")


class Watchdog:
    """Reports a loop that one step holds up for seconds, and ends the process when that outlasts a lease.

    By then other workers take its tasks over, and nothing here would ever go on. A loop that is only busy,
    with very many steps that are ready at once, comes round in the end. `lease` is in seconds;
    `busy` says whether there are tasks to lose. What holds the interpreter itself, such as a call into C
    that lets no other thread run, is not noticed. Time in which the whole process is stopped does not count.
    """

    def __init__(self, lease: float, busy: Callable[[], bool]) -> None:
        self._lease, self._busy = lease, busy
        self._beats, self._over = 0, threading.Event()

    async def run(self) -> None:
        """Watch the loop that runs this, until it is cancelled."""
        arguments = (threading.get_ident(), _depth(sys._getframe()))
        threading.Thread(target=self._watch, args=arguments, name="noeta-watchdog", daemon=True).start()
        try:
            while True:
                self._beats += 1
                await anyio.sleep(TICK_SECONDS)
        finally:
            self._over.set()

    def _watch(self, loop: int, depth: int) -> None:
        seen, still, last = 0, 0.0, None
        while not self._over.wait(TICK_SECONDS):
            # While the loop comes round, no step is held on to: its frame would keep alive what it holds.
            step = _step(loop, depth) if self._beats == seen else None
            before, still = still, still if step is last else 0.0
            still = 0.0 if step is None else still + TICK_SECONDS
            seen, last = self._beats, step
            if before < REPORT_SECONDS <= still:
                _log.warning(
                    "one step has held the event loop up for %g s; it is in:\n%s", still, _where(loop)
                )
            if still >= self._lease and self._busy():
                text = "the event loop stood still for %g s, a whole lease: this process ends now\n%s"
                _log.critical(text, still, _where(loop))
                os._exit(EXIT_STATUS)


def _depth(frame: FrameType) -> int:
    """How many frames, those of the loop, stand around the step that `frame` is in."""
    inner: FrameType | None = frame
    while inner and inner.f_code.co_flags & inspect.CO_COROUTINE:
        inner = inner.f_back
    return len(_stack(inner))


def _step(thread: int, depth: int) -> FrameType | None:
    """The outermost frame of the step that the loop runs now, None when it waits."""
    stack = _stack(sys._current_frames().get(thread))
    return stack[-1 - depth] if len(stack) > depth else None


def _stack(frame: FrameType | None) -> list[FrameType]:
    """A frame and those around it."""
    stack = []
    while frame:
        stack.append(frame)
        frame = frame.f_back
    return stack


def _where(thread: int) -> str:
    """What the thread is doing."""
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)[-8:]) if frame else ""
