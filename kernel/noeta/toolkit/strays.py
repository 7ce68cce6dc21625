"""Telling a cancel or an exit that code brought about itself from one that is meant for it."""

from __future__ import annotations

import asyncio

import anyio

from noeta.core.errors import told


def stray(error: BaseException) -> bool:
    """Whether nobody outside asked for this: it is then a failure of the code that raised it, like any other.

    So it is with `SystemExit`, and with the `CancelledError` of asyncio that comes out of waiting for a task
    which was cancelled by itself. Trio lets none out.
    """
    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, SystemExit)
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    return task is None or not (task.cancelling() or anyio.get_current_task().has_pending_cancellation())


def fault(error: BaseException) -> str:
    """What the code that raised `error` did wrong. Raises it again when that is no fault of the code."""
    if not isinstance(error, Exception) and not stray(error):
        raise error
    return told(error)
