"""One claimed task at work in this process, and who looks after it meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

import anyio

from noeta.core.errors import StoreError
from noeta.core.inbox import payload
from noeta.core.items import Cancel, Interrupt
from noeta.core.log import Claim, InboxItem
from noeta.core.ports import Delta, ModelRequest, ModelResponse
from noeta.core.runner import Runner
from noeta.core.state import TaskState
from noeta.core.work import Work
from noeta.host.bell import Bell
from noeta.host.beside import beside
from noeta.host.claimed import Means, take_up
from noeta.host.keeps import Keeps
from noeta.host.listening import Listening
from noeta.host.models import Models
from noeta.host.quarantine import is_poison, lay_aside, quarantine
from noeta.host.reach import Reach
from noeta.host.request import model_of
from noeta.host.unfit import Unfit, check_fit, lacking

TICK_SECONDS = 1.0
"""How often a running task's inbox is looked at even when nothing seems to have changed."""
PEEK = 1_000
MAX_AGE_SECONDS = 1.0
MAX_STAGED_BYTES = 1 << 20
"""Work staged while tools run is written when it is older, or larger, than this."""

_log = logging.getLogger("noeta")


class Running:
    """A claim from its beginning to its end.

    `rested`: the task waits or has ended, and with that the claim was given up. `tell` is told, while the
    task runs, of the seq it is at and of what is of interest live, and of None when it runs no more.
    `crashes` is how often the task failed here without getting on.
    """

    def __init__(
        self,
        claim: Claim,
        means: Means,
        tell: Callable[[str, int, object], None],
        *,
        lease: float = 30.0,
        crashes: int = 0,
    ) -> None:
        self.claim: Claim = claim
        self.keeps: Keeps = Keeps(lease, self.stir)
        self.rested: bool = False
        self._means, self._tell, self._crashes = means, tell, crashes
        self._scope = anyio.CancelScope()
        self._changed = anyio.Event()
        self._stopping = False
        self._bell = Bell()
        self._runner: Runner | None = None
        # The first seq that is staged, and since when.
        self._staged = (0, 0.0)

    async def run(self) -> None:
        """Take the task as far as it goes. Raises `Unfit`, and what a runner raises."""
        try:
            with self._scope:
                if is_poison(self.claim, self._crashes):
                    return await quarantine(self._means, self.claim, self._crashes)
                await self._go_on()
            if self._runner and self._stopping and not self.keeps.lost:
                await _save(self._runner.work)
        except anyio.get_cancelled_exc_class():
            if self._runner and not self.keeps.lost:
                await _save(self._runner.work)
            raise
        finally:
            self.keeps.lose()
            self._tell(self.claim.task, 0, None)

    async def _go_on(self) -> None:
        store, task = self._means.store, self.claim.task
        async with store.watch(task, log=False) as watch:
            log = Listening(store, watch)
            runner = await self._taken_up(log)
            if name := lacking(runner.work):
                why = f"This task waits: it requires plugin {name!r}, which its agent here does not have."
                await lay_aside(self._means, self.claim, "plugin", why)
            else:
                self._runner = runner
                await beside(partial(self._work, runner), partial(self._look_out, runner, log))

    def stir(self) -> None:
        """Look again, something changed."""
        self._bell.ring()
        self._look_again()

    def stop(self) -> None:
        """Stop at the next safe point: when no call runs that would be cut off for good."""
        self._stopping = True
        self.stir()

    def cut(self) -> None:
        """Stop now."""
        self._stopping = True
        self._scope.cancel()

    def lose(self) -> None:
        """The claim is lost: stop, and write nothing more."""
        self.keeps.lose()
        self._scope.cancel()

    async def _taken_up(self, log: Listening) -> Runner:
        means, task = self._means, self.claim.task
        reach = Reach(means, task)
        context = {**reach.of_calls, "keep": self.keeps.keep}
        try:
            runner = await take_up(
                means, self.claim, wake=self._wake, kept=lambda: bool(self.keeps), **context
            )
        except ValueError as error:
            raise Unfit(task, str(error)) from error
        work = runner.work
        check_fit(work)
        agent = means.agents[work.state.agent].agent
        reach.model = model_of(agent, work.state.config)
        work.set(**reach.of_views)
        work.outside.log = log
        work.outside.live = lambda piece: self._tell(task, work.state.seq, piece)
        work.outside.model = partial(self._model, work, agent.fallbacks)
        return runner

    async def _model(
        self, work: Work, fallbacks: Sequence[str], request: ModelRequest, live: Callable[[Delta], None]
    ) -> ModelResponse:
        if self._stopping:
            self._scope.cancel()
            await anyio.lowlevel.checkpoint()
        model = self._means.model
        if isinstance(model, Models):
            model = partial(model, fallbacks=fallbacks, failures=work.state.failures)
        return await model(request, live)

    async def _work(self, runner: Runner) -> None:
        await runner.run()
        self.rested = True

    async def _wake(self, seconds: float) -> bool:
        """Wait for the next look at the inbox. They come at least every second."""
        await self._changed.wait()
        return True

    def _look_again(self) -> None:
        """Let a call that waits for others look at the inbox."""
        self._changed.set()
        self._changed = anyio.Event()

    async def _look_out(self, runner: Runner, log: Listening) -> None:
        """Look at the inbox and at what is staged, whenever something changed and every second."""
        async with self._means.store.watch(self.claim.task, log=False) as watch:
            while True:
                await self._bell.wait(watch, TICK_SECONDS)
                self._look_again()
                if self._stopping and not any(
                    call.status == "started" for call in runner.work.state.open_calls
                ):
                    self._scope.cancel()
                await self._obey(runner, log)
                await self._write_staged(runner.work)

    async def _obey(self, runner: Runner, log: Listening) -> None:
        """Halt what runs when somebody wants it stopped. The runner then reads why."""
        work, peek = runner.work, PEEK
        try:
            # What stops the turn may stand behind any number of others.
            while len(items := await log.look(self.claim.task, peek)) >= peek:
                peek *= 10
        except StoreError as error:
            _log.warning("task %s: its inbox cannot be read: %s", self.claim.task, error)
            return
        for item in items:
            if item.n > work.taken and _stops(item, work.state):
                runner.halt()

    async def _write_staged(self, work: Work) -> None:
        """Write what is staged for long, or large, unless the runner is about to do so."""
        lines, hooks = work.batch.lines, [view for view in work.by_plugin.values() if view.hook]
        if not lines or work.batch.consume or work.state.ended or hooks or work.one_at_a_time.locked():
            return
        now = self._means.clock.monotonic()
        if self._staged[0] != lines[0].seq:
            self._staged = (lines[0].seq, now)
        old = now - self._staged[1] >= MAX_AGE_SECONDS
        if old or sum(len(line.data) for line in lines) > MAX_STAGED_BYTES:
            async with work.one_at_a_time:
                await work.commit()


def _stops(item: InboxItem, state: TaskState) -> bool:
    """Whether the item ends the task, or the turn that is under way."""
    if item.kind not in ("cancel", "interrupt"):
        return False
    data, _ = payload(item)
    turn = state.turn.seq if state.turn else None
    return isinstance(data, Cancel) or (isinstance(data, Interrupt) and data.turn == turn)


async def _save(work: Work) -> None:
    """Write what is done. What was only just received is not, nor is an end: they are done again."""
    if not work.batch.consume and not work.state.ended:
        try:
            await work.commit()
        except StoreError as error:
            _log.warning("task %s: what it had done could not be written: %s", work.state.task, error)
