"""A thousand worlds, each decided by its seed: whoever acts and whoever dies, the promises hold."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noeta.core.work import Work
from noeta.testing.simulation import Simulation, simulate


def test_a_thousand_worlds_keep_every_promise() -> None:
    # The first one that does not raises what is wrong with it, and how to repeat it.
    with ProcessPoolExecutor() as pool:
        assert sum(pool.map(steps, range(1_000), chunksize=25)) > 1_000


def steps(seed: int) -> int:
    return len(simulate(seed).trace)


def test_a_seed_makes_the_same_world_each_time() -> None:
    assert simulate(7).trace == simulate(7).trace


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_a_world_that_hypothesis_makes_keeps_every_promise_too(chance: Random) -> None:
    # What fails here shrinks to a small world.
    anyio.run(Simulation(chance).run)


def test_the_worlds_are_wild_enough() -> None:
    worlds = [simulate(seed) for seed in range(60)]
    seen = Counter(word for world in worlds for word in world.trace)
    acts = {"_forks", "_cancels", "_erases", "_interrupts", "_answers"}
    assert {"fenced", "refused", "unavailable", *acts} <= set(seen)
    assert sum(word.startswith("died at") for word in seen) > 10
    assert sum(len(world.keeps) for world in worlds) > 3
    assert sum(len(world.lost) for world in worlds) > 0
    assert sum(len(row.parts) for world in worlds for row in world.store._tasks.values()) > 60


def test_a_fault_is_named_with_its_seed_and_how_to_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Work.tell

    async def forgets(work: Work) -> bool:
        work._events.clear()
        return await told(work)

    monkeypatch.setattr(Work, "tell", forgets)
    with pytest.raises(
        AssertionError, match=r"Seed 0: .*told.* Again: python tests/simulation/run.py --seed=0"
    ):
        simulate(0)


def broken_commit(change: Any) -> Any:
    """A commit that writes something else than it should."""
    whole = Work.commit

    async def commit(work: Work, *args: Any, **end: Any) -> None:
        change(work)
        await whole(work, *args, **end)

    return commit


@pytest.mark.parametrize(
    "change",
    [lambda work: work.batch.posts.clear(), lambda work: work.batch.spawn.clear()],
    ids=["posts", "children"],
)
def test_a_commit_that_leaves_something_out_is_noticed(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Work, "commit", broken_commit(change))
    with pytest.raises(AssertionError, match="Seed"):
        list(map(simulate, range(20)))
