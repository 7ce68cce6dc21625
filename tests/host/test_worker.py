"""A worker runs what is ready, and whatever happens to it, no task is lost or run twice at once."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

import anyio
import pytest

from noeta import KeptClaim
from noeta.core.codec import encode
from noeta.core.errors import ProviderError, Unavailable
from noeta.core.extension import Extension
from noeta.core.items import Interrupt, Post, encode_body
from noeta.core.log import Append, Appended, Claim
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import Claimed, Notice, Plugin
from noeta.core.tool import ToolContext, ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.host import running
from noeta.host.models import Models
from noeta.host.worker import Worker
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply
from noeta.toolkit.agent import Agent
from noeta.toolkit.in_memory import InMemoryStore

pytestmark = pytest.mark.anyio


class Tool:
    description = "A tool."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    clearable = False

    def __init__(self, name: str, run: Callable[..., Any], *, read_only: bool = False, **flags: Any) -> None:
        self.name, self.read_only, self._run = name, read_only, run
        self.flags = ToolFlags(**flags)

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output = self._run(ctx)
        return await output if hasattr(output, "__await__") else output


class Tools(Extension):
    name = "tools"

    def __init__(self, *tools: Any) -> None:
        self._tools = tools

    def tools(self, view: TaskView) -> Any:
        return self._tools


class Gate:
    """A tool run that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.entered, self.go, self.cut = anyio.Event(), anyio.Event(), False

    async def __call__(self, ctx: ToolContext) -> ToolOutput:
        self.entered.set()
        try:
            await self.go.wait()
        except BaseException:
            self.cut = True
            raise
        return text_output("passed")


async def quiet() -> None:
    """Let everybody go as far as they get without time."""
    for _ in range(100):
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def working(bench: Harness, **settings: Any) -> AsyncIterator[Worker]:
    """A worker that works until the block is left; time passes for it while it stops."""
    worker = Worker(settings.pop("means", bench.means), **settings)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.run)
        yield worker
        worker.stop()


async def until(bench: Harness, true: Callable[[], Any], seconds: float = 300.0, step: float = 0.25) -> None:
    """Let time pass until something is true, and no more than `seconds`."""
    for _ in range(int(seconds / step)):
        await quiet()
        given = true()
        if await given if hasattr(given, "__await__") else given:
            return
        bench.clock.advance(step)
    raise AssertionError("it did not come true")


async def rests(bench: Harness, task: str, reason: str = "idle") -> None:
    async def true() -> bool:
        row = await bench.row(task)
        return row.status in ("waiting", "ended") and row.reason == reason and not row.worker

    await until(bench, true)


# ---- claiming


async def test_it_runs_what_is_there_and_what_comes() -> None:
    bench = Harness(script=["Hello.", "Hello again."])
    first = await bench.start("hi")
    async with working(bench):
        await rests(bench, first)
        second = await bench.start("hi")
        await quiet()
        # What the store says is enough: no time has passed.
        assert (await bench.row(second)).reason == "idle"


async def test_tasks_run_side_by_side_up_to_the_capacity() -> None:
    gates = [Gate() for _ in range(3)]
    waiting = list(gates)

    async def wait(ctx: ToolContext) -> ToolOutput:
        return await waiting.pop(0)(ctx)

    tools = Tools(Tool("wait", wait))
    bench = Harness([tools], [reply("", call("wait"))] * 3 + ["Done."] * 3)
    tasks = [await bench.start("go") for _ in range(3)]
    async with working(bench, capacity=2):
        await quiet()
        assert [gate.entered.is_set() for gate in gates] == [True, True, False]
        gates[0].go.set()
        await until(bench, gates[2].entered.is_set)
        gates[1].go.set()
        gates[2].go.set()
        for task in tasks:
            await rests(bench, task)


