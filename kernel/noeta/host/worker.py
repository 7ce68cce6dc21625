"""The worker of a host: it claims tasks, runs each by itself, keeps the lease, and fires timers."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection

import anyio

from noeta.core.errors import Fenced, StoreError, told
from noeta.core.log import Claim
from noeta.host.bell import Bell
from noeta.host.beside import beside
from noeta.host.claimed import Means
from noeta.host.running import Running
from noeta.host.unfit import Unfit
from noeta.host.watchdog import Watchdog
from noeta.toolkit.store import Clock

POLL_SECONDS = 1.0
"""How often the store is asked for work even when it says nothing. What it says only makes it quicker."""
LONGEST_PAUSE = 60.0
GRACE_SECONDS = 10.0
"""How long a stopping worker waits for calls that would be cut off for good."""
RELEASE_SECONDS = 5.0
LEAST_LEASE_SECONDS = 1.0
"""With a shorter lease, a worker that is only busy would lose its tasks, or end its process."""

_log = logging.getLogger("noeta")


class Worker:
    """Runs tasks of a store, up to `capacity` at once, of `queues` (None: all) and of the host's agents.

    `lease` is how many seconds others wait for this worker when it does not answer. `tell` is told of what is
    of interest live: the task, the seq it is at, and a piece. It raises only what is a bug.
    """

    def __init__(
        self,
        means: Means,
        *,
        tell: Callable[[str, int, object], None] = lambda task, seq, piece: None,
        capacity: int = 16,
        queues: Collection[str] | None = None,
        lease: float = 30.0,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.name: str = means.ids.new()
        self._means, self._tell = means, tell
        self._capacity, self._queues, self._lease, self._grace = capacity, queues, lease, grace
        # Until when the lease is good for sure, by the monotonic clock.
        self._good_until = math.inf
        self._running: set[Running] = set()
        self._held: set[anyio.CancelScope] = set()
        # How often a task was not run, and crashed, here since it was last run to a wait.
        self._refused: dict[str, int] = {}
        self._crashed: dict[str, int] = {}
        self._stopping, self._bell = False, Bell()
        self._jobs, self._done = 0, anyio.Event()

    async def run(self) -> None:
        """Work until `stop`, then let go of everything at safe points."""
        async with anyio.create_task_group() as self._group:
            self._group.start_soon(self._keep_lease)
            self._group.start_soon(self._guard_lease)
            self._group.start_soon(Watchdog(self._lease, lambda: bool(self._running)).run)
            await self._claiming()
            for held in self._held:
                held.cancel()
            for running in self._running:
                running.stop()
            await beside(self._until_done, self._lose_patience)
            self._group.cancel_scope.cancel()

    def stop(self) -> None:
        """Claim nothing more, and let `run` end soon."""
        self._stopping = True
        self._bell.ring()

    async def _claiming(self) -> None:
        async with self._means.store.watch() as watch:
            pause = POLL_SECONDS
            while not self._stopping:
                try:
                    seconds = await self._look()
                    await self._bell.wait(watch, seconds)
                    pause = POLL_SECONDS
                except Fenced:
                    self._lose()
                except StoreError as error:
                    pause = min(2 * pause, LONGEST_PAUSE)
                    _log.warning("no work for %.0f s: %s", pause, error)
                    await self._bell.wait(_Pause(self._means.clock), pause)

    async def _look(self) -> float:
        """Fire what is due, claim what is ready; the seconds until there may be something else to do."""
        store, now = self._means.store, self._means.clock.now()
        wake = await store.next_wake()
        if wake is not None and wake <= now:
            await store.fire_timers()
        if (free := self._capacity - len(self._running)) > 0:
            await self._claim(free)
        return POLL_SECONDS if wake is None or wake <= now else min(POLL_SECONDS, wake - now)

    async def _claim(self, limit: int) -> None:
        means, name, sent = self._means, self.name, self._means.clock.monotonic()
        # A claim that is cut off may have happened, and then nobody runs the task.
        with anyio.CancelScope(shield=True):
            claims = await means.store.claim(
                name, lease=self._lease, limit=limit, queues=self._queues, agents=list(means.agents)
            )
        self._good_until = sent + 0.9 * self._lease
        for claim in claims:
            crashes = self._crashed.get(claim.task, 0)
            running = Running(claim, means, self._tell, lease=self._lease, crashes=crashes)
            self._running.add(running)
            self._jobs += 1
            self._group.start_soon(self._job, running)
            if name != self.name:
                running.lose()

    async def _job(self, running: Running) -> None:
        """Run one claim to its end, whatever happens to it, and give it up."""
        claim = running.claim
        try:
            error = await self._run(running)
            if len(self._running) == self._capacity:
                # There may be others that wait for room.
                self._bell.ring()
            self._running.discard(running)
            if error is None:
                self._refused.pop(claim.task, None)
                self._crashed.pop(claim.task, None)
            else:
                await self._hold(claim, error)
        finally:
            # Also when this is cancelled, so that nobody waits for the lease.
            if not running.rested:
                await self._release(claim)
            self._jobs -= 1
            self._done.set()

    async def _run(self, running: Running) -> Exception | None:
        try:
            await running.run()
        except Fenced:
            await self._renew()
        except Exception as error:
            return error
        return None

    async def _hold(self, claim: Claim, error: Exception) -> None:
        """Keep a task that cannot be run from being claimed again at once; longer each time."""
        task, count = claim.task, self._refused.get(claim.task, 0)
        self._refused[task] = count + 1
        if isinstance(error, Unfit | StoreError):
            _log.warning("task %s: %s", task, told(error))
        else:
            self._crashed[task] = self._crashed.get(task, 0) + 1
            _log.error("task %s failed", task, exc_info=error)
        with anyio.CancelScope() as held:
            self._held.add(held)
            if not self._stopping:
                await self._means.clock.sleep(min(2.0 ** min(count, 10), LONGEST_PAUSE))
        self._held.discard(held)

    async def _release(self, claim: Claim) -> None:
        """Give a claim up that was not run to a wait or an end."""
        with anyio.move_on_after(RELEASE_SECONDS, shield=True):
            try:
                await self._means.store.release(claim)
            except StoreError as error:
                _log.warning("task %s could not be given up: %s", claim.task, error)

    async def _keep_lease(self) -> None:
        while True:
            await self._means.clock.sleep(self._lease / 3)
            if self._running or self._held:
                await self._renew()

    async def _renew(self) -> None:
        name, sent = self.name, self._means.clock.monotonic()
        try:
            good = await self._means.store.renew(name, self._lease)
        except StoreError as error:
            # The guard knows how long that may go on.
            _log.warning("the lease could not be renewed: %s", error)
            return
        if name == self.name:
            if good:
                self._good_until = sent + 0.9 * self._lease
            else:
                self._lose()

    async def _guard_lease(self) -> None:
        """Lose the lease by our own clock before the store may give the tasks to others."""
        while True:
            await self._means.clock.sleep(self._lease / 20)
            if self._running and self._means.clock.monotonic() >= self._good_until:
                self._lose()

    def _lose(self) -> None:
        """All that is held may be somebody else's by now. Go on under a new name."""
        _log.warning("worker %s lost its lease, and with it %d tasks", self.name, len(self._running))
        self.name, self._good_until = self._means.ids.new(), math.inf
        for running in list(self._running):
            running.lose()

    async def _until_done(self) -> None:
        while self._jobs:
            self._done = anyio.Event()
            await self._done.wait()

    async def _lose_patience(self) -> None:
        await self._means.clock.sleep(self._grace)
        for running in list(self._running):
            running.cut()


class _Pause:
    """A watch of nothing but time: a store that fails may fail to be watched."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def wait(self, timeout: float) -> bool:
        """Wait that long."""
        await self._clock.sleep(timeout)
        return False
