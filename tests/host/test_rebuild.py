"""Every request of a task comes out of its log again, byte for byte, and each part names its plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import pytest
from msgspec.structs import replace

from noeta.core.codec import decode
from noeta.core.errors import ProviderError, RequestStale
from noeta.core.extension import Extension
from noeta.core.fold import Folder
from noeta.core.items import NewEntry
from noeta.core.messages import user
from noeta.core.parts import ContextPart, Reminder
from noeta.core.ports import ModelRequest
from noeta.core.records import Compacted, ContextComposed, Received, Recorded, ToolPart
from noeta.core.tool import ToolContext, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.host import parts
from noeta.host.erasure import tombstone
from noeta.host.host import Host
from noeta.host.rebuild import Rebuilt, Removal, _Past, rebuild, rebuilt
from noeta.testing.harness import Harness
from noeta.testing.log_writer import LogWriter
from noeta.testing.scripted_provider import ScriptedProvider, call, reply
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import NoRequest, UnknownTask
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.store import Line


class Look:
    name = "look"
    description = "Look."
    clearable = False
    read_only = True
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return text_output("seen")


class Left(Extension):
    """Does what a test tells it: with every request, and `once` in the next hook of a name."""

    name = "left"

    def __init__(self) -> None:
        self.offered: list[Any] = [Look()]
        self.parts: list[ContextPart] = []
        self.edit: Callable[[ModelRequest], ModelRequest] = lambda request: request
        self.once: dict[str, Callable[[TaskView], Any]] = {}

    def tools(self, view: TaskView) -> list[Any]:
        return self.offered

    def context(self, view: TaskView) -> list[ContextPart]:
        return self.parts

    async def reminders(self, view: TaskView) -> Any:
        return self._do("reminders", view) or []

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        self._do("before_model", view)
        return self.edit(request)

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        self._do("on_event", view)

    def _do(self, hook: str, view: TaskView) -> Any:
        return self.once.pop(hook, lambda view: None)(view)


class Right(Left):
    name = "right"


def compact(view: TaskView) -> None:
    view.compacted(Compacted(through=view.state.seq, summary=[user("so far")], lead=[user("lead")]))


def stale(act: Callable[[TaskView], Any]) -> Callable[[TaskView], Any]:
    def do(view: TaskView) -> None:
        act(view)
        raise RequestStale

    return do


async def all_of(bench: Harness, task: str) -> list[Rebuilt]:
    return [request async for request in rebuilt(bench.store, task)]


@pytest.mark.anyio
async def test_one_request_is_found_by_its_reply() -> None:
    bench = Harness([], ["One.", "Two."])
    task = await bench.start("a")
    await bench.run()
    await bench.post(task, "b")
    await bench.run()
    first, second = await bench.log(task, "model_replied")
    request = await rebuild(bench.store, task, second.seq)
    assert (request.seq, request.outcome, request.exact) == (second.seq, second.data, True)
    assert [message.text for message in request.messages] == ["a", "One.", "b"]
    assert request.request.system == "You are an agent."
    with pytest.raises(NoRequest, match="is no reply to a request") as error:
        await rebuild(bench.store, task, 2)
    assert list(error.value.near) == [first.seq, second.seq]
    with pytest.raises(NoRequest, match="It has sent no request yet"):
        await rebuild(bench.store, await bench.start(), 1)
    with pytest.raises(UnknownTask):
        await rebuild(bench.store, "nobody", 1)


@pytest.mark.anyio
async def test_each_part_of_a_request_names_its_plugin() -> None:
    left, right = Left(), Right()
    left.parts, right.offered = [ContextPart("A fact.")], []
    right.edit = lambda request: replace(
        request, messages=[user("ahead"), *request.messages], system=f"{request.system} Be brief."
    )
    left.once["reminders"] = lambda view: [Reminder("remember")]
    left.once["on_event"] = lambda view: view.set_timer("t", 0.0, "time is up")
    bench = Harness([left, right], ["One.", "Two.", "Three."])
    task = await bench.start("hi")
    await bench.run()
    await bench.post(task, NewEntry("right", "entered", 1, user("an entry")))
    await bench.run()
    first, *_, last = await all_of(bench, task)
    assert (first.exact, last.exact) == (True, True)
    assert [(part.text, part.by) for part in last.parts.system] == [
        ("You are an agent.\nA fact. Be brief.", "right")
    ]
    tools = [(part.spec["name"], part.by) for part in last.parts.tools]
    assert tools == [("look", "left")]
    assert [(edit.start, edit.end, edit.by) for edit in last.parts.edits] == [(0, 0, "right")]
    by = {message.text: last.source(i).by for i, message in enumerate(last.messages)}
    assert {text for text in by if by[text] == "left"} == {"remember", "time is up"}
    assert {text for text in by if by[text] == "right"} == {"ahead", "an entry"}
    assert {text for text in by if not by[text]} == {"hi", "One.", "Two."}
    kinds = {record.seq: record.kind for record in await bench.log(task)}
    found = [kinds.get(last.source(i).seq) for i in range(3)]
    assert found == [None, "received", "reminder"]
    with pytest.raises(IndexError, match="there are 7 messages, and none at 7"):
        last.source(7)


@pytest.mark.anyio
async def test_what_took_messages_out_is_said_with_the_next_request() -> None:
    left = Left()
    bench = Harness([left], ["One.", "Two.", "Three.", "Four."])
    task = await bench.start("a")
    await bench.run()
    left.once["before_model"] = stale(compact)
    await bench.post(task, "b")
    await bench.run()
    await bench.post(task, "c")
    await bench.run()
    [*_, received] = await bench.log(task, "received")
    await bench.erase(task, received.seq)
    await bench.post(task, "d")
    await bench.run()
    [compaction], [erasure] = await bench.log(task, "compacted"), await bench.log(task, "erased")
    assert [list(request.removed) for request in await all_of(bench, task)] == [
        [],
        [Removal(seq=compaction.seq, kind="compacted", by="left")],
        [],
        [Removal(seq=erasure.seq, kind="erased", person="ann", seqs=[received.seq])],
    ]


@pytest.mark.anyio
async def test_an_erased_message_is_named_and_the_others_stay_where_they_were() -> None:
    bench = Harness([], ["One.", "Two.", "Three."])
    task = await bench.start("first")
    await bench.run()
    await bench.post(task, "canary")
    await bench.run()
    fork = await bench.start(history_from=task, history_through=(await bench.row(task)).last_seq)
    [_, told] = await bench.log(task, "received")
    await bench.erase(task, told.seq)
    await bench.run()
    await bench.post(fork, "go on")
    await bench.run()
    for name in (task, fork):
        first, second, *later = await all_of(bench, name)
        assert (first.exact, second.exact, list(second.erased)) == (True, False, [told.seq])
        texts = [message.text for message in second.messages]
        assert texts == ["first", "One.", "[A message that stood here was taken out.]"]
        assert [request.exact for request in later] == [True] * (name == fork)
        assert b"canary" not in second.encoded


@pytest.mark.anyio
async def test_what_a_plugin_put_into_a_request_again_is_erased_with_the_message_it_quoted() -> None:
    left = Left()
    left.edit = lambda request: replace(
        request, messages=[*request.messages, user(f"You were told: {request.messages[0].text}")]
    )
    bench = Harness([left], ["One.", "Two.", "Three."])
    task = await bench.start("canary")
    await bench.run()
    fork = await bench.start("go on", history_from=task, history_through=(await bench.row(task)).last_seq)
    await bench.run()
    [composed] = await bench.log(task, "context_composed")
    [told] = await bench.log(task, "received")
    await bench.erase(task, told.seq)
    await bench.run()
    await bench.post(task, "more")
    await bench.run()
    for name in (task, fork):
        assert not any(b"canary" in line.data for line in await bench.store.read(name))
    first, *_, last = await all_of(bench, task)
    assert first.erased == [told.seq, composed.seq]
    assert last.exact


@pytest.mark.anyio
async def test_an_erased_compaction_leaves_its_place() -> None:
    left = Left()
    bench = Harness([left], ["One.", "Two.", "Three."])
    task = await bench.start("first")
    await bench.run()
    left.once["before_model"] = stale(compact)
    await bench.post(task, "more")
    await bench.run()
    [compaction] = await bench.log(task, "compacted")
    left.once["before_model"] = lambda view: view.erase_messages([compaction.seq])
    await bench.post(task, "again")
    await bench.run()
    _, second, third = await all_of(bench, task)
    assert list(second.erased) == list(third.erased) == [compaction.seq]
    assert second.messages[0].text == "[A message that stood here was taken out.]"


@pytest.mark.anyio
async def test_what_is_equal_in_python_and_not_in_json_is_another_request() -> None:
    left = Left()
    bench = Harness([left], [reply("", call("look", n=1)), "Two.", "Three."])
    task = await bench.start("a")
    await bench.run()
    [_, made, *rest] = bench.provider.requests[-1].messages
    [use] = made.calls
    cast = replace(made, content=[replace(use, input={"n": True})])
    assert cast == made
    left.edit = lambda request: replace(request, messages=[request.messages[0], cast, *rest])
    await bench.post(task, "b")
    await bench.run()
    assert bench.provider.requests[-1].messages[1].calls[0].input["n"] is True
    *_, last = await all_of(bench, task)
    assert (last.exact, last.source(1).by) == (True, "left")


# ---- what cannot be


async def changed(change: Callable[[list[Line]], None]) -> list[Rebuilt]:
    """The requests of a log that somebody wrote to."""
    bench = Harness([], ["One.", "Two."])
    task = await bench.start("first")
    await bench.run()
    await bench.post(task, "second")
    await bench.run()
    assert isinstance(bench.store, InMemoryStore)
    change(bench.store._tasks[task].lines)
    return await all_of(bench, task)


@pytest.mark.anyio
async def test_a_log_that_was_changed_is_noticed() -> None:
    def forge(lines: list[Line]) -> None:
        [at] = [i for i, line in enumerate(lines) if b"first" in line.data]
        lines[at] = lines[at]._replace(data=lines[at].data.replace(b"first", b"forged"))

    for request in await changed(forge):
        assert not request.exact
        assert request.fault == (
            f"The digest is not the one in record {request.seq}: the log is not what it was."
        )


@pytest.mark.anyio
async def test_a_fault_behind_an_erasure_is_no_erasure() -> None:
    bench = Harness([], ["One.", "Two.", "Three."])
    task = await bench.start("first")
    await bench.run()
    [told] = await bench.log(task, "received")
    await bench.erase(task, told.seq)
    await bench.run()
    await bench.post(task, "second")
    await bench.run()
    assert isinstance(bench.store, InMemoryStore)
    lines = bench.store._tasks[task].lines
    [at] = [i for i, line in enumerate(lines) if b"second" in line.data]
    lines[at] = lines[at]._replace(data=lines[at].data.replace(b"second", b"forged"))
    first, last = await all_of(bench, task)
    assert (first.erased, first.fault) == ([told.seq], "")
    assert (last.erased, last.fault[:10]) == ([], "The digest")


def test_a_tombstone_of_what_never_joined_the_conversation_stands_for_nothing() -> None:
    log, past = LogWriter(), _Past()
    log.say("hi")
    data = msgspec.Raw(msgspec.json.encode({"name": "t", "gen": 1}))
    seq = log.put(Received(n=9, key="timer:t:1", item="timer", data=data), user("too late"))
    log.reply("Hello.")
    stones = [decode(tombstone(it)[0]) if it.seq == seq else it for it in log.records]
    [found] = [request for record in stones if (request := past.take(record))]
    assert (found.erased, found.fault[:28]) == ([], "Record 4 holds no digest, so")


@pytest.mark.anyio
async def test_a_record_that_cannot_be_read_is_named() -> None:
    def damage(lines: list[Line]) -> None:
        [at] = [i for i, line in enumerate(lines) if b"first" in line.data]
        lines[at] = lines[at]._replace(data=b"{")

    first, _ = await changed(damage)
    assert first.fault.startswith("Record 3 cannot be used: ")


def test_a_request_of_a_later_version_is_not_taken_for_exact() -> None:
    for composed in (
        ContextComposed(parameters={"model": "m", "of_tomorrow": 1}),
        ContextComposed(tools=[ToolPart(spec={"name": "x", "of_tomorrow": 1})]),
    ):
        log, past = LogWriter(), _Past()
        log.say("hi")
        log.put(composed)
        log.reply("Hello.")
        [found] = [request for record in log.records if (request := past.take(record))]
        assert found.fault == "A later version built it: this one does not know 'of_tomorrow'."
        assert found.messages[0].text == "hi"


def test_a_reply_without_a_digest_proves_nothing() -> None:
    log, past = LogWriter(), _Past()
    log.say("hi")
    log.reply("Hello.")
    [found] = [request for record in log.records if (request := past.take(record))]
    assert found.fault == "Record 3 holds no digest, so nothing proves that this is the request."


@pytest.mark.anyio
async def test_the_request_is_the_tasks_own_whatever_model_answered_it() -> None:
    store = InMemoryStore()
    providers = {
        "down": ScriptedProvider(respond=lambda request: ProviderError("overloaded", "busy", retry_after=99)),
        "up": ScriptedProvider(["Hello."]),
    }
    agent = Agent("agent", model="down:large", fallbacks=["up:small"])
    async with Host([agent], store=store, providers=providers) as host:
        outcome = await host.run("agent", "hi")
    [request] = [one async for one in rebuilt(store, outcome.task)]
    assert request.exact
    assert (request.request.model, request.outcome.model) == ("down:large", "small")


# ---- what it costs


@pytest.mark.anyio
async def test_a_log_is_read_and_folded_once_whatever_is_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = 50
    script = [reply("", call("look", n=1)) for _ in range(rounds)]
    bench = Harness([Left()], [*script, "Done."])
    task = await bench.start("go")
    await bench.run()
    folded, hashed = Counter[int](), Counter[bytes]()
    apply, add = Folder.apply, parts._add

    def counted(folder: Folder, state: Any, record: Any) -> None:
        folded[record.seq] += 1
        apply(folder, state, record)

    def counting(hasher: Any, data: bytes) -> None:
        hashed[data] += 1
        add(hasher, data)

    monkeypatch.setattr(Folder, "apply", counted)
    monkeypatch.setattr(parts, "_add", counting)
    assert len(await all_of(bench, task)) == rounds + 1
    assert set(folded.values()) == {1}
    messages = [data for data in hashed if b'"role"' in data]
    # A message is hashed while it is among the last ones, and once for good.
    assert max(hashed[data] for data in messages) <= 2
