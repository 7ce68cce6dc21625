"""Costs, continued tasks, children and keeps: points 19, 20 and 23 to 25 of how the kernel is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from noeta.core.errors import Fenced
from noeta.core.extension import Extension
from noeta.core.log import Append
from noeta.core.messages import ToolResult, user
from noeta.core.ports import ModelRequest
from noeta.core.state import TaskState
from noeta.core.tool import Park, ToolContext, ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView, child_id
from noeta.host.keeps import Keeps
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply

pytestmark = pytest.mark.anyio


class Tool:
    description, clearable, read_only = "A tool.", False, False
    input_schema: ClassVar[Any] = {"type": "object"}

    def __init__(self, name: str, run: Callable[..., Any], **flags: Any) -> None:
        self.name, self._run, self.flags = name, run, ToolFlags(**flags)
        self.resumed: list[Any] = []

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output = self._run(ctx)
        return await output if hasattr(output, "__await__") else output

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        self.resumed.append(outcome)
        return text_output("resumed")


class Tools(Extension):
    name = "tools"

    def __init__(self, *tools: Tool) -> None:
        self._tools = tools

    def tools(self, view: TaskView) -> Any:
        return self._tools


def results(request: ModelRequest) -> list[str]:
    blocks = [block for message in request.messages for block in message.content]
    return [b.content[0].text for b in blocks if isinstance(b, ToolResult)]  # type: ignore[union-attr]


# ---- 19: what a plugin's own calls of a model cost


@pytest.mark.parametrize("fails", [False, True], ids=["ends-well", "fails"])
async def test_what_a_tool_asks_of_the_model_is_booked_on_its_plugin_even_when_it_fails(fails: bool) -> None:
    async def think(ctx: ToolContext) -> ToolOutput:
        assert ctx.complete
        response = await ctx.complete(ModelRequest(model="small", messages=[user("think")]))
        if fails:
            raise ValueError(response.message.text)
        return text_output(response.message.text)

    bench = Harness([Tools(Tool("think", think))], [reply("", call("think")), "Hm.", "Done."])
    task = await bench.start("go")
    await bench.run()
    [called] = await bench.log(task, "model_called")
    assert (called.data.plugin, called.data.model) == ("tools", "small")
    assert called.data.usage.output > 0
    # It is no step: the conversation holds no word of it but the result.
    assert len(await bench.log(task, "model_replied")) == 2
    assert results(bench.provider.requests[2]) == ["think failed: ValueError: Hm." if fails else "Hm."]


async def test_what_a_plugins_model_call_costs_is_booked_when_its_hook_fails_after_it() -> None:
    class Thinks(Extension):
        name = "thinks"

        async def on_start(self, view: TaskView) -> None:
            assert view.complete
            await view.complete(ModelRequest(model="small", messages=[user("think")]))
            raise ValueError("boom")

    bench = Harness([Thinks()], ["thought", "Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert [record.data.plugin for record in await bench.log(task, "model_called")] == ["thinks"]
    assert [record.data.plugin for record in await bench.log(task, "plugin_failed")] == ["thinks"]


# ---- 20: tasks that continue others


async def test_a_call_that_a_fork_inherits_unfinished_gets_a_result_and_is_never_run() -> None:
    ran: list[str] = []
    tool = Tool("wait", lambda ctx: (ran.append(ctx.task_id), ToolOutput(park=Park(on="question")))[1])
    bench = Harness([Tools(tool)], [reply("", call("wait")), "Never mind."])
    task = await bench.start("go")
    await bench.run()
    through = (await bench.row(task)).last_seq
    fork = await bench.start("go on", task="fork", history_from=task, history_through=through)
    await bench.run()
    assert results(bench.provider.requests[1]) == [
        "The call of wait was not finished where this task begins."
    ]
    assert (ran, tool.resumed) == ([task], [])
    log = [record.seq for record in await bench.log(fork) if record.seq > through]
    assert log == list(range(through + 1, through + 1 + len(log)))
    assert (await bench.row(task)).reason == "question"


class Continues(Tool):
    """Spawns a child that continues another task as `past` says, in one of its methods."""

    def __init__(self, method: str, past: dict[str, Any]) -> None:
        super().__init__("spawn", lambda ctx: self._do("run", ctx))
        self._method, self._past = method, past

    async def _do(self, method: str, ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn is not None
        if method == "run" and self._method == "recover":
            raise Died
        if method == self._method:
            ctx.spawn("agent", "go on", **self._past)
            return text_output("spawned")
        return ToolOutput(park=Park(on="question"))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return await self._do("withdraw" if outcome is None else "resume", ctx)

    async def recover(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return await self._do("recover", ctx)


class Died(BaseException):
    """The worker is gone."""


PASTS = {
    "unknown": ({"history_from": "nope"}, "There is no task 'nope' in this store."),
    "beyond": ({"history_from": "old", "history_through": 99}, "task 'old' has no record 99"),
    "before": ({"history_from": "old", "history_through": 0}, "task 'old' has no record 0"),
    "of-nothing": ({"history_through": 3}, "history_through is 3, and history_from names no task"),
    "no-name": ({"history_from": 5}, "cannot be stored"),
}


@pytest.mark.parametrize("past", PASTS)
@pytest.mark.parametrize("method", ["run", "resume", "recover", "withdraw"])
async def test_a_child_with_nothing_to_continue_is_an_error_of_the_call(method: str, past: str) -> None:
    given, why = PASTS[past]
    bench = Harness([Tools(Continues(method, given))], ["Old.", reply("", call("spawn")), "Sorry.", "Fine."])
    await bench.start("long ago", task="old")
    await bench.run()
    task = await bench.start("go")
    if method == "recover":
        with pytest.raises(Died):
            await bench.run()
        bench.clock.advance(31)
        bench.worker = "another"
    await bench.run()
    if method == "resume":
        [parked] = await bench.log(task, "tool_parked")
        await bench.answer(task, parked.data.call, values={"a": "b"})
    if method == "withdraw":
        await bench.interrupt(task)
        await bench.run()
        await bench.post(task, "go on")
    await bench.run()
    [result] = await bench.log(task, "tool_finished")
    assert why in result.message.content[0].content[0].text
    assert result.data.is_error
    assert (await bench.children(task), (await bench.state(task)).children) == ([], {})
    assert (await bench.row(task)).reason == "idle"


async def test_a_child_continues_another_task_up_to_where_it_was_told() -> None:
    past: dict[str, Any] = {"history_from": "old"}
    bench = Harness([Tools(Continues("run", past))], ["Old.", reply("", call("spawn")), "Done.", "Child."])
    await bench.start("long ago", task="old")
    await bench.run()
    task = await bench.start("go")
    await bench.run()
    [child] = await bench.children(task)
    row, old = await bench.row(child), await bench.row("old")
    assert (row.base, row.through) == ("old", old.last_seq)


# ---- 23: what a task requires


class Guard(Extension):
    name = "guard"

    def __init__(self, *, version: str = "1", required: bool = False, gives: Any = None) -> None:
        self.version, self.required, self._gives = version, required, gives

    def inherit(self, state: TaskState) -> Any:
        if isinstance(self._gives, Exception):
            raise self._gives
        return self._gives or {}


async def test_the_plugins_of_a_task_are_recorded_when_it_begins_and_when_they_change() -> None:
    bench = Harness([Guard(required=True)], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    again = Harness(
        [Guard(version="2", required=True)], ["Fine."], store=bench.store, clock=bench.clock, ids=bench.ids
    )
    await again.post(task, "more")
    await again.run()
    [created] = await again.log(task, "task_created")
    assert [(p.name, p.version, p.required) for p in created.data.plugins] == [("guard", "1", True)]
    first, second = await again.log(task, "claimed")
    assert first.data.plugins is None
    assert [(p.name, p.version) for p in second.data.plugins] == [("guard", "2")]


async def test_a_release_with_other_defaults_goes_on_with_the_same_task() -> None:
    class Limits(Guard):
        name = "limits"

        def initial_state(self) -> int:
            return 5 if self.version == "1" else 9

    bench = Harness([Limits()], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    again = Harness([Limits(version="2")], ["Fine."], store=bench.store, clock=bench.clock, ids=bench.ids)
    await again.post(task, "more")
    await again.run()
    assert (await again.row(task)).reason == "idle"
    assert (await again.state(task)).states["limits"] == 9


async def test_a_plugin_that_does_not_say_what_a_child_inherits_lets_none_be_made() -> None:
    def spawn(ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return text_output(ctx.spawn("agent", "part"))

    bench = Harness(
        [Tools(Tool("spawn", spawn)), Guard(gives=ValueError("boom"))], [reply("", call("spawn")), "Done."]
    )
    task = await bench.start("go")
    await bench.run()
    assert "plugin 'guard'" in results(bench.provider.requests[1])[0].lower()
    assert await bench.children(task) == []


async def test_a_child_gets_what_its_parents_plugins_say_it_inherits() -> None:
    def spawn(ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return text_output(ctx.spawn("agent", "part", config={"own": 1}, background=True))

    bench = Harness(
        [Tools(Tool("spawn", spawn)), Guard(gives={"mode": "strict", "own": 2})],
        [reply("", call("spawn")), "Done.", "Part done."],
    )
    task = await bench.start("go")
    await bench.run()
    [child] = await bench.children(task)
    assert (await bench.state(child)).config == {"mode": "strict", "own": 2}


# ---- 24: ids of children


async def test_a_childs_id_comes_from_its_parent_and_the_number_of_the_spawn_in_its_call() -> None:
    def spawn(ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        made = [ctx.spawn("agent", f"part {n}", background=True) for n in range(2)]
        assert made == [child_id(ctx.task_id, f"{ctx.call_id}.{n}") for n in range(2)]
        return text_output("two")

    bench = Harness([Tools(Tool("spawn", spawn))], [reply("", call("spawn")), "Done.", "One.", "Two."])
    task = await bench.start("go")
    await bench.run()
    assert results(bench.provider.requests[1]) == ["two"]
    assert len(await bench.children(task)) == 2


async def test_a_child_spawned_in_an_append_that_is_fenced_does_not_exist() -> None:
    async def spawn(ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        ctx.spawn("agent", "part")
        # The lease runs out while the call runs, and somebody else takes the task over.
        bench.clock.advance(31)
        assert await bench.store.claim("another")
        return text_output("spawned")

    bench = Harness([Tools(Tool("spawn", spawn))], [reply("", call("spawn"))])
    task = await bench.start("go")
    with pytest.raises(Fenced):
        await bench.run()
    assert await bench.children(task) == []
    assert await bench.log(task, "child_spawned") == []


# ---- 25: keeping a claim


def told(keeps: Keeps) -> list[str]:
    """What those who keep the claim hear of its loss."""
    heard: list[str] = []
    for name in ("first", "second"):
        keeps.keep().on_lost(lambda name=name: heard.append(name))  # type: ignore[misc]
    return heard


def test_a_claim_is_kept_until_the_last_keep_is_released_and_a_release_counts_once() -> None:
    changed: list[str] = []
    keeps = Keeps(30.0, lambda: changed.append("changed"))
    first, second = keeps.keep(), keeps.keep()
    first.release()
    first.release()
    assert (bool(keeps), changed) == (True, [])
    second.release()
    assert (bool(keeps), changed) == (False, ["changed"])
    keeps.lose()
    assert first.lost


def test_each_callback_for_a_lost_claim_is_called_once_and_one_that_raises_stops_no_other() -> None:
    keeps = Keeps(30.0, lambda: None)
    keeps.keep().on_lost(lambda: 1 / 0)
    heard = told(keeps)
    keeps.lose()
    keeps.lose()
    assert sorted(heard) == ["first", "second"]
    assert not keeps
    late: list[str] = []
    keeps.keep().on_lost(lambda: late.append("at once"))
    assert late == ["at once"]


async def test_on_start_runs_once_a_claim_and_not_at_each_wake_of_a_kept_one() -> None:
    class Starts(Extension):
        name = "starts"
        count = 0

        async def on_start(self, view: TaskView) -> None:
            self.count += 1

    starts = Starts()
    bench = Harness([starts], ["Hello.", "Again."])
    task = await bench.start("hi")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim, kept=lambda: len(bench.provider.requests) < 2)

    async def wake(seconds: float) -> bool:
        await bench.post(task, "more")
        return True

    runner.work.outside.wake = wake
    await runner.run()
    assert (starts.count, len(bench.provider.requests)) == (1, 2)


async def test_an_ended_task_is_claimed_for_an_erasure_and_for_nothing_else() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start("a secret", one_shot=True)
    await bench.run()
    assert await bench.store.claim("other") == []
    [received] = await bench.log(task, "received")
    await bench.erase(task, received.seq)
    await bench.run()
    assert not any(b"a secret" in line.data for line in await bench.store.read(task))
    row = await bench.row(task)
    assert (row.status, row.unread, row.worker) == ("ended", 0, "")
    assert await bench.store.claim("other") == []


async def test_what_was_erased_of_an_ended_task_is_removed_by_the_next_worker_when_one_dies() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start("a secret", one_shot=True)
    await bench.run()
    [received] = await bench.log(task, "received")
    await bench.erase(task, received.seq)
    whole = bench.store.purge

    async def dies(*args: Any) -> None:
        raise KeyboardInterrupt

    bench.store.purge = dies  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        await bench.run()
    bench.store.purge = whole  # type: ignore[method-assign]
    assert len(await bench.log(task, "erased")) == 1
    assert any(b"a secret" in line.data for line in await bench.store.read(task))
    bench.clock.advance(31)
    bench.worker = bench.ids.new()
    await bench.run()
    assert not any(b"a secret" in line.data for line in await bench.store.read(task))
    assert (await bench.row(task)).worker == ""


async def test_a_kept_task_that_waits_is_anybodys_when_its_lease_runs_out() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start("hi")
    [claim] = await bench.store.claim(bench.worker)
    await bench.store.append(
        claim, Append(expected_seq=1, id=bytes(16), consume=[1], status="waiting", reason="idle")
    )
    assert await bench.store.claim("other") == []
    bench.clock.advance(31)
    [taken] = await bench.store.claim("other")
    assert (taken.task, taken.unreleased) == (task, True)


SPAWNS: dict[str, dict[str, Any]] = {
    "a blank prompt": {"prompt": " "},
    "a prompt of another type": {"prompt": 5},
    "a config of objects": {"config": {"x": object()}},
    "a config that is no number": {"config": {"x": float("nan")}},
    "a queue of another type": {"queue": 5},
    "a background of another type": {"background": "yes"},
}


@pytest.mark.parametrize("fields", SPAWNS.values(), ids=SPAWNS)
async def test_a_child_that_no_log_can_hold_fails_its_call_and_the_task_goes_on(
    fields: dict[str, Any],
) -> None:
    def spawns(ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return text_output(ctx.spawn("agent", **{"prompt": "go", **fields}))

    bench = Harness([Tools(Tool("spawn", spawns))], [reply("", call("spawn")), "Done."])
    task = await bench.start("hi")
    await bench.run()
    [finished] = await bench.log(task, "tool_finished")
    assert finished.data.is_error
    assert await bench.children(task) == []
    assert (await bench.row(task)).reason == "idle"


async def test_what_is_inherited_counts_when_a_child_is_checked() -> None:
    class Deep(Extension):
        name = "deep"

        def inherit(self, state: TaskState) -> dict[str, Any]:
            return {"x": nested(71)}

    def spawns(ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return text_output(ctx.spawn("agent", "go"))

    bench = Harness([Deep(), Tools(Tool("spawn", spawns))], [reply("", call("spawn")), "Done."])
    task = await bench.start("hi")
    await bench.run()
    assert (await bench.row(task)).reason == "idle"
    assert await bench.children(task) == []


def nested(deep: int) -> list[Any]:
    return [nested(deep - 1)] if deep else []
