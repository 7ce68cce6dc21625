"""The port of the place where tools act, for those who write another one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from msgspec import Struct

from noeta.toolkit.errors import Changed as Changed


class FileStat(Struct, frozen=True, kw_only=True):
    """What is at a path: ``file``, ``dir`` or ``other``, with its size in bytes and last change in epoch
    seconds.

    `mode` is that of POSIX, without the type.
    """

    kind: Literal["file", "dir", "other"]
    size: int
    changed: float
    mode: int = 0


class DirEntry(Struct, frozen=True, kw_only=True):
    """One name in a directory; a link is what it points to, or ``other`` when that is not there.

    `changed` is its last change in epoch seconds, as `stat` tells it, where listing learns it without another
    call; None where it does not, so ask `stat`.
    """

    name: str
    kind: Literal["file", "dir", "other"]
    link: bool = False
    changed: float | None = None


class Process(Protocol):
    """A process that runs, in a group of its own."""

    def output(self) -> AsyncIterator[bytes]:
        """What it writes to standard output and standard error, as it comes; each byte once.

        It can be left at any time, and goes on when it is asked for again. A program that writes more than is
        read may be made to wait, so read to the end or stop it. The end comes soon after that of the program,
        also when a child of it keeps the output open.
        """

    async def wait(self) -> int:
        """Its exit status once it has ended; minus the signal that ended it."""

    async def stop(self, grace: float = 5.0) -> None:
        """End the whole group: TERM, and KILL after `grace` seconds."""


class ExecEnv(Protocol):
    """Where tools act: this machine, a container, another machine.

    Paths are text. Methods raise `OSError` as the system does, besides what is said here. One that has to be
    closed also has ``async aclose()``; a host that opened it calls that when it is left.
    """

    cwd: str

    def path(self, text: str) -> str:
        """The absolute path that `text` names from `cwd`; ``~`` and ``..`` resolved, links not.

        Every method takes what this takes. Raises `ValueError` for a NUL, as they all do.
        """

    async def real(self, path: str) -> str:
        """The path with all links resolved, also where its last parts do not exist: what gates compare."""

    async def stat(self, path: str) -> FileStat | None:
        """What is there, None when nothing is."""

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Up to `limit` bytes from `offset`."""

    async def write(
        self, path: str, data: bytes, *, if_sha256: str | None = None, create: bool = False
    ) -> None:
        """Replace the whole file at once, keeping its mode; of a link, the file that it leads to.

        Raises `Changed` when its bytes no longer have the sha-256 `if_sha256` (hex), and `FileNotFoundError`
        for a new file without `create`.
        """

    async def listdir(self, path: str) -> list[DirEntry]:
        """The entries of a directory, by name."""

    async def mkdir(self, path: str) -> None:
        """Make a directory and those above it. Idempotent."""

    async def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""

    async def rename(self, old: str, new: str) -> None:
        """Rename, replacing a file at `new`."""

    async def which(self, name: str) -> str | None:
        """The path of a program, None when there is none."""

    def process(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> AbstractAsyncContextManager[Process]:
        """Run a program; leaving the context stops its group, and so does a cancel.

        `env` comes on top of a clean environment, which holds no secret of this process. Without `stdin` the
        program reads nothing. Raises `FileNotFoundError`, here or on entering, for a program or a `cwd` that
        is not there.
        """
