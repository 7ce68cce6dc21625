"""The variables that programs are started with: those on a list, so that no secret is passed by accident."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

PASSED = (*("HOME", "LANG", "LANGUAGE", "LC_*", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),)
"""What programs get from this process without being told. ``*`` stands for any letters."""


def clean(variables: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Those of `variables` that are on the list or named in `more`. There is always a ``PATH``."""
    names = (*PASSED, *more)
    passed = {
        name: value
        for name, value in variables.items()
        if any(fnmatchcase(name, pattern) for pattern in names)
    }
    return {"PATH": os.defpath, **passed}
