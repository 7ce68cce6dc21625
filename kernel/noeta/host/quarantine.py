"""Tasks that are not to be run now: laid aside where a person sees it, without a single plugin.

They are those that bring down whoever runs them, and those that require a plugin which is not here.
"""

from __future__ import annotations

from dataclasses import replace

import anyio
import msgspec

from noeta.core.log import Claim
from noeta.core.records import Notice
from noeta.core.runner import Runner
from noeta.core.work import Work
from noeta.host.agents import Agents
from noeta.host.claimed import Means, take_up
from noeta.host.unfit import check_fit

MAX_CLAIMS = 5
"""How many claims in a row may die without any progress."""


def is_poison(claim: Claim, crashes: int = 0) -> bool:
    """Whether the claims before this one were lost for nothing, too often to be chance.

    `crashes` is how often in a row the task failed in this process without taking it down.
    """
    return crashes >= MAX_CLAIMS or (claim.unreleased and claim.attempts > MAX_CLAIMS)


async def quarantine(means: Means, claim: Claim, crashes: int = 0) -> None:
    """Let a task that is poison wait (``quarantined``). The next message gives it another chance."""
    count = crashes or claim.attempts - 1
    text = f"This task was laid aside: {count} attempts to go on with it were cut off. A message tries again."
    await lay_aside(means, claim, "quarantined", text)


async def lay_aside(means: Means, claim: Claim, reason: str, text: str) -> None:
    """Let the task wait for this `reason`, with a notice.

    What is in its inbox is recorded, and a cancel still ends it. One that waits for a ``plugin`` is taken up
    again after a while. Raises `Unfit` for one that may not be written to.
    """
    agent = means.agents[(await means.store.task(claim.task)).agent].agent
    bare = replace(means, agents=Agents([msgspec.structs.replace(agent, plugins=())]))
    work = (await take_up(bare, claim, wake=_at_once)).work
    # The task keeps its plugins, and their snapshots.
    work.outside.installed = work.state.plugins
    check_fit(work)
    work.outside.snapshot = lambda lines, state: ()
    work.put(Notice(text=text, topic=reason))
    await _Aside(work, reason).run()


class _Aside(Runner):
    """Records what came, lets the task end if that is wanted, and takes no step."""

    def __init__(self, work: Work, reason: str) -> None:
        super().__init__(work)
        self._reason = reason

    async def _advance(self) -> bool:
        return await self._rest(self._reason)


async def _at_once(seconds: float) -> bool:
    await anyio.lowlevel.checkpoint()
    return True
