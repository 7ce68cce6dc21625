"""Which files the agent has seen, and as what: the fold of the records."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Seen(Struct, frozen=True, kw_only=True):
    """A file as the agent last saw it; the fields are those of the record."""

    sha256: str
    changed: float
    partial: bool = False


class Reads(Struct, frozen=True):
    """What was seen last, by real path."""

    files: dict[str, Seen] = {}


def folded(reads: Reads, kind: str, data: Any) -> Reads:
    """The state after a record. What is of no interest changes nothing."""
    if kind != "file_read":
        return reads
    seen = Seen(sha256=data.sha256, changed=data.changed, partial=data.partial)
    return Reads({**reads.files, data.path: seen})
