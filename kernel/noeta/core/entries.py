"""The records of the kernel's own that plugins write: notices, timers, erasures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from noeta.core.text import checked_key, meant

CORE = "core"


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A payload of the kernel's own kinds.

    `kind` is its explicit tag. It stands in the envelope, so the payload does not repeat it. `v` is the
    `VERSION` that gave the kind its present meaning.
    """

    kind: ClassVar[str] = ""
    v: ClassVar[int] = 1


class Notice(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Something for the person; the model never sees it."""

    kind = "notice"
    text: str
    topic: str | None = None
    data: Any = None


class TimerSet(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Wake the task at `at` (epoch seconds): with `text` as a message once it is idle, without text in any
    wait.
    """

    kind = "timer_set"
    name: str
    at: float
    text: str = ""


class TimerCleared(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The timer is taken back."""

    kind = "timer_cleared"
    name: str


class Erased(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The person's messages at `seqs` are taken out, and with them the items at `along` that quote them."""

    kind = "erased"
    seqs: list[int]
    along: list[int] = []
    by: str = ""


class Continue(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The turn goes on without the person, with the envelope's message."""

    kind = "continue"
    reason: str = ""


ENTRY_KINDS: dict[str, type[Fact]] = {t.kind: t for t in (Notice, TimerSet, TimerCleared, Erased, Continue)}
"""The core kinds that `record("core", ...)` accepts."""


def core_entry(kind: str, data: Any) -> Fact:
    """`data`, a struct or a dict, as the core entry `kind`. Raises `ValueError` for another kind or form,
    and `NotStorable` for a timer's name that no store can hold.
    """
    type_ = ENTRY_KINDS.get(kind)
    if type_ is None:
        raise ValueError(f"the core has no entry kind {kind!r}{meant(kind, ENTRY_KINDS)}")
    made: Fact = data if isinstance(data, type_) else msgspec.convert(data or {}, type_)
    # Timers alone have a name.
    checked_key(getattr(made, "name", kind), "the timer's name")
    return made


class CoreNotices:
    """The entries a hook and a running tool can make, by name. They are recorded like any other entry."""

    record: Any

    def notify(self, text: str, *, kind: str | None = None, data: Any = None) -> None:
        """Tell the person; front ends show it by `kind`, the model never sees it."""
        self.record(CORE, "notice", Notice(text=text, topic=kind, data=data))

    def set_timer(self, name: str, at: float, text: str = "") -> None:
        """Wake the task at `at` (epoch seconds).

        With `text` once it is idle, as the next message; without, in any wait and with no message. The same
        name replaces. Durable: any worker fires it.
        """
        self.record(CORE, "timer_set", TimerSet(name=name, at=at, text=text))

    def clear_timer(self, name: str) -> None:
        """Take a timer back. One that is not set is no error."""
        self.record(CORE, "timer_cleared", TimerCleared(name=name))

    def erase_messages(self, seqs: Sequence[int]) -> None:
        """Take the person's messages at these seqs, with all that was put in for them, out of the task."""
        self.record(CORE, "erased", Erased(seqs=list(seqs)))
