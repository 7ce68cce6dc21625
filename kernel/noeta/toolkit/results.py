"""What tools give back: making an output of any value, and keeping long text out of the conversation."""

from __future__ import annotations

import os
import re
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import msgspec

from noeta.core.text import storable_text
from noeta.core.tool import RESULT_CEILING_CHARS as RESULT_CEILING_CHARS
from noeta.core.tool import ToolOutput as ToolOutput
from noeta.core.tool import text_output as text_output
from noeta.toolkit.sanitize import storable

PREVIEW_CHARS = 4_000
"""How much of a long text its preview shows."""


class Spill(Protocol):
    """Saves a text too long to be sent: the preview that stands in for it. `name` begins the file's name."""

    def __call__(self, text: str, name: str) -> str: ...


def output_of(value: object) -> ToolOutput:
    """`value` as an output: a `ToolOutput` as it is, text as text, None as no text, the rest as JSON.

    Raises `NotStorable`, naming the place, for what JSON cannot say.
    """
    match value:
        case ToolOutput():
            return value
        case None:
            return text_output("")
        case str():
            return text_output(storable_text(value))
    return text_output(msgspec.json.encode(storable(value)).decode())


def cut_head(text: str, chars: int) -> str:
    """The beginning of `text`: at most `chars` characters, and whole lines unless the first one is longer."""
    if len(text) <= chars:
        return text
    head = text[: max(chars, 0)]
    return head[: head.rfind("\n") + 1] or head


def cut_tail(text: str, chars: int) -> str:
    """The end of `text`: at most `chars` characters, and whole lines unless the last one is longer."""
    if len(text) <= chars:
        return text
    start = len(text) - max(chars, 0)
    border = text.find("\n", max(start - 1, 0), len(text) - 1) + 1
    return text[border or start :]


def cut_middle(text: str, chars: int, note: str = "") -> str:
    """`text` if it has at most `chars` characters, else its beginning and its end, cut at line borders.

    Three quarters of `chars` go to the beginning. Between the two stands a line that says how much was left
    out, and then `note`; it comes on top of `chars`.
    """
    if len(text) <= chars:
        return text
    head = cut_head(text, chars - chars // 4)
    tail = cut_tail(text[len(head) :], chars // 4)
    left_out = text[len(head) : len(text) - len(tail)]
    lines = left_out.count("\n") + (not left_out.endswith("\n"))
    said = f"{len(left_out):,} characters in {lines:,} {'line' if lines == 1 else 'lines'} left out"
    before = "" if head.endswith("\n") or not head else "\n"
    return f"{head}{before}[{said}.{note and ' '}{note}]\n{tail}"


def spill_to(directory: str | os.PathLike[str], *, preview_chars: int = PREVIEW_CHARS) -> Spill:
    """A `Spill` that saves texts in `directory`, which is made when the first one comes.

    The preview is the text's beginning and end, with a line between that says how much was left out and the
    path of the whole. It shows at most `preview_chars` characters, and at most half of the text. The file's
    name is `name` as far as it is safe, and a part of the text's sha-256, so the same text is saved once. A
    file is there as a whole or not at all; it and the directory are the user's alone (0600, 0700).

    Saving blocks as long as writing a file takes. When it fails the preview says so and nothing is raised:
    the call has run, and its result must not be lost with the file.
    """
    place = Path(directory)

    def spill(text: str, name: str) -> str:
        data, chars = storable_text(text).encode(), min(preview_chars, len(text) // 2)
        path = place / f"{_safe(name)}-{sha256(data).hexdigest()[:16]}.txt"
        try:
            _write(path, data)
        except OSError as error:
            return cut_middle(text, chars, f"The whole could not be saved: {error.strerror}.")
        return cut_middle(text, chars, f"The whole is in {path}.")

    return spill


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or "result"


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The temporary file is made for its user alone, and keeps that under its new name.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".spill-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
