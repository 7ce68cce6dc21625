"""A rehearsal calls hooks as a runner would: what they stage is folded, unless they raise."""

from __future__ import annotations

from typing import Any, ClassVar

import anyio
import pytest

from noeta import (
    Answer,
    ComposeError,
    Deny,
    ExecEnv,
    Extension,
    Gate,
    ModelRequest,
    Recorded,
    TaskView,
    ToolContext,
    ToolOutput,
    ToolUse,
    TurnDone,
    ask,
    text_output,
)
from noeta.core.messages import user
from noeta.core.records import ERASED_KIND, Notice, PluginFailed
from noeta.host.registry import Registry
from noeta.testing import LogWriter, Nowhere, Rehearsal, ScriptedProvider, call
from noeta.toolkit.reducers import reducer


class Lend:
    """A tool that records, and asks when it is told to."""

    name = "lend"
    description = "Lend a book."
    input_schema: ClassVar[Any] = {"type": "object"}
    read_only = False
    clearable = False

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        ctx.record("library", "lent", input)
        if "book" not in input:
            raise ValueError("which book?")
        if input.get("rare"):
            return ToolOutput(park=ask({"question": "Lend it?"}))
        return text_output(f"{ctx.idempotency_key} of {sorted(ctx.state)}")

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Answer | None) -> ToolOutput:
        return text_output("")


class Library(Extension):
    """Remembers which books are lent."""

    name = "library"
    folds = ("core",)

    def reduce(self, state: Any, kind: str, data: Any) -> Any:
        if kind == "burnt":
            raise RuntimeError("no such book any more")
        if kind == "lent":
            return [*(state or []), data.get("book", "")]
        return [] if kind == ERASED_KIND else state

    def tools(self, view: TaskView) -> list[Lend]:
        return [Lend()]

    async def on_start(self, view: TaskView) -> None:
        view.record(self.name, "lent", {"book": "Emma"})
        view.enqueue("hello")
        view.spawn("clerk", "count the books")
        view.notify("open")
        await anyio.lowlevel.checkpoint()

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        view.record(self.name, "lent", {"book": "Dune"})
        raise TurnDone

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        view.record(self.name, "lent", {"book": "lost"})
        raise ValueError("no gate.")

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        view.record(self.name, "burnt")

    async def on_empty_reply(self, view: TaskView, response: Any) -> Any:
        if view.complete is not None:
            answer = await view.complete(ModelRequest(model="m", messages=[user("and now?")]))
            return user(answer.message.text)
        return None


@pytest.mark.anyio
async def test_what_a_hook_stages_is_in_the_log_and_in_the_state_when_it_returns() -> None:
    task = Rehearsal(Library())
    before = task.log.say("hello")
    await task.hooks.on_start(task)
    assert [(record.seq, record.kind, record.data, record.by, record.hook) for record in task.records] == [
        (before + 1, "lent", {"book": "Emma"}, "library", "on_start"),
        (before + 2, "notice", Notice(text="open"), "library", "on_start"),
    ]
    assert [child.agent for child in task.children] == ["clerk"]
    assert [post.task for post in task.posts] == ["t"]
    assert task.state.states == {"library": ["Emma"]}
    assert task.state == task.log.fold([reducer(Library())])


@pytest.mark.anyio
async def test_a_signal_keeps_what_was_staged() -> None:
    task = Rehearsal(Library())
    with pytest.raises(TurnDone):
        await task.hooks.before_model(task, task.request())
    assert task.state.states["library"] == ["Dune"]


@pytest.mark.anyio
async def test_a_hook_that_raises_fails_the_test_and_shows_where() -> None:
    task = Rehearsal(Library())
    with pytest.raises(AssertionError) as caught:
        await task.hooks.before_tool(task, call("lend"))
    assert str(caught.value) == "Plugin 'library', hook before_tool: it raised ValueError: no gate."
    assert isinstance(caught.value.__context__, ValueError)
    assert task.records == []


@pytest.mark.anyio
async def test_a_rehearsal_that_is_not_strict_lets_failures_cost_what_they_cost() -> None:
    task = Rehearsal(Library(), strict=False)
    [(by, gate)] = await task.hooks.before_tool(task, call("lend"))
    assert by == "library"
    assert isinstance(gate, Deny)
    failure = PluginFailed(
        plugin="library", hook="before_tool", error="ValueError: no gate.", policy="closed"
    )
    assert task.failures == [failure]
    assert task.records == []
    assert task.log.records[-1].kind == "plugin_failed"


