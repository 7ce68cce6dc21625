"""Trust: what a project brings counts only while the person trusts it, byte for byte.

Reading is the moment that counts: `Trust.look` reads a file once, and whoever uses it uses those bytes.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from noeta.host.places import Places
from noeta.toolkit.trust import (
    VERSION,
    TrustedFile,
    TrustList,
    digest,
    is_linked,
    others_may_write,
    place_of,
    read_trusted,
)

MAX_BYTES = 4 * 2**20
"""The largest file that is read. A plugin file or settings are far smaller."""
LINKED = "it is not trusted: a link leads to its folder, so it may be another project's; put the folder here"
WAY_OUT = "look at it, then run: noeta plugins trust"


class Looked(Struct, frozen=True, kw_only=True):
    """A file as it was read, and whether it counts. `reason` says why not, `kind` what it is to noeta."""

    path: Path
    kind: str
    data: bytes
    sha256: str
    reason: str = ""

    @property
    def counts(self) -> bool:
        """Whether it may be used."""
        return not self.reason


class Trust:
    """What the person trusts, as of the moment this is made.

    `fault` says why the trust file cannot be used, when it cannot: then nothing of a project is trusted.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self.fault: str = ""
        self._listed: frozenset[TrustedFile] = frozenset()
        try:
            self._listed = read_trusted(places.trust_file)
        except OSError as error:
            self.fault = str(error)
        self._known = {each.path for each in self._listed}

    def look(self, path: Path, kind: str, *, own: bool = False) -> Looked | None:
        """Read a file and judge it; None when there is none.

        `own` says that it is listed in the person's own folder. Such a file needs no trust, unless it is a
        link to one of the project, or others may write to it.
        """
        if path.is_relative_to(self._places.project) and is_linked(path) and path.exists():
            return Looked(path=path, kind=kind, data=b"", sha256="", reason=LINKED)
        try:
            data, status = read_whole(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            why = f"it cannot be read: {error.strerror or error}"
            return Looked(path=path, kind=kind, data=b"", sha256="", reason=why)
        sha256 = digest(data)
        own = own and not self._is_of_project(path)
        why = others_may_write(status) if own else self._distrusted(path, sha256)
        return Looked(path=path, kind=kind, data=data, sha256=sha256, reason=why)

    def project_files(self) -> list[Looked]:
        """Everything of the project that counts only when it is trusted, trusted or not, by path."""
        found = [self.look(path, kind) for path, kind in sorted(self._candidates())]
        return [each for each in found if each is not None]

    def _candidates(self) -> Iterator[tuple[Path, str]]:
        places, folder = self._places, self._places.project / ".noeta"
        if not same_file(places.project_file, places.user_file):
            yield places.project_file, "settings"
        for path in listing(folder):
            if path.suffix in {".toml", ".json"}:
                yield path, "settings" if path == places.local_file else "configuration"
        for path in listing(places.project_plugins):
            if path.suffix == ".py":
                yield path, "plugin file"
        yield places.project / ".mcp.json", "configuration"
        if self._is_of_project(places.user_file):
            yield places.user_file, "settings"
        for path in listing(places.user_plugins):
            if path.suffix == ".py" and self._is_of_project(path):
                yield path, "plugin file"

    def _distrusted(self, path: Path, sha256: str) -> str:
        if self.fault:
            return f"it is not trusted: {self.fault}"
        place = place_of(path)
        if TrustedFile(path=place, sha256=sha256) in self._listed:
            return ""
        if place in self._known:
            return f"it changed since it was trusted; {WAY_OUT}"
        return f"it is not trusted; {WAY_OUT}"

    def _is_of_project(self, path: Path) -> bool:
        """Whether something in the person's folder leads out of it, into the project."""
        real = Path(os.path.realpath(path))
        folder, project = (
            Path(os.path.realpath(each)) for each in (self._places.config, self._places.project)
        )
        return not real.is_relative_to(folder) and real.is_relative_to(project)


def trust(places: Places, files: Iterable[Looked]) -> None:
    """Trust these files with the bytes that were shown, from the next `Trust` on.

    Raises `OSError` when the trust file cannot be read or written, and `ValueError` for a file that could not
    be read.
    """
    new = []
    for each in files:
        if not each.sha256:
            raise ValueError(f"{each.path} cannot be trusted: {each.reason}")
        new.append(TrustedFile(path=place_of(each.path), sha256=each.sha256))
    with _changing(places) as listed:
        listed.update(new)


def withdraw(places: Places, paths: Iterable[Path]) -> list[TrustedFile]:
    """Trust these files no more, whatever their bytes; what was trusted. Raises `OSError` as `trust` does."""
    gone = {place_of(path) for path in paths}
    with _changing(places) as listed:
        dropped = sorted(each for each in listed if each.path in gone)
        listed.difference_update(dropped)
    return dropped


@contextmanager
def _changing(places: Places) -> Iterator[set[TrustedFile]]:
    """The list, to be changed. One at a time changes it, and who reads meanwhile sees the old or the new."""
    folder = places.trust_file.parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(folder / f"{places.trust_file.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        listed = set(read_trusted(places.trust_file))
        yield listed
        _replace(places.trust_file, msgspec.json.encode(TrustList(version=VERSION, trusted=sorted(listed))))
    finally:
        os.close(lock)


def _replace(file: Path, data: bytes) -> None:
    import tempfile

    # Made by `mkstemp`, so only its owner may read and write it.
    number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(number, "wb") as opened:
            opened.write(msgspec.json.format(data) + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
        Path(name).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def read_whole(path: Path) -> tuple[bytes, os.stat_result]:
    """The bytes of an ordinary file, and its status as it was read. Raises `OSError`.

    What is no ordinary file is refused without waiting for it.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode):
        os.close(number)
        raise OSError("it is no ordinary file")
    with os.fdopen(number, "rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(f"it is larger than {MAX_BYTES >> 20} MiB")
    return data, status


def listing(folder: Path) -> list[Path]:
    """What is in a folder, by name, but for hidden entries; nothing when it is no folder that can be read."""
    try:
        return sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    except OSError:
        return []


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file that is there."""
    try:
        return one.samefile(other)
    except OSError:
        return False