class SlowToLeave(InMemoryStore):
    """Whoever stops watching a task takes a while for it."""

    @asynccontextmanager
    async def watch(self, task: str | None = None, *, log: bool = True) -> AsyncIterator[Any]:
        async with super().watch(task, log=log) as watch:
            yield watch
            if task is not None:
                with anyio.CancelScope(shield=True):
                    for _ in range(20):
                        await anyio.lowlevel.checkpoint()


async def test_a_task_that_waits_for_room_is_taken_up_when_there_is_some() -> None:
    bench = Harness(script=["One.", "Two."], store=SlowToLeave(FrozenClock(), SeededIds()))
    tasks = [await bench.start("go") for _ in range(2)]
    async with working(bench, capacity=1):
        await quiet()
        # What the store says is enough: no time has passed.
        await quiet()
        assert [(await bench.row(task)).reason for task in tasks] == ["idle", "idle"]


async def test_other_queues_and_agents_of_others_are_left_alone() -> None:
    bench = Harness(script=["Mine."], agents=[Agent("other", model="model")])
    mine = await bench.start("hi", queue="mine")
    theirs = await bench.start("hi", queue="theirs")
    strange = await bench.start("hi", agent="other", queue="mine")
    here = Harness(store=bench.store, clock=bench.clock, ids=bench.ids, provider=bench.provider)
    async with working(here, queues=["mine"]):
        await rests(here, mine)
        assert [(await bench.row(task)).status for task in (theirs, strange)] == ["ready", "ready"]


async def test_a_timer_fires_when_it_is_due() -> None:
    class Wakes(Extension):
        name = "wakes"

        async def on_event(self, view: TaskView, recorded: Any) -> None:
            if recorded.kind == "turn_done" and recorded.data.text == "Hello.":
                view.set_timer("later", recorded.at + 30, "time is up")

    bench = Harness([Wakes()], ["Hello.", "Yes."])
    task = await bench.start("hi")
    async with working(bench):
        await rests(bench, task)
        began = bench.clock.now()
        await until(bench, lambda: len(bench.provider.requests) == 2)
        assert 30 <= bench.clock.now() - began <= 31.5


async def test_an_outage_is_waited_out_in_the_store() -> None:
    bench = Harness(script=[])
    down = True

    def respond(request: ModelRequest) -> Any:
        return ProviderError("overloaded", "busy") if down else "Hello."

    bench.provider._respond = respond
    means = replace(bench.means, model=Models({"": bench.provider}, bench.clock, bench.ids))
    task = await bench.start("hi")
    async with working(bench, means=means):
        await rests(bench, task, "provider")
        await until(bench, lambda: failures(bench, task, 3), 3_600, 5.0)
        down = False
        await rests(bench, task)
    waits = [record.data.retry_at - record.at for record in await bench.log(task, "model_failed")]
    assert [round(wait / 60) for wait in waits] == [1, 2, 4]


async def failures(bench: Harness, task: str, count: int) -> bool:
    return len(await bench.log(task, "model_failed")) == count


# ---- stopping what runs


async def test_an_interrupt_stops_a_running_tool() -> None:
    gate = Gate()
    bench = Harness([Tools(Tool("wait", gate))], [reply("", call("wait"))])
    task = await bench.start("go")
    async with working(bench):
        await until(bench, gate.entered.is_set)
        await bench.interrupt(task)
        await rests(bench, task)
    assert gate.cut
    assert (await bench.kinds(task))[-1] == "interrupted"


@pytest.mark.parametrize("end", ["interrupted", "task_ended"])
async def test_what_stops_a_running_tool_is_seen_behind_any_number_of_messages(end: str) -> None:
    gate = Gate()
    bench = Harness([Tools(Tool("wait", gate))], [reply("", call("wait"))])
    task = await bench.start("go")
    async with working(bench):
        await until(bench, gate.entered.is_set)
        for _ in range(running.PEEK):
            await bench.post(task, "and more")
        await (bench.interrupt(task) if end == "interrupted" else bench.cancel(task))
        await until(bench, lambda: gate.cut)
        await until(bench, lambda: waits(bench, task) if end == "interrupted" else ended(bench, task))
    assert (await bench.kinds(task))[-1] == end


