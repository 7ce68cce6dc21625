"""What a person may choose about this machine as a place to act."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class LocalSettings(Struct, frozen=True, kw_only=True):
    """Settings of the environment ``local``.

    - `cwd`: the folder that relative paths start from; empty for that of the process.
    - `variables`: names of further variables that programs get from this process, besides
      `noeta_local.variables.PASSED`. ``*`` stands for any letters.
    - `drain`: how many seconds output is still awaited when a program has ended and left its pipe to others.
    """

    cwd: str = ""
    variables: tuple[str, ...] = ()
    drain: Annotated[float, Meta(ge=0)] = 2.0
