"""What a person trusts of a project: files, each at its place and with its bytes.

For plugins that read files of a project which make them run something. They read the bytes once, ask here,
and use those bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from noeta.toolkit.folders import data_folder

TRUST_FILE = "trust.json"
VERSION = 1


class TrustedFile(Struct, frozen=True, order=True):
    """A file that is trusted: its place, with the links of its folder resolved, and the hash of its bytes."""

    path: str
    sha256: str


class TrustList(Struct, frozen=True, kw_only=True):
    """What the trust file holds."""

    version: int
    trusted: list[TrustedFile]


def is_trusted(path: str | Path, data: bytes, environ: Mapping[str, str]) -> bool:
    """Whether the person trusts a file at this place with these bytes. What cannot be read trusts nothing.

    `path` is below the folder of the project, whose own links are resolved. A file that a link to a folder
    leads to is not trusted, as it may be another project's.

    Raises `ValueError` for a ``NOETA_HOME`` that is not absolute.
    """
    if is_linked(path):
        return False
    try:
        listed = read_trusted(data_folder(environ) / TRUST_FILE)
    except OSError:
        return False
    return TrustedFile(path=place_of(path), sha256=digest(data)) in listed


def read_trusted(file: Path) -> frozenset[TrustedFile]:
    """What a trust file lists; nothing when there is none.

    Raises `OSError` when it cannot be read, belongs to somebody else, lets others write, or is not of a form
    that this noeta knows.
    """
    try:
        with file.open("rb") as opened:
            if why := others_may_write(os.fstat(opened.fileno())):
                raise OSError(f"{file} is not used, since {why}")
            data = opened.read()
    except FileNotFoundError:
        return frozenset()
    try:
        made = msgspec.json.decode(data, type=TrustList)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OSError(f"{file} is damaged ({error}); remove it, and trust again what you trust") from error
    if made.version != VERSION:
        raise OSError(f"{file} is of version {made.version}, and this noeta knows {VERSION}; use a newer one")
    return frozenset(made.trusted)


def place_of(path: str | Path) -> str:
    """The place of a file: absolute, the links of its folder resolved, a link in its own place not."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 (a path that ends in .. has no name)
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def is_linked(path: str | Path) -> bool:
    """Whether a link leads to the folder of a file, so that its place is another one than it seems."""
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120 (as `place_of` takes it apart)
    return os.path.realpath(folder) != folder


def digest(data: bytes) -> str:
    """The hash by which bytes are trusted and blocked."""
    return hashlib.sha256(data).hexdigest()


def others_may_write(status: os.stat_result) -> str:
    """Why a file is not the person's own, else the empty text."""
    if status.st_uid not in {os.geteuid(), 0}:
        return f"it belongs to the user {status.st_uid}"
    return "anybody may write to it" if status.st_mode & 0o002 else ""
