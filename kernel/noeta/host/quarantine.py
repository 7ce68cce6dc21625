"""Tasks that bring down whoever runs them: told apart, and laid aside where a person sees it."""

from __future__ import annotations

from dataclasses import replace

import anyio
import msgspec

from noeta.core.log import Claim
from noeta.core.records import Notice
from noeta.core.runner import Runner
from noeta.host.agents import Agents
from noeta.host.claimed import Means, take_up
from noeta.host.unfit import check_fit
from noeta.toolkit.store import Store

MAX_CLAIMS = 5
"""How many claims in a row may die without any progress."""
LOOK_BACK = 500


async def is_poison(store: Store, claim: Claim, crashes: int = 0) -> bool:
    """Whether the claims before this one were lost for nothing, too often to be chance.

    `crashes` is how often the task failed in this process without taking it down.
    """
    if claim.attempts <= MAX_CLAIMS or not (claim.unreleased or crashes >= MAX_CLAIMS):
        return False
    # A claim that ended in a wait for the model made no progress either, and is no loss.
    row = await store.task(claim.task)
    after = max(row.last_seq - LOOK_BACK, row.through)
    lines = await store.read(claim.task, after, only=["core.model_failed", "core.model_replied"])
    outages = 0
    for line in reversed(lines):
        if line.name != "core.model_failed":
            break
        outages += 1
    return claim.attempts - outages > MAX_CLAIMS


async def quarantine(means: Means, claim: Claim) -> None:
    """Let the task wait (``quarantined``) with a notice, without a single plugin.

    What is in its inbox is recorded, and a cancel still ends it. The next message gives it another chance.
    Raises `Unfit` for one that may not be written to.
    """
    agent = means.agents[(await means.store.task(claim.task)).agent].agent
    bare = replace(means, agents=Agents([msgspec.structs.replace(agent, plugins=())]))
    work = (await take_up(bare, claim, wake=_at_once)).work
    # The task keeps its plugins, and their snapshots.
    work.outside.installed = work.state.plugins
    check_fit(work)
    work.outside.snapshot = lambda lines, state: ()
    count = claim.attempts - 1
    text = f"This task was laid aside: {count} attempts to go on with it were cut off. A message tries again."
    work.put(Notice(text=text, topic="quarantined"))
    await _Aside(work).run()


class _Aside(Runner):
    """Records what came, lets the task end if that is wanted, and takes no step."""

    async def _advance(self) -> bool:
        return await self._rest("quarantined")


async def _at_once(seconds: float) -> bool:
    await anyio.lowlevel.checkpoint()
    return True
