"""Files of this machine. Everything here blocks, and raises `OSError` as the system does."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from typing import Literal, TypeAlias

from noeta.toolkit.env import Changed, DirEntry, FileStat

Kind: TypeAlias = Literal["file", "dir", "other"]
NO_PATH = (FileNotFoundError, NotADirectoryError)
"""What the system raises when nothing is at a path."""


def real(path: str) -> str:
    """The path with all links resolved, also where its last parts do not exist.

    What cannot be told is an error and no guess, since gates compare the answer.
    """
    try:
        return os.path.realpath(path, strict=True)
    except NO_PATH:
        return os.path.realpath(path)


def look(path: str) -> FileStat | None:
    """What is at a path, behind all links."""
    try:
        found = os.stat(path)
    except NO_PATH:
        return None
    return FileStat(
        kind=_kind(found.st_mode),
        size=found.st_size,
        changed=found.st_mtime,
        mode=stat.S_IMODE(found.st_mode),
    )


def read(path: str, offset: int, limit: int | None) -> bytes:
    """Up to `limit` bytes from `offset`. Pipes and devices are refused: they may never end."""
    if offset < 0 or (limit is not None and limit < 0):
        raise _fails(errno.EINVAL, path)
    # Without O_NONBLOCK a pipe would keep this thread until somebody writes to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _check_regular(os.fstat(descriptor), path)
    except OSError:
        os.close(descriptor)
        raise
    with open(descriptor, "rb") as file:
        file.seek(offset)
        return file.read(-1 if limit is None else limit)


def replace(path: str, data: bytes, if_sha256: str | None, create: bool) -> None:
    """Put `data` in the place of the file, or of the one a link leads to, at once and for good.

    A new file is written beside the old one, moved to the disk, and renamed. So whoever reads sees all of the
    one or all of the other, also after a crash at any moment. Owner, group and mode stay as far as the system
    lets them. Other names of the old file (hard links) keep the old bytes.
    """
    folder, name = os.path.split(real(path))
    with _opened(folder) as place:
        before = _found(place, name, path)
        if before is None and if_sha256 is not None:
            raise Changed(path)
        if before is None and not create:
            raise _fails(errno.ENOENT, path)
        if before is not None and not os.access(name, os.W_OK, dir_fd=place, effective_ids=True):
            raise _fails(errno.EACCES, path)
        # A name that no tool looks for, and that nobody but its owner can open.
        temporary = f".noeta-{secrets.token_hex(8)}.tmp"
        try:
            _write(place, temporary, data, before)
            with _turn(place) if if_sha256 is not None else contextlib.nullcontext():
                _check_unchanged(place, name, if_sha256, path)
                os.replace(temporary, name, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=place)
            raise
        _flush_folder(place)


def entries(path: str) -> list[DirEntry]:
    """The entries of a folder, by name."""
    with os.scandir(path) as found:
        listed = [_entry(each) for each in found]
    return sorted(listed, key=lambda entry: entry.name)


def remove(path: str) -> None:
    """Remove a file, an empty folder, or a link and not what it leads to."""
    if stat.S_ISDIR(os.lstat(path).st_mode):
        os.rmdir(path)
    else:
        os.unlink(path)


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    """A folder that stays the same one, whatever is renamed meanwhile."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield place
    finally:
        os.close(place)


def _found(place: int, name: str, path: str) -> os.stat_result | None:
    """What is to be replaced. `path` is for the error."""
    try:
        found = os.stat(name or ".", dir_fd=place)
    except FileNotFoundError:
        return None
    _check_regular(found, path)
    return found


def _write(place: int, name: str, data: bytes, before: os.stat_result | None) -> None:
    """Write a new file and see it on the disk, with owner and mode of `before`."""
    mode = 0o666 if before is None else 0o600
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=place)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if before is not None:
            keeps = stat.S_IMODE(before.st_mode)
            now = os.fstat(descriptor)
            if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
                try:
                    os.fchown(descriptor, before.st_uid, before.st_gid)
                except PermissionError:
                    # A program that runs as its owner must not come to run as another one.
                    keeps &= 0o777
            os.fchmod(descriptor, keeps)
        os.fsync(descriptor)


@contextlib.contextmanager
def _turn(place: int) -> Iterator[None]:
    """Between looking at a file of this folder and replacing it, no other process of noeta does so."""
    # Where locks do not work, as in some network file systems, nobody can be kept out.
    with contextlib.suppress(OSError):
        fcntl.flock(place, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_UN)


def _check_unchanged(place: int, name: str, if_sha256: str | None, path: str) -> None:
    """Raise `Changed` unless the file has this sha-256, if one is expected."""
    if if_sha256 is None:
        return
    try:
        with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=place), "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise Changed(path) from None
    if found != if_sha256:
        raise Changed(path)


def _flush_folder(place: int) -> None:
    try:
        os.fsync(place)
    except OSError as error:
        # Some file systems cannot do that for folders. The file itself is on the disk.
        if error.errno != errno.EINVAL:
            raise


def _check_regular(found: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise _fails(errno.EISDIR, path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", path)


def _entry(entry: os.DirEntry[str]) -> DirEntry:
    try:
        found = entry.stat()
    except OSError:
        # A link to nothing, in a circle, or to where one may not look; or a name in a folder that may be
        # listed and not entered, of which the listing still tells the kind.
        kind: Kind = "dir" if entry.is_dir(follow_symlinks=False) else "other"
        kind = "file" if entry.is_file(follow_symlinks=False) else kind
        return DirEntry(name=entry.name, kind=kind, link=entry.is_symlink())
    return DirEntry(
        name=entry.name, kind=_kind(found.st_mode), link=entry.is_symlink(), changed=found.st_mtime
    )


def _kind(mode: int) -> Kind:
    if stat.S_ISDIR(mode):
        return "dir"
    return "file" if stat.S_ISREG(mode) else "other"


def _fails(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
