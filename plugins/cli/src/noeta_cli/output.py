"""What commands print: tables, sentences and JSON, with nothing in them that a terminal would obey."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Any

import click

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].{0,4096}?(?:\x07|\x1b\\|\x9c)|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|[\x90\x98\x9d\x9e\x9f].{0,4096}?(?:\x07|\x1b\\|\x9c)",
    re.DOTALL,
)
"""What makes a terminal do something: colours, titles, the clipboard, places to write at.

One that does not end is none, so that nobody hides the rest of a text behind its beginning.
"""
# Besides single control characters those that let text run backwards, so that it reads as another one.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ABOVE_ASCII = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
UNITS = ("B", "kB", "MB", "GB", "TB")
LAST_CHARS = 20
"""How wide the last column of a table is at least, also where the line is too short."""
PATIENCE = 1.0
"""How many seconds something may take before the person is told what goes on."""


def clean(text: str) -> str:
    """`text` without control sequences and control characters; line breaks and tabs stay."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def one_line(text: str, limit: int = 0) -> str:
    """`text` cleaned, on one line, and cut to `limit` characters (0: not at all)."""
    # The whole of a long text need not be looked at to show its beginning.
    line = " ".join(clean(text[: 20 * limit] if limit else text).split())
    return line if not limit or len(line) <= limit else f"{line[: limit - 1]}…"


def is_terminal() -> bool:
    """Whether a person reads standard output as it comes."""
    return sys.stdout.isatty()


def show(text: str = "") -> None:
    """Print text for people on standard output, cleaned."""
    click.echo(clean(text))


def note(text: str) -> None:
    """Say something besides the answer, on standard error."""
    click.echo(f"noeta: {clean(text)}", err=True)


def show_json(value: Any, *, pretty: bool = False) -> None:
    """Print one JSON value, on one line unless `pretty`. What JSON does not know is told in words."""
    import msgspec

    data = msgspec.json.encode(value, enc_hook=repr)
    data = msgspec.json.format(data) if pretty else data
    if is_terminal():
        # JSON lets these stand as they are.
        text = data.decode()
        data = _ABOVE_ASCII.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
    click.echo(data)


def show_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns. On a terminal the last column ends where a line does."""
    lines = [[one_line(cell) for cell in row] for row in rows]
    all_ = [[head.upper() for head in heads], *lines]
    widths = [max(map(len, column)) for column in zip(*all_, strict=True)]
    ahead = sum(widths[:-1]) + 2 * len(widths[:-1])
    # Half a line of it is worth more than a line that is whole.
    room = max(get_terminal_size().columns - ahead, LAST_CHARS) if is_terminal() else 0
    for number, line in enumerate(all_):
        cells = [f"{cell:{width}}" for cell, width in zip(line[:-1], widths, strict=False)]
        text = "  ".join([*cells, one_line(line[-1], room)]).rstrip()
        click.echo(click.style(text, bold=True) if number == 0 else text)


def bold(text: str) -> str:
    """`text` cleaned, and set off on a terminal. For `click.echo`, which takes it out again elsewhere."""
    return click.style(clean(text), bold=True)


def age(seconds: float) -> str:
    """How long ago, in one unit."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def when(at: float) -> str:
    """An epoch second in the time of this place, if it is one."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return str(at)


def size(number: float) -> str:
    """Bytes, in the unit that fits."""
    for unit in UNITS[:-1]:
        if number < 1_000:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1_000
    return f"{number:.1f} {UNITS[-1]}"


@contextmanager
def working(what: str, *, always: bool = False) -> Iterator[None]:
    """Tell the person what goes on when it takes longer than a second, if there is one who reads it.

    `always` is for what may never end.
    """
    if not (always or sys.stderr.isatty()):
        yield
        return
    from threading import Timer

    timer = Timer(PATIENCE, note, [f"{what} ..."])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
