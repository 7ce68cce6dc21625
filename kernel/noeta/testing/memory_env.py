"""A place to act that is only in memory: files, folders, links, and programs that a test writes as functions.

async def date(run):
    await run.write("Monday\\n")
    return 0

env = MemoryEnv({"notes.txt": "Buy milk."}, programs={"date": date})
async with Host([agent], providers=providers, env=env) as host:
    ...
assert env.files["/project/notes.txt"] == b"Buy milk."
"""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal

import anyio.lowlevel
from msgspec import Struct

from noeta.core.ports import Clock
from noeta.testing.programs import Program, Running
from noeta.toolkit.env import Changed, DirEntry, FileStat, Process
from noeta.toolkit.system import SystemClock

MOST_LINKS = 40
"""How many links one path may lead through, as on Linux."""


class _File(Struct, frozen=True):
    data: bytes
    changed: float
    mode: int = 0o644


class _Folder(Struct, frozen=True):
    changed: float
    mode: int = 0o755


class _Link(Struct, frozen=True):
    target: str


class MemoryEnv:
    """An `ExecEnv` in which nothing is real and everything is as the system does it.

    `files` are texts or bytes by path, from `cwd`; the folders they need are made. `programs` are functions
    by name, called with an `Invocation`; no others are installed. Two calls at the same time end as if one
    had been made after the other. Nobody is kept from anything: modes are remembered, and not enforced.
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        programs: Mapping[str, Program] | None = None,
        cwd: str = "/project",
        home: str = "/home/user",
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._programs = dict(programs or {})
        # What is there, by the path without links.
        self._nodes: dict[str, _File | _Folder | _Link] = {"/": _Folder(self._clock.now())}
        self.cwd: str = cwd
        self.home: str = home
        for folder in (cwd, home):
            self._make_folders(folder)
        for path, data in (files or {}).items():
            self.put(path, data)

    @property
    def files(self) -> dict[str, bytes]:
        """Every file there is, by its path."""
        return {path: node.data for path, node in sorted(self._nodes.items()) if isinstance(node, _File)}

    def put(self, path: str, data: str | bytes, mode: int = 0o644) -> None:
        """Make or replace a file, as somebody else might at any time. Folders that it needs are made."""
        self._make_folders(posixpath.dirname(self.path(path)))
        content = data.encode() if isinstance(data, str) else data
        self._nodes[self._real(self.path(path))] = _File(content, self._clock.now(), mode)

    def link(self, path: str, target: str) -> None:
        """Make a link at `path`. What it points to need not be there."""
        where = self._real(self.path(path), follow=False)
        if where in self._nodes:
            raise _fails(errno.EEXIST, path)
        self._parent(where, path)
        self._nodes[where] = _Link(target)

    # ---- the port

    def path(self, text: str) -> str:
        """The absolute path; ``~`` is `home`. Raises `ValueError` for a NUL, which no path has."""
        if "\0" in text:
            raise ValueError("embedded null byte")
        if text == "~" or text.startswith("~/"):
            text = self.home + text[1:]
        # POSIX leaves the meaning of two slashes in front open, and so does `normpath`.
        return "/" + posixpath.normpath(posixpath.join(self.cwd, text)).lstrip("/")

    async def real(self, path: str) -> str:
        """The path with all links resolved. Raises `OSError` for links that lead in a circle."""
        await anyio.lowlevel.checkpoint()
        return self._real(self.path(path))

    async def stat(self, path: str) -> FileStat | None:
        """What is there, behind all links."""
        await anyio.lowlevel.checkpoint()
        match self._nodes.get(self._real(self.path(path))):
            case _File(data, changed, mode):
                return FileStat(kind="file", size=len(data), changed=changed, mode=mode)
            case _Folder(changed, mode):
                return FileStat(kind="dir", size=0, changed=changed, mode=mode)
        return None

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Up to `limit` bytes from `offset`; none behind the end."""
        await anyio.lowlevel.checkpoint()
        if offset < 0 or (limit is not None and limit < 0):
            raise _fails(errno.EINVAL, path)
        where = self._real(self.path(path))
        match self._nodes.get(where):
            case _File(data):
                return data[offset:] if limit is None else data[offset : offset + limit]
            case _Folder():
                raise _fails(errno.EISDIR, path)
        raise self._missing(where, path)

    async def write(
        self, path: str, data: bytes, *, if_sha256: str | None = None, create: bool = False
    ) -> None:
        """Replace the whole file. One that is gone has changed, if `if_sha256` says what it was."""
        await anyio.lowlevel.checkpoint()
        where = self._real(self.path(path))
        node = self._nodes.get(where)
        if isinstance(node, _Folder):
            raise _fails(errno.EISDIR, path)
        was = hashlib.sha256(node.data).hexdigest() if isinstance(node, _File) else None
        if if_sha256 is not None and if_sha256 != was:
            raise Changed(path)
        if node is None and not create:
            raise self._missing(where, path)
        self._parent(where, path)
        mode = node.mode if isinstance(node, _File) else 0o644
        self._nodes[where] = _File(bytes(data), self._clock.now(), mode)

    async def listdir(self, path: str) -> list[DirEntry]:
        """The entries of a folder, by name."""
        await anyio.lowlevel.checkpoint()
        where = self._real(self.path(path))
        match self._nodes.get(where):
            case None:
                raise self._missing(where, path)
            case _File():
                raise _fails(errno.ENOTDIR, path)
        return [self._entry(inside) for inside in sorted(self._inside(where))]

    async def mkdir(self, path: str) -> None:
        """Make a folder and those above it. Idempotent."""
        await anyio.lowlevel.checkpoint()
        self._make_folders(path)

    async def remove(self, path: str) -> None:
        """Remove a file, an empty folder, or a link and not what it points to."""
        await anyio.lowlevel.checkpoint()
        where = self._real(self.path(path), follow=False)
        if where == "/":
            raise _fails(errno.EBUSY, path)
        if where not in self._nodes:
            raise self._missing(where, path)
        if self._inside(where):
            raise _fails(errno.ENOTEMPTY, path)
        del self._nodes[where]

    async def rename(self, old: str, new: str) -> None:
        """Rename; a file replaces a file, and a folder an empty one."""
        await anyio.lowlevel.checkpoint()
        source = self._real(self.path(old), follow=False)
        self._parent(source, old)
        target = self._real(self.path(new), follow=False)
        self._parent(target, new)
        if "/" in (source, target):
            raise _fails(errno.EBUSY, old)
        if source not in self._nodes:
            raise self._missing(source, old)
        if target.startswith(f"{source}/"):
            raise _fails(errno.EINVAL, old)
        moves, there = self._nodes[source], self._nodes.get(target)
        if source == target:
            return
        if there is not None and isinstance(moves, _Folder) != isinstance(there, _Folder):
            # A folder above what moves is not empty, whatever else it is.
            inside = source.startswith(f"{target}/")
            wrong = errno.ENOTDIR if isinstance(moves, _Folder) else errno.EISDIR
            raise _fails(errno.ENOTEMPTY if inside else wrong, new)
        if self._inside(target):
            raise _fails(errno.ENOTEMPTY, new)
        for path in [path for path in self._nodes if path == source or path.startswith(f"{source}/")]:
            self._nodes[target + path[len(source) :]] = self._nodes.pop(path)

    async def which(self, name: str) -> str | None:
        """The path of a program of `programs`; all are in ``/bin``."""
        await anyio.lowlevel.checkpoint()
        program = name.removeprefix("/bin/")
        return f"/bin/{program}" if program in self._programs else None

    def process(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> AbstractAsyncContextManager[Process]:
        """Run one of `programs`. Another one is a `FileNotFoundError`, as is a `cwd` that is not there."""
        program = self._programs.get(argv[0].removeprefix("/bin/"))
        if program is None:
            raise _fails(errno.ENOENT, argv[0])
        where = self._real(self.path(cwd or self.cwd))
        if not isinstance(self._nodes.get(where), _Folder):
            raise self._missing(f"{where}/.", cwd or self.cwd)
        variables = {"HOME": self.home, "PATH": "/bin", **(env or {})}
        return Running(program, argv, where, variables, stdin or b"")

    # ---- the tree

    def _real(self, path: str, *, follow: bool = True) -> str:
        """`path` without links; the last part stays one unless `follow`."""
        where, links, parts = "/", 0, deque(path.split("/"))
        while parts:
            part = parts.popleft()
            here = posixpath.join(where, part)
            node = self._nodes.get(here) if part not in ("", ".", "..") else None
            if isinstance(node, _Link) and (follow or any(parts)):
                if (links := links + 1) > MOST_LINKS:
                    raise _fails(errno.ELOOP, path)
                parts.extendleft(reversed(node.target.split("/")))
                where = "/" if node.target.startswith("/") else where
            elif part == "..":
                where = posixpath.dirname(where)
            elif part not in ("", "."):
                where = here
        return where

    def _make_folders(self, path: str) -> None:
        parts = self.path(path).split("/")[1:]
        for count in range(1, len(parts) + 1):
            where = self._real("/" + "/".join(parts[:count]), follow=False)
            if where not in self._nodes:
                self._nodes[where] = _Folder(self._clock.now())
            elif not isinstance(self._behind(where), _Folder):
                # A link to nothing has the name that the folder would have, and is no way to a folder below.
                raise _fails(errno.EEXIST, path) if count == len(parts) else self._missing(f"{where}/.", path)

    def _behind(self, where: str) -> _File | _Folder | None:
        """What is at the end of all links, None for nothing and for a circle."""
        try:
            node = self._nodes.get(self._real(where))
        except OSError:
            return None
        return None if isinstance(node, _Link) else node

    def _inside(self, folder: str) -> list[str]:
        """The paths of what is right in a folder."""
        return [path for path in self._nodes if path != "/" and posixpath.dirname(path) == folder]

    def _entry(self, path: str) -> DirEntry:
        node = self._behind(path)
        kind: Literal["file", "dir", "other"] = "dir" if isinstance(node, _Folder) else "other"
        return DirEntry(
            name=posixpath.basename(path),
            kind="file" if isinstance(node, _File) else kind,
            link=isinstance(self._nodes[path], _Link),
            changed=None if node is None else node.changed,
        )

    def _parent(self, where: str, path: str) -> None:
        """Raise what the system raises unless the folder around `where` is there."""
        if not isinstance(self._nodes.get(posixpath.dirname(where)), _Folder):
            raise self._missing(where, path)

    def _missing(self, where: str, path: str) -> OSError:
        """What is wrong with a path that leads to nothing: it does not exist, or goes on behind a file."""
        above = posixpath.dirname(where)
        while above not in self._nodes:
            above = posixpath.dirname(above)
        try:
            behind = self._real(above)
        except OSError:
            return _fails(errno.ELOOP, path)
        if behind not in self._nodes:
            return self._missing(behind, path)
        return _fails(errno.ENOTDIR if isinstance(self._nodes[behind], _File) else errno.ENOENT, path)


def _fails(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
