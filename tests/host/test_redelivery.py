"""A plugin that fails on an event delays itself alone, and gets every event in the end, in order."""

from __future__ import annotations

from typing import Any

import pytest

from noeta.core.errors import ProviderError
from noeta.core.extension import Extension
from noeta.core.records import Recorded
from noeta.core.view import TaskView
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply
from noeta.toolkit.function_tool import function_tool

pytestmark = pytest.mark.anyio


class Ledger(Extension):
    """Books every reply and turn, and says through which seq it has done so. `away`: it cannot."""

    name = "ledger"

    def __init__(self, *, redelivers: bool = True) -> None:
        self.away = True
        self.booked: list[int] = []
        self.asked: list[int] = []
        self._redelivers = redelivers

    def initial_state(self) -> int:
        return 0

    def reduce(self, state: int, kind: str, data: Any) -> int:
        return int(data)

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        if recorded.kind in ("model_replied", "turn_done"):
            self.asked.append(recorded.seq)
            if self.away:
                raise RuntimeError("the books are closed")
            self.booked.append(recorded.seq)
            view.record("ledger", "booked", recorded.seq)

    def delivered_through(self, view: TaskView) -> int | None:
        return view.ext_state("ledger") if self._redelivers else None


async def due(bench: Harness, task: str, seconds: float) -> None:
    """Let the time of the next try come, which is that far away."""
    row = await bench.row(task)
    assert (row.status, row.reason) == ("waiting", "idle")
    assert row.retry_at == bench.clock.now() + seconds
    bench.clock.advance(seconds)
    await bench.store.fire_timers()
    await bench.run()


