"""The plugin: which hook does what."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from noeta import Extension, TaskView, Tool
from noeta_fs.glob import Glob
from noeta_fs.read import Read
from noeta_fs.records import NAME, RECORD_TYPES
from noeta_fs.settings import FilesSettings
from noeta_fs.state import Reads, folded

FOLDERS = 64
"""For how many folders of tasks the tools are kept. A tool that is made anew is encoded anew."""


class Files(Extension):
    """Tools that read and find files in the environment of the task."""

    name = NAME
    Settings = FilesSettings
    settings: FilesSettings
    record_types = RECORD_TYPES
    State = Reads

    def __init__(self, **settings: Any) -> None:
        """Take the settings. Raises `SettingsError`."""
        super().__init__(**settings)
        self._tools = lru_cache(FOLDERS)(self._made)

    def initial_state(self) -> Reads:
        """Nothing was read."""
        return Reads()

    def reduce(self, state: Reads, kind: str, data: Any) -> Reads:
        """Remember what was read."""
        return folded(state, kind, data)

    def tools(self, view: TaskView) -> Sequence[Tool]:
        """Read and Glob, for the folder of the task."""
        return self._tools(view.cwd)

    def _made(self, cwd: str) -> Sequence[Tool]:
        return (Read(self.settings, cwd), Glob(self.settings, cwd))
