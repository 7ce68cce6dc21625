"""A hypothesis state machine over a store: random steps, each done to the store and to the model."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from noeta.core.log import Claim
from noeta.testing.store.driver import FAULTS, Driver
from noeta.testing.store.world import StoreFactory, opened

F = TypeVar("F", bound=Callable[..., Any])


def run_store_machine(
    make_store: StoreFactory,
    *,
    backend: str = "asyncio",
    max_examples: int = 50,
    steps: int = 40,
    shrink: bool = False,
) -> None:
    """Run that many random series of steps against fresh stores.

    Raises AssertionError when the store and the model differ, and says by which steps. With `shrink` it first
    looks for few and simple steps, which may take minutes. Other settings are those of the hypothesis profile
    in force.
    """
    hypothesis: Any = import_module("hypothesis")
    stateful: Any = import_module("hypothesis.stateful")
    phases = [hypothesis.Phase.reuse, hypothesis.Phase.generate, *[hypothesis.Phase.shrink] * shrink]
    settings = hypothesis.settings(
        phases=phases,
        max_examples=max_examples,
        stateful_step_count=steps,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    with start_blocking_portal(backend) as portal:
        try:
            stateful.run_state_machine_as_test(_machine(make_store, portal), settings=settings)
        except Exception as error:
            told = "\n".join([str(error) or repr(error), *getattr(error, "__notes__", ())])
            raise AssertionError(f"the state machine ({backend}): {told}") from error


def _machine(make_store: StoreFactory, portal: BlockingPortal) -> type[Any]:
    """The machine: a class with a rule for every method of the port."""
    st: Any = import_module("hypothesis.strategies")
    stateful: Any = import_module("hypothesis.stateful")
    rule: Callable[..., Callable[[F], F]] = stateful.rule
    precondition: Callable[..., Callable[[F], F]] = stateful.precondition
    initialize: Callable[..., Callable[[F], F]] = stateful.initialize
    held = stateful.Bundle("held")

    tasks, keys, count = st.integers(0, 3), st.integers(1, 6), st.integers(0, 2)
    offsets = st.sampled_from([1.0, 5.0, 30.0, 4000.0])
    kinds = st.sampled_from(["message", "message", "erase"])
    stale = st.sampled_from([False] * 7 + [True])
    version = st.sampled_from([1, 1, 1, 2, 3])
    spec = st.fixed_dictionaries(
        {
            "task": tasks,
            "base": st.none() | st.none() | tasks,
            "back": count,
            "key": count,
            "agent": st.sampled_from(["a", "b"]),
            "queue": st.sampled_from(["", "slow"]),
            "version": version,
            "posts": st.lists(keys, max_size=2),
            "blobs": count,
        }
    )
    step = st.fixed_dictionaries(
        {
            "lines": count,
            "consume": st.sampled_from([0, 1, 99, 99]),
            "spawn": st.lists(spec, max_size=1),
            "posts": st.lists(st.tuples(tasks, keys, kinds), max_size=2),
            "blobs": count,
            "timers": st.lists(
                st.tuples(st.sampled_from("abc"), offsets, st.sampled_from(["", "text"])), max_size=2
            ),
            "clear": st.lists(st.sampled_from("abc"), max_size=1),
            "status": st.sampled_from(["running", "waiting", "waiting", "ended"]),
            "reason": st.sampled_from(["idle", "children"]),
            "retry": st.none() | offsets,
            "release": st.booleans(),
            "progress": st.booleans(),
            "version": version,
            "parts": st.lists(st.sampled_from("pq"), max_size=2, unique=True),
        }
    )

    class StoreMachine(stateful.RuleBasedStateMachine):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.opening = portal.wrap_async_context_manager(opened(make_store))
            self.driver = Driver(self.opening.__enter__())

        def teardown(self) -> None:
            self.opening.__exit__(None, None, None)

        @initialize(target=held, first=spec)
        def begin(self, first: dict[str, Any]) -> Any:
            first = first | {"base": None, "back": 0, "posts": [1], "version": 1}
            for task in (0, 1):
                portal.call(self.driver.create, first | {"task": task}, None)
            return self.claim(0, 30.0, 1, None, None, None, 1)

        @rule(spec=spec, parent=st.none() | st.none() | tasks)
        def create(self, spec: dict[str, Any], parent: int | None) -> None:
            portal.call(self.driver.create, spec, parent)

        @rule(task=tasks, key=keys, kind=kinds)
        def post(self, task: int, key: int, kind: str) -> None:
            portal.call(self.driver.post, task, key, kind)

        @rule(
            target=held,
            worker=count,
            lease=st.sampled_from([10.0, 30.0, 300.0]),
            limit=st.integers(0, 3),
            queues=st.none() | st.none() | st.just([""]),
            agents=st.none() | st.none() | st.just(["a"]),
            task=st.none() | st.none() | tasks,
            version=st.sampled_from([1, 3, 3]),
        )
        def claim(self, worker: int, lease: float, *filters: Any, **named: Any) -> Any:
            return stateful.multiple(
                *portal.call(lambda: self.driver.claim(worker, lease, *filters, **named))
            )

        @rule(target=held, worker=count)
        def take_over(self, worker: int) -> Any:
            # Every worker pauses past its lease; their claims stay among those that are used later.
            portal.call(self.driver.pass_time, 310.7, 0.0)
            return self.claim(worker, 30.0, 3, None, None, None, 3)

        @rule(claim=held, stale=stale, fault=st.sampled_from([""] * 14 + list(FAULTS)), step=step)
        def append(self, claim: Claim, stale: bool, fault: str, step: dict[str, Any]) -> None:
            portal.call(self.driver.append, claim, stale, fault, step)

        @rule(claim=held, step=step, status=st.sampled_from(["waiting", "ended"]))
        def finish(self, claim: Claim, step: dict[str, Any], status: str) -> None:
            step = step | {"status": status, "consume": 99}
            portal.call(self.driver.append, claim, False, "", step)

        @rule(claim=held)
        def append_again(self, claim: Claim) -> None:
            portal.call(self.driver.retry, claim)

        @rule(worker=count, lease=st.sampled_from([10.0, 1000.0]))
        def renew(self, worker: int, lease: float) -> None:
            portal.call(self.driver.renew, worker, lease)

        @rule(claim=held, stale=stale)
        def release(self, claim: Claim, stale: bool) -> None:
            portal.call(self.driver.release, claim, stale)

        @rule(claim=held, stale=stale, back=st.lists(st.integers(0, 4), max_size=2), blobs=count)
        def purge(self, claim: Claim, stale: bool, back: list[int], blobs: int) -> None:
            portal.call(self.driver.purge, claim, stale, back, blobs)

        @rule(
            seconds=st.sampled_from([1.3, 11.7, 40.9]),
            jump=st.sampled_from([0.0, 0.0, 86_400.0, -86_400.0, 3601.0]),
        )
        def pass_time(self, seconds: float, jump: float) -> None:
            portal.call(self.driver.pass_time, seconds, jump)

        @rule(limit=st.sampled_from([1, 100]))
        def fire_timers(self, limit: int) -> None:
            portal.call(self.driver.fire_timers, limit)

        @rule(seconds=st.sampled_from([6.1, 17.3]))
        def pass_time_and_fire(self, seconds: float) -> None:
            portal.call(self.driver.pass_time, seconds, 0.0)
            portal.call(self.driver.fire_timers, 100)

        @precondition(lambda self: any(row.status == "ended" for row in self.driver.model.rows))
        @rule()
        def sweep(self) -> None:
            portal.call(self.driver.sweep)

        @rule(
            task=tasks,
            after=st.integers(0, 4),
            through=st.none() | st.integers(0, 6),
            limit=st.none() | st.integers(0, 3),
            only=st.none() | st.sampled_from([["probe"], ["probe.noted"], ["core"], []]),
        )
        def read(self, task: int, **asked: Any) -> None:
            portal.call(lambda: self.driver.read(task, **asked))

    return StoreMachine
