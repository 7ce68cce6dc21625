"""Writing to whoever reads, from a thread of its own, so that a reader who pauses holds up no task."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import click

from noeta_cli.output import clean


class Outlet:
    """Texts for standard output and standard error, written in the order in which they were put.

    What goes to a terminal is cleaned. `put` and `close` raise `BrokenPipeError` once nobody reads standard
    output any more. A standard error that nobody reads is no error.
    """

    def __init__(self) -> None:
        self._texts: SimpleQueue[tuple[str, bool] | None] = SimpleQueue()
        self._broken = False
        self._thread: threading.Thread | None = None
        # Whether the last thing on a terminal that both go to is half a line.
        self._open_line = False
        self._terminal: bool = sys.stdout.isatty()
        self._both: bool = self._terminal and sys.stderr.isatty()

    def put(self, text: str) -> None:
        """A piece of the answer, as it comes."""
        if self._broken:
            raise BrokenPipeError
        self._send(clean(text) if self._terminal else text, False)

    def say(self, text: str, **style: Any) -> None:
        """A line besides the answer. `style` is for terminals, as `click.style` takes it."""
        self._send(f"{click.style(clean(text), **style)}\n", True)

    def close(self) -> None:
        """Wait until all is written."""
        if self._thread is not None:
            self._texts.put(None)
            self._thread.join()
            self._thread = None
        if self._broken:
            raise BrokenPipeError

    def _send(self, text: str, error: bool) -> None:
        if self._thread is None:
            # A daemon, since a process that is told to leave does not wait for who reads.
            self._thread = threading.Thread(target=self._write, name="noeta-outlet", daemon=True)
            self._thread.start()
        self._texts.put((text, error))

    def _write(self) -> None:
        while (item := self._texts.get()) is not None:
            text, error = item
            try:
                if error and self._open_line:
                    click.echo(err=True)
                    self._open_line = False
                click.echo(text, nl=False, err=error)
                if not error and text:
                    self._open_line = self._both and not text.endswith("\n")
            except BrokenPipeError:
                self._lose(error)
            except OSError:
                # A terminal that is gone.
                self._lose(error)

    def _lose(self, error: bool) -> None:
        self._broken = self._broken or not error
        gone = sys.stderr if error else sys.stdout
        # Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), gone.fileno())


class Told(logging.Handler):
    """What noeta logs, as lines of an outlet; without one, of standard error."""

    def __init__(self, *, times: bool = False) -> None:
        super().__init__()
        self.outlet: Outlet | None = None
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s" if times else "noeta: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Tell it."""
        text = self.format(record)
        if self.outlet is not None:
            self.outlet.say(text)
        else:
            click.echo(clean(text), err=True)


@contextmanager
def told(*, times: bool = False) -> Iterator[Told]:
    """Tell people what noeta warns of, for the length of a block."""
    handler, logger = Told(times=times), logging.getLogger("noeta")
    before = logger.handlers[:], logger.propagate
    logger.handlers[:], logger.propagate = [handler], False
    try:
        yield handler
    finally:
        logger.handlers[:], logger.propagate = before
