"""What came of a check."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

State = Literal["ok", "fail", "not tried"]


class Result(Struct, frozen=True):
    """A check of a plugin (empty: of its package), and what came of it: `text` is for people.

    Of one that failed it names the place, the reason and the way out.
    """

    check: str
    plugin: str
    state: State
    text: str
