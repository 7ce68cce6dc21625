"""Plugins that missed something: telling them again, and when to try after a failure."""

from __future__ import annotations

from contextlib import aclosing

from noeta.core.codec import decode
from noeta.core.work import PROGRESS, Work
from noeta.toolkit.dispatch import Hooks
from noeta.toolkit.history import history, whole
from noeta.toolkit.store import Store

FIRST_RETRY, LAST_RETRY = 60.0, 3600.0
"""Seconds until a task is taken up again for a plugin that failed: the least and the most."""
LOOK_BACK = 500


class Redelivery:
    """Tells the plugins of one claim with `delivered_through` what they have not handled.

    One that fails stops there, and gets nothing later before that. It is tried again once a minute.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tried: float | None = None

    async def __call__(self, work: Work) -> None:
        """Tell all of them the first time, then those that are behind, when it is time."""
        hooks, now = work.hooks, work.outside.clock.monotonic()
        assert isinstance(hooks, Hooks)
        if self._tried is not None and now < self._tried + FIRST_RETRY:
            return
        first, behind = self._tried is None, set(work.behind)
        self._tried = now
        due = {by: through for by, through in hooks.delivered_through(work).items() if first or by in behind}
        # When one of them lets the task wait, the ones after it still get nothing later first.
        work.behind.clear()
        work.behind.update(due)
        for plugin, through in due.items():
            work.behind.discard(plugin)
            await self._tell(work, hooks, plugin, max(through, work.state.history_through))

    async def _tell(self, work: Work, hooks: Hooks, plugin: str, after: int) -> None:
        pages = history(self._store, work.state.task, after, through=work.durable)
        async with aclosing(pages):
            async for lines in pages:
                for line in lines:
                    envelope = await whole(self._store, decode(line))
                    await hooks.on_event(work, work.recorded(envelope), only=plugin)
                    if plugin in work.behind:
                        return


async def retry_at(work: Work, store: Store, reason: str) -> float | None:
    """When to take a task that waits for `reason` up again, None for not without a word from outside.

    For a plugin that failed in a minute at first, and twice as long each time: in as long as the task has not
    got on, up to an hour.
    """
    given = work.state.retry_at if reason == "provider" else None
    if reason != "plugin" and not work.behind:
        return given
    row, now = await store.task(work.state.task), work.outside.clock.now()
    after = max(row.last_seq - LOOK_BACK, row.through)
    lines = await store.read(row.task, after, only=[f"core.{kind}" for kind in PROGRESS])
    stuck = now - decode(lines[-1]).at if lines else 0.0
    later = now + min(max(stuck, FIRST_RETRY), LAST_RETRY)
    return later if given is None else min(given, later)
