"""Hundreds of worlds, each decided by its seed: whoever acts and whoever dies, the promises hold."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from noeta.core.work import Work
from noeta.testing.simulation import simulate


def test_four_hundred_worlds_keep_every_promise() -> None:
    # The first one that does not raises what is wrong with it, and how to repeat it.
    with ProcessPoolExecutor() as pool:
        assert sum(pool.map(steps, range(400), chunksize=20)) > 400


def steps(seed: int) -> int:
    return len(simulate(seed).trace)


def test_a_seed_makes_the_same_world_each_time() -> None:
    assert simulate(7).trace == simulate(7).trace


def test_the_worlds_are_wild_enough() -> None:
    seen = Counter(word for seed in range(40) for word in simulate(seed).trace)
    assert {"fenced", "refused", "_forks", "_cancels", "_erases", "_interrupts", "_answers"} <= set(seen)
    assert sum(word.startswith("died at") for word in seen) > 10


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