async def ended(bench: Harness, task: str) -> bool:
    return (await bench.row(task)).status == "ended"


async def test_an_interrupt_of_another_turn_stops_nothing() -> None:
    gate = Gate()
    bench = Harness([Tools(Tool("wait", gate))], ["Hello.", reply("", call("wait")), "Done."])
    task = await bench.start("hi")
    async with working(bench):
        await rests(bench, task)
        await bench.post(task, "go")
        await until(bench, gate.entered.is_set)
        stale = Post(task=task, key="late", kind="interrupt", body=encode_body(Interrupt(turn=2)))
        await bench.store.post(stale)
        bench.clock.advance(5)
        await quiet()
        gate.go.set()
        await rests(bench, task)
    assert not gate.cut


def never_answered() -> tuple[Harness, anyio.Event]:
    """A harness whose model is asked, which the event says, and never replies."""
    bench, asked = Harness(), anyio.Event()

    async def never(request: ModelRequest) -> Any:
        asked.set()
        await anyio.sleep_forever()

    bench.provider._respond = never
    return bench, asked


async def test_a_cancel_stops_the_model_and_ends_the_task() -> None:
    bench, asked = never_answered()
    task = await bench.start("go")
    async with working(bench):
        await until(bench, asked.is_set)
        await bench.cancel(task)
        await rests(bench, task, "cancelled")


async def test_a_message_does_not_stop_a_running_tool() -> None:
    gate = Gate()
    bench = Harness([Tools(Tool("wait", gate))], [reply("", call("wait")), "Done."])
    task = await bench.start("go")
    async with working(bench):
        await until(bench, gate.entered.is_set)
        await bench.post(task, "and this")
        bench.clock.advance(2)
        await quiet()
        gate.go.set()
        await rests(bench, task)
    assert not gate.cut
    assert [message.text for message in bench.provider.requests[1].messages][-1] == "and this"


async def test_results_of_calls_are_written_while_another_one_runs_long() -> None:
    gate = Gate()
    tools = Tools(
        Tool("quick", lambda ctx: text_output("quick"), read_only=True), Tool("slow", gate, read_only=True)
    )
    bench = Harness([tools], [reply("", call("quick"), call("slow")), "Done."])
    task = await bench.start("go")
    async with working(bench):
        await until(bench, gate.entered.is_set)
        assert "tool_finished" not in await bench.kinds(task)
        await until(bench, lambda: finished(bench, task), 3)
        gate.go.set()
        await rests(bench, task)


async def finished(bench: Harness, task: str) -> bool:
    return "tool_finished" in await bench.kinds(task)


# ---- leases


async def test_a_lease_is_renewed_for_as_long_as_a_task_runs() -> None:
    gate = Gate()
    bench = Harness([Tools(Tool("wait", gate))], [reply("", call("wait")), "Done."])
    task = await bench.start("go")
    async with working(bench):
        await until(bench, gate.entered.is_set)
        for _ in range(400):
            bench.clock.advance(0.5)
            await quiet()
        assert await bench.store.claim("another") == []
        gate.go.set()
        await rests(bench, task)
    assert len(await bench.log(task, "claimed")) == 1


async def test_who_lost_the_lease_stops_at_once_and_goes_on_under_a_new_name() -> None:
    gate, lost = Gate(), list[str]()

    async def wait(ctx: ToolContext) -> ToolOutput:
        assert ctx.keep
        ctx.keep().on_lost(lambda: lost.append("told"))
        return await gate(ctx)

    bench = Harness([Tools(Tool("wait", wait))], [reply("", call("wait")), "Recovered."])
    task = await bench.start("go")
    async with working(bench) as worker:
        await until(bench, gate.entered.is_set)
        name = worker.name
        # The machine slept.
        bench.clock.advance(100)
        await rests(bench, task)
        assert worker.name != name
    assert (gate.cut, lost) == (True, ["told"])
    assert "turn_done" in await bench.kinds(task)


