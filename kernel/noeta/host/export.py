"""A task's whole log as JSON lines, with the bytes of each record as the store keeps them.

- The first line is ``{"noeta_export": 1, "tasks": [...]}``: the row of the task, then of the task it
  continues, and so on.
- Each record is ``{"record": ...}``, where the dots are its bytes, unchanged; one that is no JSON is
  ``{"seq": ..., "damaged": BASE64}``. They come in the order of their seqs, the history that the task
  continues first.
- Each blob is ``{"blob": SHA256, "base64": BASE64}``, once, right behind the first record that needs it; one
  that the store does not have is ``{"blob": SHA256, "missing": true}``.
- The last line is ``{"end": {"records": ..., "blobs": ...}}``: a file without it was cut off.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import msgspec

from noeta.core.codec import UNREADABLE, Line, decode, with_body
from noeta.host.at_once import at_once, each_at_once, looking
from noeta.host.erasure import blobs_of
from noeta.toolkit.history import history, lineage
from noeta.toolkit.store import Reader

VERSION = 1


def exported(reader: Reader, task: str) -> Iterator[bytes]:
    """The lines of the export, each with its line break. Raises `UnknownTask`."""
    store = looking(reader)
    yield _line({"noeta_export": VERSION, "tasks": at_once(lineage(store, task))})
    records, done = 0, set[str]()
    for lines in each_at_once(history(store, task)):
        for line in lines:
            records += 1
            yield _record(line)
            for name in _blobs(reader, line):
                if name not in done:
                    done.add(name)
                    yield _blob(name, reader.read_blob(name))
    yield _line({"end": {"records": records, "blobs": len(done)}})


def _record(line: Line) -> bytes:
    try:
        # A JSON line is one line; what it says need not be known.
        json.loads(line.data)
        if b"\n" not in line.data and b"\r" not in line.data:
            return b'{"record":' + line.data + b"}\n"
    except (ValueError, RecursionError):
        pass
    return _line({"seq": line.seq, "damaged": b64encode(line.data).decode()})


def _blobs(reader: Reader, line: Line) -> list[str]:
    envelope = decode(line)
    if not envelope.blob:
        return [*blobs_of(envelope)]
    whole = with_body(envelope, reader.read_blob(envelope.blob) or b"")
    return [envelope.blob, *(blobs_of(whole) if whole.kind != UNREADABLE else ())]


def _blob(name: str, data: bytes | None) -> bytes:
    return _line(
        {"blob": name, "missing": True}
        if data is None
        else {"blob": name, "base64": b64encode(data).decode()}
    )


def _line(value: Any) -> bytes:
    return msgspec.json.encode(value) + b"\n"