async def test_a_task_is_taken_up_again_for_a_plugin_that_failed_in_a_minute_then_in_twice_the_time() -> None:
    ledger = Ledger()
    bench = Harness([ledger], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    for seconds in (60, 60, 120, 240, 480, 960, 1920, 3600, 3600):
        await due(bench, task, seconds)
    assert ledger.booked == []
    ledger.away = False
    await due(bench, task, 3600)
    events = [await bench.log(task, kind) for kind in ("model_replied", "turn_done")]
    assert ledger.booked == [record.seq for [record] in events]
    assert (await bench.row(task)).retry_at is None


async def test_after_a_failure_no_later_event_comes_first() -> None:
    ledger = Ledger()
    bench = Harness([ledger], ["Hello.", "Hello again."])
    task = await bench.start("hi")
    await bench.run()
    first, failed = ledger.asked[0], len(ledger.asked)
    assert failed == 1
    ledger.away = False
    await bench.post(task, "more")
    await bench.run()
    assert ledger.booked == sorted(set(ledger.booked))
    assert (ledger.booked[0], len(ledger.booked)) == (first, 4)


async def test_without_redelivery_what_failed_is_past() -> None:
    ledger = Ledger(redelivers=False)
    bench = Harness([ledger], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert len(ledger.asked) == 2
    assert (await bench.row(task)).retry_at is None


async def test_waiting_for_a_plugin_is_no_sign_of_poison() -> None:
    bench = Harness([Ledger()], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    for _ in range(10):
        bench.clock.advance(3600)
        await bench.store.fire_timers()
        await bench.run()
    assert (await bench.row(task)).attempts == 0


async def test_one_plugins_failure_delays_only_itself() -> None:
    class Other(Ledger):
        name = "other"

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.kind in ("model_replied", "turn_done"):
                self.booked.append(recorded.seq)
                view.record("other", "booked", recorded.seq)

        def delivered_through(self, view: TaskView) -> int | None:
            state: int = view.ext_state("other")
            return state

    ledger, other = Ledger(), Other()
    bench = Harness([ledger, other], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert len(other.booked) == 2
    await due(bench, task, 60)
    assert len(other.booked) == 2


async def test_a_kept_claim_tries_again_too() -> None:
    ledger = Ledger()

    class Hears(Extension):
        """Would have everything again whenever it is asked."""

        name = "hears"

        def __init__(self) -> None:
            self.heard: list[int] = []

        def delivered_through(self, view: TaskView) -> int | None:
            return 0

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            self.heard.append(recorded.seq)

    hears = Hears()
    bench = Harness([ledger, hears], ["Hello."])
    task = await bench.start("hi")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim)
    kept = True
    runner.work.outside.kept = lambda: kept

    async def wake(seconds: float) -> bool:
        nonlocal kept
        bench.clock.advance(10)
        ledger.away = bench.clock.now() < start + 65
        kept = not ledger.booked
        return True

    start = bench.clock.now()
    runner.work.outside.wake = wake
    await runner.run()
    assert len(ledger.booked) == 2
    assert bench.clock.now() - start < 300
    row = await bench.row(task)
    assert (row.status, row.worker, row.retry_at) == ("waiting", "", None)
    assert len(await bench.log(task, "claimed")) == 1
    # Who is not behind is not told again in this claim: the record before it came when the claim began.
    assert sorted(hears.heard) == [record.seq for record in await bench.log(task)]


async def test_a_kept_claim_waits_for_the_model_no_longer_than_it_has_to() -> None:
    bench = Harness(script=[])
    bench.provider._script = [ProviderError("overloaded", "busy", retry_at=bench.clock.now() + 90), "Hello."]
    task = await bench.start("hi")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim)
    runner.work.outside.kept = lambda: len(bench.provider.requests) < 2

    async def wake(seconds: float) -> bool:
        bench.clock.advance(10)
        return True

    runner.work.outside.wake = wake
    await runner.run()
    assert (await bench.row(task)).reason == "idle"
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Hello."]


class Strict(Ledger):
    """One whose failure may not be passed over."""

    name = "ledger"
    on_error = {"on_event": "park"}  # noqa: RUF012


@pytest.mark.parametrize("one_shot", [False, True], ids=["goes-on", "ends"])
async def test_a_plugin_that_may_not_be_passed_over_holds_the_task_up_and_no_end(one_shot: bool) -> None:
    ledger = Strict()
    bench = Harness([ledger], ["Hello."])
    task = await bench.start("hi", one_shot=one_shot)
    await bench.run()
    row = await bench.row(task)
    if one_shot:
        assert (row.status, row.reason) == ("ended", "done")
        return
    assert (row.status, row.reason, row.retry_at) == ("waiting", "plugin", bench.clock.now() + 60)
    bench.clock.advance(60)
    await bench.store.fire_timers()
    await bench.run()
    assert (await bench.row(task)).reason == "plugin"
    ledger.away = False
    bench.clock.advance(60)
    await bench.store.fire_timers()
    await bench.run()
    assert (await bench.row(task)).reason == "idle"
    assert len(ledger.booked) == 2


async def kept_until_it_works(bench: Harness, ledger: Ledger, away: float) -> None:
    """Run a claim that is kept for the `away` seconds that the plugin is. Then somebody says something."""
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim, kept=lambda: ledger.away)

    async def wake(seconds: float) -> bool:
        bench.clock.advance(away)
        ledger.away = False
        await bench.post(claim.task, "Go on.")
        return True

    runner.work.outside.wake = wake
    await runner.run()


async def test_a_plugin_without_redelivery_that_held_the_task_up_is_told_in_the_same_claim() -> None:
    ledger = Strict(redelivers=False)
    bench = Harness([ledger], ["Hello.", "Hello again."])
    task = await bench.start("hi")
    await kept_until_it_works(bench, ledger, 1)
    assert (await bench.row(task)).reason == "idle"
    assert ledger.booked == [record.seq for record in await bench.log(task, "model_replied", "turn_done")]


async def test_the_ones_after_a_plugin_that_holds_the_task_up_miss_nothing() -> None:
    class Second(Ledger):
        name = "second"

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.kind in ("model_replied", "turn_done"):
                self.booked.append(recorded.seq)
                view.record("second", "booked", recorded.seq)

        def delivered_through(self, view: TaskView) -> int | None:
            state: int = view.ext_state("second")
            return state

    ledger, second = Strict(), Second()
    bench = Harness([ledger], ["Hello.", "Hello again."])
    task = await bench.start("hi")
    await bench.run()
    # Another plugin comes, with the whole log to catch up on.
    shared: dict[str, Any] = {"store": bench.store, "clock": bench.clock, "ids": bench.ids}
    later = Harness([ledger, second], provider=bench.provider, **shared)
    await later.post(task, "and more")
    await kept_until_it_works(later, ledger, 60)
    events = await later.log(task, "model_replied", "turn_done")
    assert second.booked == [record.seq for record in events]


async def test_a_gate_that_may_not_be_passed_over_is_asked_again_later() -> None:
    class Guard(Extension):
        name = "guard"
        on_error = {"before_tool": "park"}  # noqa: RUF012
        away = True

        async def before_tool(self, view: TaskView, call: Any) -> None:
            if self.away:
                raise RuntimeError("the rules cannot be read")

        def tools(self, view: TaskView) -> Any:
            def look() -> str:
                """Look."""
                return "seen"

            return [function_tool(look)]

    guard = Guard()
    bench = Harness([guard], [reply("", call("look")), "Done."])
    task = await bench.start("go")
    await bench.run()
    row = await bench.row(task)
    assert (row.reason, row.retry_at) == ("plugin", bench.clock.now() + 60)
    guard.away = False
    bench.clock.advance(60)
    await bench.store.fire_timers()
    await bench.run()
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Done."]