async def test_a_worker_that_was_taken_for_dead_writes_nothing_more() -> None:
    gate = Gate()
    bench = Harness([Tools(Tool("wait", gate))], [reply("", call("wait")), "Done by another."])
    task = await bench.start("go")
    async with working(bench, lease=30.0):
        await until(bench, gate.entered.is_set)
        bench.clock._elapsed += 40_000_000
        [claim] = await bench.store.claim("another")
        other = await bench.take_up(claim)
        gate.go.set()
        await quiet()
        await other.run()
        await rests(bench, task)
    fences = [record.data.fence for record in await bench.log(task, "claimed")]
    assert fences == [1, 2]
    assert len(await bench.log(task, "tool_finished")) == 1


async def test_a_lease_that_cannot_be_renewed_is_lost_before_others_may_claim() -> None:
    gate, lost = Gate(), list[float]()

    async def wait(ctx: ToolContext) -> ToolOutput:
        assert ctx.keep
        ctx.keep().on_lost(lambda: lost.append(bench.clock.monotonic()))
        return await gate(ctx)

    bench = Harness([Tools(Tool("wait", wait))], [reply("", call("wait")), "Recovered."])
    store = Flaky(bench.clock, bench.ids)
    bench = Harness([Tools(Tool("wait", wait))], store=store, clock=bench.clock, provider=bench.provider)
    task = await bench.start("go")
    async with working(bench, lease=30.0):
        await until(bench, gate.entered.is_set)
        began, store.down = bench.clock.monotonic(), True
        await until(bench, lambda: lost, 60)
        assert 25 <= lost[0] - began < 30
        store.down = False
        await rests(bench, task)
    assert gate.cut
    assert len(await bench.log(task, "tool_finished")) == 1


# ---- keeping a claim


async def test_a_kept_claim_stays_over_a_wait_and_posts_still_wake_the_task() -> None:
    keeps: list[KeptClaim] = []

    def keep(ctx: ToolContext) -> ToolOutput:
        assert ctx.keep
        keeps.extend([ctx.keep(), ctx.keep()])
        return text_output("kept")

    bench = Harness([Tools(Tool("keep", keep))], [reply("", call("keep")), "Kept.", "Still here."])
    task = await bench.start("go")
    async with working(bench):
        await until(bench, lambda: waits(bench, task))
        bench.clock.advance(20)
        await quiet()
        assert (await bench.row(task)).worker
        await bench.post(task, "more")
        await until(bench, lambda: len(bench.provider.requests) == 3)
        keeps[0].release()
        keeps[0].release()
        await until(bench, lambda: waits(bench, task))
        assert (await bench.row(task)).worker
        keeps[1].release()
        await rests(bench, task)
    assert len(await bench.log(task, "claimed")) == 1
    assert [keep.lease_seconds for keep in keeps] == [30.0, 30.0]


async def waits(bench: Harness, task: str) -> bool:
    return (await bench.row(task)).status == "waiting"


async def test_who_keeps_a_claim_is_told_once_when_the_worker_stops() -> None:
    told: list[str] = []
    kept: list[KeptClaim] = []

    def keep(ctx: ToolContext) -> ToolOutput:
        assert ctx.keep
        kept.append(claim := ctx.keep())
        claim.on_lost(lambda: told.append("first"))
        claim.on_lost(lambda: 1 / 0)
        claim.on_lost(sys.exit)
        claim.on_lost(lambda: told.append("taken back"))()
        claim.on_lost(lambda: told.append("last"))
        return text_output("kept")

    bench = Harness([Tools(Tool("keep", keep))], [reply("", call("keep")), "Kept."])
    task = await bench.start("go")
    async with working(bench):
        await until(bench, lambda: waits(bench, task))
    assert told == ["first", "last"]
    assert kept[0].lost
    assert not (await bench.row(task)).worker
    kept[0].on_lost(lambda: told.append("late"))
    assert told[-1] == "late"


