"""A place to act in which there is nothing: the environment of tests that need none."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from noeta.toolkit.env import DirEntry, FileStat, Process


class Nowhere:
    """An `ExecEnv` with one empty directory, ``/``, that cannot be written to. No program is installed."""

    cwd: str = "/"

    def path(self, text: str) -> str:
        """The absolute path; ``~`` is ``/``."""
        return posixpath.normpath(posixpath.join("/", text.removeprefix("~/")))

    async def real(self, path: str) -> str:
        """The path itself, for there are no links."""
        return self.path(path)

    async def stat(self, path: str) -> FileStat | None:
        """The root alone is there."""
        return FileStat(kind="dir", size=0, changed=0.0) if self.path(path) == "/" else None

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Raises `FileNotFoundError`."""
        raise FileNotFoundError(path)

    async def write(
        self, path: str, data: bytes, *, if_sha256: str | None = None, create: bool = False
    ) -> None:
        """Raises `PermissionError`."""
        raise PermissionError(path)

    async def listdir(self, path: str) -> list[DirEntry]:
        """Nothing, and `FileNotFoundError` for another path than the root."""
        if self.path(path) != "/":
            raise FileNotFoundError(path)
        return []

    async def mkdir(self, path: str) -> None:
        """Raises `PermissionError`, but for the root."""
        if self.path(path) != "/":
            raise PermissionError(path)

    async def remove(self, path: str) -> None:
        """Raises `FileNotFoundError`."""
        raise FileNotFoundError(path)

    async def rename(self, old: str, new: str) -> None:
        """Raises `FileNotFoundError`."""
        raise FileNotFoundError(old)

    async def which(self, name: str) -> str | None:
        """None."""
        return None

    def process(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> AbstractAsyncContextManager[Process]:
        """Raises `FileNotFoundError`."""
        raise FileNotFoundError(argv[0])
