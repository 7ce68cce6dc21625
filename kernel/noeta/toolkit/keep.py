"""Keeping a claim with its worker, for work that lives only in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class KeptClaim(Protocol):
    """A claim kept by this worker over the task's waits, for work that lives only in this process.

    `lost` says that another worker may own the task now. `lease_seconds` is how long others wait for a
    worker that does not answer.
    """

    @property
    def lost(self) -> bool:
        """Whether the claim is lost."""

    @property
    def lease_seconds(self) -> float:
        """The lease, in seconds."""

    def on_lost(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once, when the claim is lost. The function returned takes it back."""

    def release(self) -> None:
        """Keep the claim no longer. Idempotent."""