# ---- stopping


async def test_a_stop_waits_for_a_call_that_would_be_cut_off_for_good() -> None:
    gate = Gate()
    bench = Harness([Tools(Tool("write", gate))], [reply("", call("write")), "Done."])
    task = await bench.start("go")
    async with working(bench) as worker:
        await until(bench, gate.entered.is_set)
        worker.stop()
        await quiet()
        assert not gate.cut
        gate.go.set()
        await until(bench, lambda: released(bench, task))
    assert not gate.cut
    await bench.run()
    assert len(await bench.log(task, "tool_started")) == 1
    assert (await bench.row(task)).reason == "idle"


async def released(bench: Harness, task: str) -> bool:
    return not (await bench.row(task)).worker


async def test_a_stop_does_not_wait_for_ever() -> None:
    gate = Gate()
    bench = Harness([Tools(Tool("write", gate))], [reply("", call("write")), "Done."])
    task = await bench.start("go")
    async with working(bench) as worker:
        await until(bench, gate.entered.is_set)
        worker.stop()
        await until(bench, lambda: released(bench, task), 12)
    assert gate.cut
    await bench.run()
    [finished] = await bench.log(task, "tool_finished")
    assert finished.data.is_error


async def test_a_stop_does_not_wait_for_the_model_and_the_turn_goes_on_elsewhere() -> None:
    bench, asked = never_answered()
    task = await bench.start("go")
    async with working(bench) as worker:
        await until(bench, asked.is_set)
        worker.stop()
        await until(bench, lambda: released(bench, task), 2)
    assert (await bench.row(task)).status == "ready"
    bench.provider._respond = lambda request: "Hello."
    await bench.run()
    assert "model_failed" not in await bench.kinds(task)


async def test_a_worker_that_is_cancelled_writes_what_is_done_and_gives_its_tasks_up() -> None:
    gate = Gate()
    tools = Tools(
        Tool("quick", lambda ctx: text_output("quick"), read_only=True), Tool("slow", gate, read_only=True)
    )
    bench = Harness([tools], [reply("", call("quick"), call("slow")), "Done."])
    task = await bench.start("go")
    async with anyio.create_task_group() as group:
        group.start_soon(Worker(bench.means).run)
        await until(bench, gate.entered.is_set)
        group.cancel_scope.cancel()
    row = await bench.row(task)
    assert (row.status, row.worker) == ("ready", "")
    assert await finished(bench, task)


# ---- what cannot be run


async def abandon(bench: Harness, times: int) -> None:
    """Claim the ready task as workers that die at once."""
    for n in range(times):
        assert len(await bench.store.claim(f"dead {n}", lease=30.0)) == 1
        bench.clock.advance(31)


async def test_a_task_whose_claims_keep_dying_is_laid_aside_and_a_message_tries_again() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start("hi")
    await abandon(bench, 5)
    async with working(bench):
        await rests(bench, task, "quarantined")
        assert bench.provider.requests == []
        [notice] = await bench.log(task, "notice")
        assert notice.data.topic == "quarantined"
        await bench.post(task, "again")
        await rests(bench, task)
    assert [message.text for message in bench.provider.requests[0].messages] == ["hi", "again"]


async def test_fewer_dead_claims_and_waits_for_the_model_are_no_poison() -> None:
    bench = Harness()
    task = await bench.start("hi")
    for _ in range(8):
        at = bench.clock.now() + 10
        bench.provider._script = [ProviderError("overloaded", "busy", retry_at=at)]
        await bench.run()
        bench.clock.advance(11)
    bench.provider._script = ["Hello."]
    await bench.store.fire_timers()
    await abandon(bench, 2)
    async with working(bench):
        await rests(bench, task)


async def test_a_task_laid_aside_can_be_cancelled() -> None:
    bench = Harness()
    task = await bench.start("hi")
    await abandon(bench, 5)
    await bench.cancel(task)
    async with working(bench):
        await rests(bench, task, "cancelled")


