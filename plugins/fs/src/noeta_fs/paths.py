"""What both tools do with the paths they are given."""

from __future__ import annotations

import posixpath

from noeta.toolkit.env import ExecEnv


def absolute(env: ExecEnv, cwd: str, text: str) -> str:
    """The path that `text` names from the folder of the task. Raises `ValueError` for a NUL."""
    if "\0" in text:
        raise ValueError(f"The path {text!r} has a null byte, which no path can hold. Leave it out.")
    return env.path(text if text.startswith(("/", "~")) else posixpath.join(cwd or env.cwd, text))


def inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder`, or is somewhere in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
