"""Walking a tree of folders in any environment, and keeping the newest of what matches."""

from __future__ import annotations

import heapq
import posixpath
from collections import deque

import anyio
import anyio.lowlevel

from noeta.toolkit.env import DirEntry, ExecEnv
from noeta_fs.paths import inside
from noeta_fs.patterns import Pattern, State

VCS = frozenset({".git", ".hg", ".svn"})
"""Folders of version control, which hold nothing that is meant, unless a pattern names them."""
TOGETHER = 8
"""How many files are asked for their time at once: enough to hide the way to another machine."""
BREATH = 1_000
"""After this many entries others have their turn."""


class Walk:
    """A search for the newest `most` files. It can be cancelled at any time and then holds what it found.

    - `total`: how many files matched.
    - `unreadable`: folders that could not be listed.
    - `leaving`: links to folders outside, which were not entered.
    - `whole`: the walk came to its end.
    """

    def __init__(self, env: ExecEnv, pattern: Pattern, most: int) -> None:
        self.total: int = 0
        self.unreadable: list[str] = []
        self.leaving: list[str] = []
        self.whole: bool = False
        self._env, self._pattern, self._most = env, pattern, most
        self._newest: list[tuple[float, str]] = []

    @property
    def newest(self) -> list[str]:
        """The paths found, newest first."""
        return [path for _, path in sorted(self._newest, key=lambda found: (-found[0], found[1]))]

    async def run(self, base: str, within: str) -> None:
        """Look at everything below `base` that may match, nearest first. No link is followed by ``**``, and
        none out of `within`, which is a real path.
        """
        left: deque[tuple[str, State]] = deque([(base, self._pattern.start)])
        while left:
            folder, state = left.popleft()
            try:
                entries = await self._env.listdir(folder)
            except (FileNotFoundError, NotADirectoryError):
                # A pattern may name what is not there, and anything may go meanwhile.
                continue
            except OSError:
                self.unreadable.append(folder)
                continue
            untimed = []
            for number, entry in enumerate(entries, 1):
                if number % BREATH == 0:
                    await anyio.lowlevel.checkpoint()
                matches, below = self._met(state, entry)
                path = posixpath.join(folder, entry.name)
                if matches and entry.changed is not None:
                    self._take(path, entry.changed)
                elif matches:
                    untimed.append(path)
                if below and (not entry.link or await self._stays(path, within)):
                    left.append((path, below))
            for first in range(0, len(untimed), TOGETHER):
                await self._time(untimed[first : first + TOGETHER])
        self.whole = True

    def _met(self, state: State, entry: DirEntry) -> tuple[bool, State]:
        """Whether an entry is a file that matches, and in which state it is entered, if it is."""
        matches, below, linked = self._pattern.step(state, entry.name)
        if entry.kind == "dir" and not (entry.name in VCS and not self._pattern.names(entry.name)):
            return False, linked if entry.link else below
        return matches and entry.kind == "file", frozenset()

    async def _stays(self, link: str, within: str) -> bool:
        """Whether a link to a folder leads to one inside."""
        try:
            stays = inside(await self._env.real(link), within)
        except OSError:
            self.unreadable.append(link)
            return False
        if not stays:
            self.leaving.append(link)
        return stays

    def _take(self, path: str, changed: float) -> None:
        self.total += 1
        if len(self._newest) < self._most:
            heapq.heappush(self._newest, (changed, path))
        else:
            heapq.heappushpop(self._newest, (changed, path))

    async def _time(self, paths: list[str]) -> None:
        """Take in files of which the listing did not tell the time of their last change."""

        async def ask(path: str) -> None:
            try:
                found = await self._env.stat(path)
            except OSError:
                return
            # None was there a moment ago.
            if found is not None:
                self._take(path, found.changed)

        async with anyio.create_task_group() as group:
            for path in paths:
                group.start_soon(ask, path)
