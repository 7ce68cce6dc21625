"""What the plugin writes into a log. Logs outlive code, so a new field needs a default."""

from __future__ import annotations

from msgspec import Struct

from noeta.toolkit.record_types import record_types

NAME = "fs"


class FileRead(Struct, frozen=True, kw_only=True):
    """The agent saw a file.

    `path` is the real one, without links. `sha256` is that of the whole file, empty when the file was too
    large to be read whole. `changed` is when the file had last changed. `partial`: a limit of the plugin cut
    what the agent asked for.
    """

    path: str
    sha256: str
    changed: float
    partial: bool = False


RECORD_TYPES = record_types(FileRead)
