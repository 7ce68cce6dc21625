"""What a hook sees, and what becomes of what it stages."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from noeta.core.codec import recorded
from noeta.core.errors import NotStorable
from noeta.core.extension import Extension
from noeta.core.gates import Deny
from noeta.core.items import NewEntry, decode_body
from noeta.core.messages import Message, Text, ToolResult, ToolUse, decode_message, user
from noeta.core.parts import ToolChanges
from noeta.core.records import Compacted, Erased
from noeta.core.state import TaskState
from noeta.core.tool import ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView, Views, child_id
from noeta.host.offer import offer
from noeta.host.registry import Registry
from noeta.testing.log_writer import LogWriter
from noeta.toolkit.dispatch import Hooks
from noeta.toolkit.reducers import reducer
from noeta.toolkit.tool_set import ToolSet


class Counter(Extension):
    name = "counter"

    def initial_state(self) -> int:
        return 0

    def reduce(self, state: int, kind: str, data: Any) -> int:
        return state + (data or 1)


@pytest.fixture
def view(log: LogWriter) -> TaskView:
    """Return a view inside a hook of the plugin `counter`."""
    log.say("hello")
    view = TaskView(log.fold([reducer(Counter())]), plugin="counter")
    view.begin("before_model")
    return view


def staged(view: TaskView) -> list[tuple[str, str, Any]]:
    found = [recorded(made.envelope) for made in view.pending]
    return [(record.extension, record.kind, record.data) for record in found]


def test_a_record_is_encoded_when_it_is_staged_and_names_plugin_and_hook(view: TaskView) -> None:
    view.record("counter", "counted", 3)
    [made] = view.pending
    assert (made.envelope.by, made.envelope.hook) == ("counter", "before_model")
    with pytest.raises(NotStorable):
        view.record("counter", "counted", float("nan"))
    assert len(view.pending) == 1


def test_core_records_are_entries_or_refused_with_a_hint(view: TaskView) -> None:
    view.record("core", "notice", {"text": "hi"})
    assert staged(view)[0][2].text == "hi"
    with pytest.raises(ValueError, match=r"no entry kind 'notise' \(did you mean 'notice'\?\)"):
        view.record("core", "notise", {"text": "hi"})
    with pytest.raises(ValueError, match="no entry kind 'turn_done'"):
        view.record("core", "turn_done")
    with pytest.raises(ValueError, match="text"):
        view.record("core", "notice", {"text": 3})


def test_notices_and_timers_are_core_entries(view: TaskView) -> None:
    view.notify("look", kind="warning", data={"x": 1})
    view.set_timer("t", 12.5, "wake up")
    view.clear_timer("t")
    assert [kind for _, kind, _ in staged(view)] == ["notice", "timer_set", "timer_cleared"]
    state = view.folded()
    assert state.timers == {}
    assert view.state.timers == {}


@pytest.mark.parametrize(
    "message",
    [
        Message(role="user", content=[ToolUse(id="1", name="x", input={})]),
        Message(role="user", content=[ToolResult(call="1", content=[])]),
        Message(role="user", content=[Text(text=" ")]),
        Message(role="developer", content=[Text(text="hi")]),
        Message(role="user", content=[]),
    ],
    ids=repr,
)
def test_a_message_that_would_spoil_every_later_request_raises_in_the_plugin_that_made_it(
    view: TaskView, message: Message
) -> None:
    with pytest.raises(NotStorable, match="the message"):
        view.record("notes", "said", message=message)
    with pytest.raises(NotStorable, match="the message"):
        view.enqueue(message)
    with pytest.raises(NotStorable, match="the message"):
        view.spawn("agent", message)
    for part in ("lead", "summary", "after"):
        with pytest.raises(ValueError, match=r"its role|a call|says nothing|blank"):
            view.compacted(Compacted(through=0, **{part: [message]}))
    assert (view.pending, view.enqueued, view.creates) == ([], [], [])


@pytest.mark.parametrize("name", ["", "x" * 513, "a\0b", 5])
def test_a_timer_has_a_name_that_a_store_can_hold(view: TaskView, name: Any) -> None:
    with pytest.raises(ValueError, match=r"timer|Expected `str`"):
        view.record("core", "timer_set", {"name": name, "at": 1.0})
    with pytest.raises(ValueError, match="timer"):
        view.clear_timer(name)


@pytest.mark.parametrize("names", [(5, "x"), ("x", 5), (None, "x")])
def test_a_name_that_is_no_text_is_refused_in_a_sentence(view: TaskView, names: tuple[Any, Any]) -> None:
    with pytest.raises(NotStorable, match=r"has to be a text of 1 to 512 characters"):
        view.record(*names)


def test_folded_shows_what_is_staged_on_a_copy(view: TaskView) -> None:
    view.record("counter", "counted", 3, message=user("three"))
    state = view.folded([reducer(Counter())])
    assert (state.states["counter"], len(state.conversation), state.seq) == (3, 2, view.state.seq + 1)
    assert (view.ext_state("counter"), len(view.state.conversation)) == (0, 1)
    assert view.ext_state("absent") is None


def test_a_post_carries_text_a_message_or_an_entry(view: TaskView) -> None:
    view.enqueue("do it", dedupe_key="k")
    view.enqueue(user("or this"), task_id="other")
    view.enqueue(NewEntry("counter", "counted", 2, user("two")))
    first, second, third = view.enqueued
    assert (first.task, first.key, first.kind) == ("t", "k", "message")
    assert decode_message(bytes(decode_body(first.body).message)) == user("do it")
    assert second.task == "other"
    assert third.kind == "entry"
    assert second.key != third.key
    with pytest.raises(NotStorable):
        view.enqueue(NewEntry("counter", "counted", float("inf")))


def test_a_key_names_a_child_once_and_without_one_each_spawn_is_another(view: TaskView) -> None:
    same = [view.spawn("helper", "go", key="k") for _ in range(2)]
    assert same == [child_id("t", "k")] * 2
    assert view.spawn("helper", "go") != view.spawn("helper", "go")
    assert len(view.creates) == 4


def test_outside_a_hook_nothing_can_be_staged(log: LogWriter) -> None:
    view = TaskView(log.fold())
    calls = [
        lambda: view.record("x", "y"),
        lambda: view.notify("x"),
        lambda: view.enqueue("x"),
        lambda: view.spawn("a", "x"),
        lambda: view.compacted(Compacted(through=1)),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="works only while a hook runs"):
            call()


def test_a_hook_inside_a_hook_stages_apart(view: TaskView) -> None:
    view.record("counter", "outer")
    view.begin("resident")
    assert view.pending == []
    view.record("counter", "inner")
    view.end()
    assert [kind for _, kind, _ in staged(view)] == ["outer"]
    assert view.hook == "before_model"


# ---- erasing and compacting


def test_erasing_a_message_takes_what_came_in_for_it(log: LogWriter) -> None:
    first = log.say("look at a.txt")
    about = log.note("files", "read", None, Message(role="user", content=[Text(text="a")], about=first))
    recall = log.note(
        "recall", "found", None, Message(role="user", content=[Text(text="r")], origin="memory")
    )
    log.reply("done")
    later = log.note("recall", "found", None, Message(role="user", content=[Text(text="l")], origin="memory"))
    log.say("and now?")
    view = TaskView(log.fold())
    view.begin("on_start")
    view.erase_messages([first])
    [(_, _, data)] = staged(view)
    assert data == Erased(seqs=[first], along=[about, recall])
    seqs = [item.seq for item in view.folded().conversation]
    assert first not in seqs
    assert later in seqs


def test_erasing_a_message_takes_what_the_same_hook_staged_for_it(view: TaskView) -> None:
    said = view.state.seq
    view.record("counter", "noted", message=Message(role="user", content=[Text(text="hello!")], about=said))
    view.erase_messages([said])
    assert list(view.folded().conversation) == []


@pytest.mark.parametrize("body", [None, 5, {"a": 1}, Message(role="user", content=[Text(text="\ud800")])])
def test_a_post_or_a_prompt_that_no_log_can_hold_raises_in_the_plugin_that_made_it(
    view: TaskView, body: Any
) -> None:
    with pytest.raises((TypeError, NotStorable)):
        view.enqueue(body)
    with pytest.raises((TypeError, NotStorable)):
        view.spawn("helper", body)
    assert (view.enqueued, view.creates) == ([], [])


def test_names_and_config_that_no_log_can_hold_raise_in_the_plugin_that_made_them(view: TaskView) -> None:
    with pytest.raises(NotStorable, match="dedupe key"):
        view.enqueue("x", dedupe_key="k" * 600)
    with pytest.raises(NotStorable, match="task"):
        view.enqueue("x", task_id="\0")
    for agent, config in [("a", {"x": object()}), (None, {}), ("a", {"x": float("nan")})]:
        with pytest.raises(NotStorable):
            view.spawn(agent, "go", config=config)  # type: ignore[arg-type]
    assert (view.enqueued, view.creates) == ([], [])


def test_a_compaction_is_recorded(log: LogWriter) -> None:
    log.say("one")
    [call] = log.reply("", 1)
    done = log.run(call)
    log.say("two")
    view = TaskView(log.fold())
    view.begin("before_model")
    view.compacted(Compacted(through=done, summary=[user("so far")]))
    assert [item.message.text for item in view.folded().conversation] == ["so far", "two"]


def test_a_compaction_may_not_split_a_call_from_its_result_or_drop_one_that_runs(log: LogWriter) -> None:
    log.say("one")
    [call] = log.reply("", 1)
    reply = log.seq
    done = log.run(call)
    view = TaskView(log.fold())
    view.begin("before_model")
    with pytest.raises(ValueError, match="only one of call"):
        view.compacted(Compacted(through=reply))
    with pytest.raises(ValueError, match="only one of call"):
        view.compacted(Compacted(through=done, keep=[done]))
    with pytest.raises(ValueError, match="the log ends at"):
        view.compacted(Compacted(through=99))
    view.compacted(Compacted(through=done, keep=[reply, done]))
    log.reply("", 1)
    view = TaskView(log.fold())
    view.begin("before_model")
    with pytest.raises(ValueError, match="is not finished"):
        view.compacted(Compacted(through=log.seq))
    assert view.pending == []


# ---- what is shared between views


class Desk(Views):
    """The views of a task, and whose hooks returned."""

    def __init__(self, hooks: Hooks, **fields: Any) -> None:
        self.kept: list[str] = []
        super().__init__(hooks, **fields)

    def settled(self, view: TaskView) -> None:
        self.kept.append(view.plugin)


class Resident(Extension):
    def __init__(self, name: str, seen: list[Any]) -> None:
        self.name, self._seen = name, seen

    async def resident(self, view: TaskView) -> list[Message]:
        self._seen.append((view.keeps_tail, [message.text for message in view.kept]))
        view.record(self.name, "listed")
        return [user(self.name)]

    async def before_compact(self, view: TaskView, trigger: str, instructions: str) -> str | Deny | None:
        return Deny("not now") if self.name == "b" else f"{trigger}: {instructions}"


@pytest.mark.anyio
async def test_residents_of_every_plugin_see_what_the_compaction_keeps() -> None:
    seen: list[Any] = []
    hooks = Registry().compose([Resident("a", seen), Resident("b", seen)])
    views = Desk(hooks, state=TaskState())
    view = views.view("a", "before_model")
    found = await view.residents(keeps_tail=True, kept=[user("kept")])
    assert [message.text for message in found] == ["a", "b"]
    assert seen == [(True, ["kept"])] * 2
    assert (view.keeps_tail, view.kept, view.hook) == (None, (), "before_model")
    assert views.kept == ["a", "b"]
    assert await view.compact_advice("manual", "short") == [("a", "manual: short"), ("b", Deny("not now"))]


@pytest.mark.anyio
async def test_one_round_of_a_compaction_runs_at_a_time() -> None:
    class Nosy(Extension):
        name = "nosy"
        said = ""

        async def resident(self, view: TaskView) -> list[Message]:
            try:
                await view.compact_advice("auto", "")
            except RuntimeError as error:
                self.said = str(error)
            return []

    hooks = Registry().compose([nosy := Nosy()])
    views = Desk(hooks, state=TaskState())
    assert await views.view("other", "on_start").residents() == []
    assert nosy.said == "view.compact_advice was called while view.residents runs; await that first"
    assert await views.view("nosy", "before_model").compact_advice("auto", "") == []


@pytest.mark.anyio
async def test_a_view_without_a_task_has_no_residents() -> None:
    view = TaskView(TaskState())
    assert await view.residents() == []
    assert await view.compact_advice("auto", "") == []


def test_the_directory_is_that_of_the_config_then_of_the_environment() -> None:
    class Place:
        cwd = "/env"

    assert TaskView(TaskState()).cwd == ""
    assert TaskView(TaskState(), env=Place()).cwd == "/env"  # type: ignore[arg-type]
    assert TaskView(TaskState(config={"cwd": "/config"}), env=Place()).cwd == "/config"  # type: ignore[arg-type]


# ---- what a task offers


class Named:
    description = ""
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    read_only = clearable = False

    def __init__(self, name: str, **flags: Any) -> None:
        self.name, self.flags = name, ToolFlags(**flags)

    async def run(self, input: dict[str, Any], ctx: Any) -> ToolOutput:
        return text_output(self.name)


class Changes(Extension):
    name = "changes"

    def __init__(self, changes: ToolChanges) -> None:
        self._changes = changes
        self.offered: list[str] = []

    def tool_changes(self, view: TaskView, offered: Any) -> ToolChanges:
        self.offered = [tool.name for tool in offered]
        assert isinstance(offered, tuple), "one plugin must not change what the next one gets"
        return self._changes


def offered(*extensions: Extension, allowed: list[str] | None = None, denied: tuple[str, ...] = ()) -> Any:
    hooks = Registry().compose(extensions)
    return offer(hooks, Desk(hooks, state=TaskState()), allowed, denied)


def test_the_first_plugin_that_offers_a_name_wins_and_the_clash_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = ToolSet([Named("read")], "one"), ToolSet([Named("read"), Named("write")], "two")
    for _ in range(2):
        found = offered(first, second)
    assert {name: by for name, (by, _) in found.tools.items()} == {"read": "one", "write": "two"}
    [said] = caplog.messages
    assert "plugins 'one' and 'two' both offer 'read': the first is used. Choose with prefer" in said


def test_the_agents_lists_decide_but_for_tools_past_them() -> None:
    tools = ToolSet([Named("a"), Named("b"), Named("c", past_agent_lists=True)])
    assert list(offered(tools, allowed=["a"]).tools) == ["a", "c"]
    assert list(offered(tools, denied=("a", "c")).tools) == ["b", "c"]


def test_a_name_in_the_agents_lists_that_no_plugin_offers_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = ToolSet([Named("look_up"), Named("send")]), Changes(ToolChanges(add=[Named("extra")]))
    for _ in range(2):
        # One that another agent has is no reason to say anything, nor is one that is added later.
        found = offered(*given, allowed=["lok_up", "extra"], denied=("sendd", "delete"))
    assert list(found.tools) == ["extra"]
    misspelt, denied = caplog.messages
    assert misspelt == (
        "the agent's list of tools names 'lok_up', which no plugin offers (did you mean 'look_up'?); "
        "the names offered are extra, look_up, send"
    )
    assert "the agent denies 'sendd', which no plugin offers (did you mean 'send'?)" in denied


def test_changes_add_and_withhold_and_every_plugin_sees_the_same_offer() -> None:
    one = Changes(ToolChanges(add=[Named("extra")], withhold={"a": "not now"}))
    two = Changes(ToolChanges(withhold={"a": "never", "b": "no"}))
    two.name = "two"
    found = offered(ToolSet([Named("a"), Named("b")]), one, two)
    assert list(found.tools) == ["a", "b", "extra"]
    assert found.withheld == {"a": "not now", "b": "no"}
    assert one.offered == two.offered == ["a", "b"]


def test_an_added_tool_that_the_lists_refuse_drops_all_of_the_plugins_changes() -> None:
    changes = Changes(ToolChanges(add=[Named("extra")], withhold={"a": "not now"}))
    found = offered(ToolSet([Named("a")]), changes, denied=("extra",))
    assert (list(found.tools), found.withheld) == (["a"], {})


def test_a_view_finds_the_tools_that_are_offered(log: LogWriter) -> None:
    found = offered(ToolSet([Named("z", deferred=True), Named("a"), Named("b", deferred=True)]))
    view = TaskView(log.fold(), offer=found)
    tool = view.find_tool("a")
    assert tool is not None
    assert tool.name == "a"
    assert view.find_tool("x") is None
    assert view.deferred_tool_names() == ["b", "z"]
