"""Keeping a claim over the waits of its task, for work that lives only in this process."""

from __future__ import annotations

import logging
from collections.abc import Callable

from noeta.toolkit.strays import fault

_log = logging.getLogger("noeta")


class Keeps:
    """The keeps of one claim, counted: while there is one, the claim stays with this worker.

    `changed` is called when the last one is released.
    """

    def __init__(self, lease_seconds: float, changed: Callable[[], None]) -> None:
        self.lease_seconds: float = lease_seconds
        self.lost: bool = False
        self._changed = changed
        self._held: set[Keep] = set()

    def __bool__(self) -> bool:
        """Whether the claim is to be kept."""
        return bool(self._held)

    def keep(self) -> Keep:
        """One more keep."""
        keep = Keep(self)
        if not self.lost:
            self._held.add(keep)
        return keep

    def let_go(self, keep: Keep) -> None:
        """One keep less."""
        if keep in self._held:
            self._held.remove(keep)
            if not self._held:
                self._changed()

    def lose(self) -> None:
        """The claim is lost, or over: call everyone who asked for that, once. One that raises stops none."""
        held, self._held, self.lost = self._held, set(), True
        for keep in held:
            keep.tell()


class Keep:
    """A `KeptClaim`: one reason for the claim to stay."""

    def __init__(self, keeps: Keeps) -> None:
        self._keeps = keeps
        self._callbacks: dict[object, Callable[[], None]] = {}

    @property
    def lost(self) -> bool:
        """Whether the claim is lost: another worker may own the task."""
        return self._keeps.lost

    @property
    def lease_seconds(self) -> float:
        """How long others wait for a worker that does not answer."""
        return self._keeps.lease_seconds

    def on_lost(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once, when the claim is lost; at once when it is. What this gives takes it back."""
        mark = object()
        self._callbacks[mark] = callback
        if self.lost:
            self.tell()
        return lambda: self._callbacks.pop(mark, None) and None

    def release(self) -> None:
        """Keep the claim no longer; nobody is told of its loss then. Idempotent."""
        self._callbacks.clear()
        self._keeps.let_go(self)

    def tell(self) -> None:
        """Call the callbacks, each once."""
        while self._callbacks:
            callback = self._callbacks.pop(next(iter(self._callbacks)))
            try:
                callback()
            except BaseException as error:
                fault(error)
                _log.exception("a callback for a lost claim failed")