@pytest.mark.anyio
async def test_a_fold_that_breaks_fails_the_test() -> None:
    task = Rehearsal(Library())
    event = Recorded(seq=1, at=0.0, extension="core", kind="claimed")
    with pytest.raises(AssertionError) as caught:
        await task.hooks.on_event(task, event)
    assert str(caught.value) == (
        "Plugin 'library', reduce of burnt: RuntimeError: no such book any more (seq 2)."
    )
    lenient = Rehearsal(Library(), strict=False)
    await lenient.hooks.on_event(lenient, event)
    assert list(lenient.state.broken) == ["library"]


@pytest.mark.anyio
async def test_a_tool_runs_with_the_state_and_its_records_are_folded() -> None:
    task = Rehearsal(Library())
    output = await task.run(ToolUse(id="c2_0_00000000", name="lend", input={"book": "Emma"}))
    assert output.text == "t:c2_0_00000000 of ['library']"
    assert task.state.states["library"] == ["Emma"]
    assert [record.by for record in task.records] == ["library"]


@pytest.mark.anyio
async def test_a_tool_that_raises_loses_its_records_and_one_that_parks_keeps_them() -> None:
    task = Rehearsal(Library())
    with pytest.raises(ValueError, match="which book"):
        await task.run(call("lend"))
    assert task.records == []
    assert (await task.run(call("lend", book="Emma", rare=True))).park
    assert len(task.records) == 1
    with pytest.raises(KeyError):
        await task.run(call("borrow"))


@pytest.mark.anyio
async def test_a_hook_may_call_a_model_that_plays_a_script() -> None:
    provider = ScriptedProvider(["go on"])
    task = Rehearsal(Library(), complete=provider.complete)
    answer: Any = await task.hooks.on_empty_reply(task, ModelRequest(model="m"))  # type: ignore[arg-type]
    assert answer == ("library", user("go on"))
    provider.assert_done()


def test_a_log_that_is_there_is_written_on() -> None:
    log = LogWriter()
    seq = log.say("forget this")
    log.note("library", "lent", {"book": "x" * 200_000})
    task = Rehearsal(Library(), log=log)
    assert [len(book) for book in task.state.states["library"]] == [200_000]
    view = task.view("library", "on_start")
    view.erase_messages([seq])
    task.settle("library", "on_start")
    assert task.state.states["library"] == []
    assert [message.text for message in task.request().messages] == []
    assert task.records[-1].kind == "erased"


def test_fields_of_the_view_can_be_given_and_nothing_is_where_it_acts() -> None:
    task = Rehearsal(Library(), model="m", identity="I am a test.")
    view = task.view("library", "on_start")
    assert (view.model, view.identity, view.cwd) == ("m", "I am a test.", "/")
    assert task.offer(denied=["lend"]).tools == {}
    assert (view.find_tool("lend"), view.denied_tools) == (None, ["lend"])


def test_plugins_that_do_not_go_together_are_refused_and_blocked_ones_left_out() -> None:
    with pytest.raises(ComposeError):
        Rehearsal(Library(), Library())
    registry = Registry()
    registry.set_blocked("library")
    assert Rehearsal(Library(), registry=registry).state.states == {}


@pytest.mark.anyio
async def test_nowhere_holds_nothing_and_takes_nothing() -> None:
    nowhere: ExecEnv = Nowhere()
    assert nowhere.path("~/a/../b") == await nowhere.real("/b") == "/b"
    assert (await nowhere.listdir("/"), await nowhere.which("ls")) == ([], None)
    assert await nowhere.stat("/b") is None
    assert await nowhere.stat("/") is not None
    await nowhere.mkdir("/")
    for refused in (nowhere.write("/b", b"", create=True), nowhere.mkdir("/b")):
        with pytest.raises(PermissionError):
            await refused
    for missing in (
        nowhere.read("/b"),
        nowhere.listdir("/b"),
        nowhere.remove("/b"),
        nowhere.rename("/b", "/c"),
    ):
        with pytest.raises(FileNotFoundError):
            await missing
    with pytest.raises(FileNotFoundError):
        nowhere.process(["ls"])
