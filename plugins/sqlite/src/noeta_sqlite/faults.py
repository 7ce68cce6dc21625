"""What went wrong, as one of the port's errors with a sentence that says what to do."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from noeta.toolkit.store import Corrupt, Full, NotStorable, ReadOnly, StoreError, Unavailable

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
NO_HANDLES = {errno.EMFILE, errno.ENFILE}


Fault = sqlite3.Error | OSError | OverflowError | UnicodeEncodeError
"""What SQLite and the system raise, and Python on the way to them."""
FAULTS = (sqlite3.Error, OSError, OverflowError, UnicodeEncodeError)


def translated(error: Fault, path: Path) -> StoreError | NotStorable:
    """The port's error for one of these."""
    if isinstance(error, OverflowError | UnicodeEncodeError):
        return NotStorable("what the store was given", f"{error}")
    if isinstance(error, OSError):
        return _from_system(error, path)
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    said = f"{path}: {error}"
    if code == sqlite3.SQLITE_FULL:
        return Full(f"{said}. Free space on its disk, then go on.", reason="disk")
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY_DBMOVED:
        return replaced(path)
    if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        return ReadOnly(f"{said}. Let this user write to the file and to its folder.", reason="file")
    if code == sqlite3.SQLITE_NOTADB:
        return no_database(path)
    # A column of text that is no text has no code of its own.
    if code == sqlite3.SQLITE_CORRUPT or "decode to UTF-8" in str(error):
        return Corrupt(f"{said}. Copy the file aside before you repair it.", reason="page")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}:
        return Unavailable(
            f"{said}. Another process holds the file for long: see who has it open, then try again.",
            reason="busy",
        )
    if code == sqlite3.SQLITE_IOERR:
        return Unavailable(f"{said}. Look at the disk (`dmesg`), then try again.", reason="io")
    if code == sqlite3.SQLITE_CANTOPEN:
        return Unavailable(f"{said}. Check the path, and who may use its folder.", reason="open")
    return Unavailable(f"{said}. Try again; if it stays so, report it.", reason="sqlite")


def _from_system(error: OSError, path: Path) -> StoreError:
    said = f"{path}: {error.strerror or error}"
    if error.errno in NO_ROOM:
        return Full(f"{said}. Free space on its disk, then go on.", reason="disk")
    if error.errno in NO_HANDLES:
        return Unavailable(f"{said}. Raise the limit of open files (`ulimit -n`).", reason="handles")
    if error.errno == errno.EIO:
        return Unavailable(f"{said}. Look at the disk (`dmesg`), then try again.", reason="io")
    if error.errno in NOT_ALLOWED and _is_file(path):
        return ReadOnly(f"{said}. Let this user write to the file and to its folder.", reason="file")
    return Unavailable(f"{said}. Name a file in a folder that can be written to.", reason="folder")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def no_database(path: Path) -> Corrupt:
    """The file does not even begin like a database."""
    return Corrupt(
        f"{path} is no SQLite database, or its first page is damaged. Name another one, or restore a backup.",
        reason="no-database",
    )


def gone(path: Path) -> Unavailable:
    """A file of the store is no longer there."""
    return Unavailable(
        f"{path} was deleted while it was open. Put it back, or stop every process that used it.",
        reason="gone",
    )


def replaced(path: Path) -> Unavailable:
    """Another file stands where one of the store's was."""
    return Unavailable(
        f"{path} was replaced while it was open. Start this process again to use the new file.",
        reason="replaced",
    )