async def test_a_task_that_this_host_cannot_run_is_given_up_now_and_then_and_others_go_on() -> None:
    bench = Harness(script=["Mine.", "Mine."])
    strange = await bench.start("hi")
    [claim] = await bench.store.claim("newer")
    line = encode(2, 0.0, "core", "notice", Notice(text="x")).line
    line = line._replace(name="core.later", data=line.data.replace(b'"notice"', b'"later"'))
    await bench.store.append(claim, Append(expected_seq=1, id=bytes(16), lines=[line], release=True))
    async with working(bench):
        mine = await bench.start("hi")
        await rests(bench, mine)
        for _ in range(120):
            bench.clock.advance(0.5)
            await quiet()
    row = await bench.row(strange)
    assert (row.status, row.last_seq, row.attempts) == ("ready", 2, 0)
    assert 3 <= row.fence <= 9


async def test_a_task_that_requires_a_plugin_that_is_not_here_waits_and_says_for_what() -> None:
    bench = Harness()
    task = await bench.start("hi")
    [claim] = await bench.store.claim("other")
    plugins = [Plugin(name="guard", required=True)]
    line = encode(2, 0.0, "core", "claimed", Claimed(fence=1, plugins=plugins)).line
    await bench.store.append(claim, Append(expected_seq=1, id=bytes(16), lines=[line], release=True))
    async with working(bench):
        await rests(bench, task, "plugin")
    assert bench.provider.requests == []
    assert [item.data.text for item in await bench.log(task, "notice")] == [
        "This task waits: it requires plugin 'guard', which its agent here does not have."
    ]
    # What it requires is still known, and it is taken up again by itself.
    assert [plugin.name for plugin in (await bench.state(task)).plugins] == ["guard"]
    row = await bench.row(task)
    assert row.retry_at == bench.clock.now() + 60
    guarded = Harness(
        [type("Guard", (Extension,), {"name": "guard"})()], ["Hello."], store=bench.store, clock=bench.clock
    )
    bench.clock.advance(61)
    async with working(guarded):
        await rests(guarded, task)
    assert [message.text for message in guarded.provider.requests[0].messages] == ["hi"]


async def test_a_task_that_fails_in_a_way_nobody_foresaw_is_laid_aside_too() -> None:
    bench = Harness()

    async def broken(*args: Any) -> Any:
        raise RuntimeError("a bug")

    means = replace(bench.means, model=broken)
    task = await bench.start("hi")
    async with working(bench, means=means):
        await rests(bench, task, "quarantined")


# ---- a store that fails


class Flaky(InMemoryStore):
    """Fails while it is told to."""

    down = False

    async def claim(self, worker: str, **settings: Any) -> list[Claim]:
        if self.down:
            raise Unavailable("the cable is out")
        return await super().claim(worker, **settings)

    async def renew(self, worker: str, lease: float = 30.0) -> bool:
        if self.down:
            raise Unavailable("the cable is out")
        return await super().renew(worker, lease)

    async def append(self, claim: Claim, append: Append) -> Appended:
        if self.down:
            raise Unavailable("the cable is out")
        return await super().append(claim, append)


async def test_a_store_that_is_away_for_a_while_costs_time_alone() -> None:
    bench = Harness(script=["Hello.", "Hello."])
    store = Flaky(bench.clock, bench.ids)
    bench = Harness(store=store, clock=bench.clock, ids=bench.ids, provider=bench.provider)

    def respond(request: ModelRequest) -> ModelResponse | str:
        store.down = len(bench.provider.requests) == 1
        return "Hello."

    bench.provider._script, bench.provider._respond = [], respond
    task = await bench.start("hi")
    async with working(bench):
        await until(bench, lambda: store.down)
        for _ in range(20):
            bench.clock.advance(0.5)
            await quiet()
        store.down = False
        await rests(bench, task)
    assert (await bench.kinds(task)).count("model_replied") == 1
