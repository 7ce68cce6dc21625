"""Which worker of the in-memory store holds which tasks, and until when."""

from __future__ import annotations

from noeta.core.ports import Clock


class Leases:
    """One lease a worker, for all it holds. A worker that holds nothing has none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends: dict[str, float] = {}
        self._held: dict[str, dict[str, None]] = {}

    def ran_out(self, worker: str) -> bool:
        """Whether the worker's lease ended while it held something. That stays so."""
        return worker in self._ends and self._ends[worker] < self._clock.monotonic()

    def lost(self) -> list[tuple[float, str]]:
        """The tasks of workers whose lease ran out, and when it did, the longest lost first."""
        now = self._clock.monotonic()
        ends = sorted((self._ends[worker], worker) for worker in self._held if self._ends[worker] < now)
        return [(end, task) for end, worker in ends for task in self._held[worker]]

    def lives(self, worker: str) -> bool:
        """Whether the worker holds something, and its lease goes on."""
        return worker in self._held and not self.ran_out(worker)

    def extend(self, worker: str, seconds: float) -> None:
        """Let the lease of a worker that holds something end that many seconds from now."""
        if worker in self._held:
            self._ends[worker] = self._clock.monotonic() + seconds

    def take(self, worker: str, task: str) -> None:
        """Note that the worker holds the task."""
        self._held.setdefault(worker, {})[task] = None

    def give_up(self, worker: str, task: str) -> None:
        """Note that the worker holds the task no more. Of a lease that ran out its end is kept, for ever."""
        del self._held[worker][task]
        if not self._held[worker]:
            del self._held[worker]
            if not self.ran_out(worker):
                del self._ends[worker]
