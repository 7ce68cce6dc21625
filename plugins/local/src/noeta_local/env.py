"""The port: what is asked of this machine, in threads, so that no slow disk holds an event loop up."""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
from msgspec.structs import asdict

from noeta.toolkit.env import DirEntry, FileStat, Process
from noeta.toolkit.settings import SettingsError, settings_of
from noeta_local import files
from noeta_local.process import LocalProcess
from noeta_local.settings import LocalSettings
from noeta_local.variables import clean

T = TypeVar("T")


class LocalEnv:
    """An `ExecEnv` that is this machine, with the rights of this process.

    The parameters are those of `LocalSettings`. Names of files that are no UTF-8 come with surrogates, as
    `os.fsdecode` makes them, and can be given back like that. A path with a NUL is a `ValueError`.
    """

    def __init__(self, cwd: str = "", *, variables: Sequence[str] = (), drain: float = 2.0) -> None:
        # What the process changes later, its folder or its variables, changes nothing here.
        self._home = os.path.expanduser("~")
        self._variables = clean(os.environ, variables)
        self._drain = drain
        self.cwd: str = os.getcwd()
        self.cwd = self.path(cwd)

    def path(self, text: str) -> str:
        """The absolute path that `text` names. Raises `ValueError` for a NUL, which no path has."""
        if "\0" in text:
            raise ValueError(f"{text!r} has a null byte, which no path can hold. Leave it out.")
        if text == "~" or text.startswith("~/"):
            text = self._home + text[1:]
        # POSIX leaves the meaning of two slashes in front open, and so does `normpath`.
        return "/" + posixpath.normpath(posixpath.join(self.cwd, text)).lstrip("/")

    async def real(self, path: str) -> str:
        """The path with all links resolved. Raises `OSError` for a circle, or when it cannot be told."""
        return await _looking(files.real, self.path(path))

    async def stat(self, path: str) -> FileStat | None:
        """What is there, behind all links."""
        return await _looking(files.look, self.path(path))

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Up to `limit` bytes from `offset`. Pipes and devices are an `OSError`: they may never end."""
        return await _looking(files.read, self.path(path), offset, limit)

    async def write(
        self, path: str, data: bytes, *, if_sha256: str | None = None, create: bool = False
    ) -> None:
        """Replace the whole file at once and for good. A link stays; the file it leads to is replaced.

        Who cancels waits until it is done, and it is done.
        """
        await _acting(files.replace, self.path(path), bytes(data), if_sha256, create)

    async def listdir(self, path: str) -> list[DirEntry]:
        """The entries of a folder, by name."""
        return await _looking(files.entries, self.path(path))

    async def mkdir(self, path: str) -> None:
        """Make a folder and those above it. Idempotent."""
        await _acting(partial(os.makedirs, exist_ok=True), self.path(path))

    async def remove(self, path: str) -> None:
        """Remove a file, an empty folder, or a link and not what it leads to."""
        await _acting(files.remove, self.path(path))

    async def rename(self, old: str, new: str) -> None:
        """Rename; a file replaces a file, and a folder an empty one."""
        await _acting(os.rename, self.path(old), self.path(new))

    async def which(self, name: str) -> str | None:
        """The path of a program, looked for as `process` looks for it. One with a slash is a path."""
        wanted = self.path(name) if "/" in name else name
        return await _looking(partial(shutil.which, path=self._variables["PATH"]), wanted)

    def process(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> AbstractAsyncContextManager[Process]:
        """Run a program in a session of its own, without a terminal. No `stdin` is an empty one.

        What it writes waits in a pipe until `output` is read, and when the pipe is full the program waits:
        read all of it, or stop the program.
        """
        if not argv:
            raise ValueError("argv is empty. Give the name of a program, and its arguments behind it.")
        where = self.path(cwd or self.cwd)
        return LocalProcess(list(argv), where, {**self._variables, **(env or {})}, stdin, self._drain)


def open_env(settings: Mapping[str, Any]) -> LocalEnv:
    """This machine, with settings of `LocalSettings`. Raises `SettingsError`."""
    chosen = settings_of("local", LocalSettings, settings)
    env = LocalEnv(**asdict(chosen))
    if not os.path.isdir(env.cwd):
        raise SettingsError("local", "cwd", f"there is no folder {env.cwd!r}")
    return env


async def _looking(look: Callable[..., T], *arguments: Any) -> T:
    """What changes nothing may be left to itself by who is cancelled."""
    return await anyio.to_thread.run_sync(partial(look, *arguments), abandon_on_cancel=True)


async def _acting(act: Callable[..., T], *arguments: Any) -> T:
    """What changes something is waited for, so that it does not go on behind anybody's back."""
    return await anyio.to_thread.run_sync(partial(act, *arguments))
