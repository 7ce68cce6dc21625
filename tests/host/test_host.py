"""What a program does with a host: begin tasks, speak to them, follow them, and look at what came of them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import msgspec
import pytest

import noeta
from noeta.core.errors import NotStorable
from noeta.core.extension import Extension
from noeta.core.items import NewEntry
from noeta.core.messages import Image, Message, Text, Thinking, ToolResult, ToolUse, user
from noeta.core.parts import ContextPart
from noeta.core.ports import Delta, ModelRequest
from noeta.core.records import Notice, Recorded
from noeta.core.tool import Park, ToolContext, ToolFlags, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.host import following
from noeta.host.following import Followers
from noeta.host.host import Host
from noeta.host.models import Reset
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.scripted_provider import ScriptedProvider, call, reply
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import ComposeError, Duplicate, NotWaiting, TaskOver, UnknownTask
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.provider import ProviderError
from noeta.toolkit.questions import Question, ask, read_answer
from noeta_sqlite import SqliteStore

pytestmark = pytest.mark.anyio


class Tool:
    description = "A tool."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    clearable = False
    read_only = False
    flags = ToolFlags()

    def __init__(self, name: str, run: Callable[..., Any]) -> None:
        self.name, self._run = name, run

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output = self._run(ctx)
        return await output if hasattr(output, "__await__") else output


class Asking(Tool):
    QUESTION: ClassVar[Question] = {"question": "Which colour?"}

    def __init__(self) -> None:
        super().__init__("ask", lambda ctx: ToolOutput(park=ask(self.QUESTION)))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output(f"colour: {read_answer(outcome, self.QUESTION)}")


class Parent(Tool):
    def __init__(self) -> None:
        super().__init__("spawn", self._spawn)

    def _spawn(self, ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return ToolOutput(park=Park(on="children", keys=[ctx.spawn("agent", "part")]))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output("; ".join(end.text for end in outcome.values()))


class Tools(Extension):
    name = "tools"

    def __init__(self, *tools: Any) -> None:
        self._tools = tools

    def tools(self, view: TaskView) -> Any:
        return self._tools


class World:
    """A host with a scripted model, at a clock that a test moves."""

    def __init__(self, script: Any = (), *tools: Any, store: Any = None, **settings: Any) -> None:
        self.clock, self.ids = FrozenClock(), SeededIds()
        self.provider = ScriptedProvider(script)
        self.store = store or InMemoryStore(self.clock, self.ids)
        agent = Agent("agent", model="test:model", prompt="You are an agent.", plugins=[Tools(*tools)])
        providers = {"test": self.provider}
        ports = {"clock": self.clock, "ids": self.ids, "store": self.store}
        self.host = Host([agent], providers=providers, **ports, **settings)

    @asynccontextmanager
    async def time(self) -> AsyncIterator[None]:
        """Time passes until the block is left, whenever nothing else happens."""

        async def pass_() -> None:
            while True:
                await quiet()
                self.clock.advance(0.25)

        async with anyio.create_task_group() as group:
            group.start_soon(pass_)
            yield
            group.cancel_scope.cancel()


async def quiet() -> None:
    for _ in range(100):
        await anyio.lowlevel.checkpoint()


def results(request: ModelRequest) -> list[str]:
    blocks = [block for message in request.messages for block in message.content]
    return ["".join(b.text for b in block.content) for block in blocks if hasattr(block, "block_list")]


# ---- beginning


async def test_a_task_runs_and_its_outcome_says_what_came_of_it() -> None:
    world = World(["Hello."])
    async with world.host as host:
        outcome = await host.run("agent", "hi")
    assert (outcome.status, outcome.text, outcome.reason, list(outcome.asks)) == ("done", "Hello.", "", [])
    assert outcome.usage.output > 0


async def test_the_same_key_begins_one_task() -> None:
    world = World(["Hello."])
    async with world.host as host:
        tasks = [await host.start("agent", "hi", key="mail 7") for _ in range(2)]
        await host.wait(tasks[0])
        assert tasks[0] == tasks[1]
        assert len(await host.tasks()) == 1


async def test_a_task_without_a_prompt_waits_for_one() -> None:
    world = World(["Hello."])
    async with world.host as host:
        task = await host.start("agent", cwd="/src", config={"effort": "low"})
        outcome = await host.wait(task)
        assert (outcome.status, outcome.reason) == ("waiting", "idle")
        await host.post(task, "hi")
        assert (await host.wait(task)).text == "Hello."
        assert (await host.state(task)).config == {"cwd": "/src", "effort": "low"}


async def test_a_one_shot_task_ends_and_takes_no_more_messages() -> None:
    world = World(["Done."])
    async with world.host as host:
        outcome = await host.run("agent", "hi", one_shot=True)
        assert (outcome.status, outcome.text) == ("done", "Done.")
        with pytest.raises(TaskOver):
            await host.post(outcome.task, "more")
        assert not await host.cancel(outcome.task)


class Person(msgspec.Struct):
    name: str
    age: int


async def test_an_answer_is_read_as_the_type_that_was_asked_for() -> None:
    world = World(['{"name": "Ann", "age": 7}', "I do not know."])
    async with world.host as host:
        good = await host.run("agent", "who?", output=Person)
        bad = await host.run("agent", "who?", output=Person)
    assert (good.status, good.data) == ("done", Person(name="Ann", age=7))
    assert (bad.status, bad.reason, bad.text) == ("failed", "invalid_output", "I do not know.")
    schema = world.provider.requests[0].output_schema
    assert schema == msgspec.json.schema(Person)


async def test_what_cannot_be_is_refused_at_once() -> None:
    world = World()
    with pytest.raises(ComposeError, match="'nowhere'"):
        Host([Agent("a", plugins=["nowhere"])])
    with pytest.raises(ComposeError, match="Write Tools"):
        Host([Agent("a", plugins=[Tools])])  # type: ignore[list-item]
    with pytest.raises(ComposeError, match="'redis'"):
        Host([], store="redis:")
    with pytest.raises(ValueError, match="two agents have the name 'a'"):
        Host([Agent("a"), Agent("b"), Agent("a")])
    with pytest.raises(ValueError, match="no name"):
        Host([Agent(" ")])
    with pytest.raises(TypeError, match=r"'a'; write a list, \[agent\]"):
        Host(Agent("a"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="holds a str"):
        Host(["a"])  # type: ignore[list-item]
    async with world.host as host:
        with pytest.raises(ValueError, match="did you mean 'agent'"):
            await host.start("agnet", "hi")
        for verb in (host.wait, host.state, host.log, host.fork, host.cancel, host.interrupt):
            with pytest.raises(UnknownTask):
                await verb("nobody")
        with pytest.raises(UnknownTask):
            await host.post("nobody", "hi")
        with pytest.raises(TypeError, match="not a int"):
            await host.start("agent", 5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not a NoneType"):
            await host.post("nobody", None)  # type: ignore[arg-type]
        assert await host.tasks() == []


SPOILING = {
    "blank": (Message(role="user", content=[Text(text=" \n")]), "it holds a text that is blank"),
    "blank-in-part": (Message(role="user", content=[Text(text="hi"), Text(text="")]), "that is blank"),
    "nothing": (Message(role="user", content=[]), "it says nothing"),
    "role": (Message(role="tool", content=[Text(text="hi")]), "its role is 'tool'"),
    "call": (Message(role="user", content=[ToolUse(id="1", name="x", input={})]), "a call or a result"),
    "result": (Message(role="user", content=[ToolResult(call="1", content=[])]), "a call or a result"),
    "thought": (Message(role="user", content=[Thinking(text="hm")]), "it holds a thought"),
    "image": (Message(role="user", content=[Image(media_type="image/png")]), "without bytes"),
    "image-of-none": (Message(role="user", content=[Image(media_type="", data=b"x")]), "without a type"),
}


@pytest.mark.parametrize("body", [" ", "", *(message for message, _ in SPOILING.values())], ids=repr)
async def test_a_message_that_would_spoil_every_later_request_is_refused(body: str | Message) -> None:
    why = next((why for message, why in SPOILING.values() if message is body), "that is blank")
    world = World(["Hello."])
    async with world.host as host:
        with pytest.raises(NotStorable, match=why):
            await host.start("agent", body)
        assert await host.tasks() == []
        task = await host.start("agent", "hi")
        with pytest.raises(NotStorable, match=why):
            await host.post(task, body)
        with pytest.raises(NotStorable, match=why):
            await host.post(
                task, NewEntry("x", "said", None, body if isinstance(body, Message) else user(body))
            )
        assert (await host.wait(task)).text == "Hello."


UNSTORABLE: dict[str, Any] = {
    "of-the-kernel": NewEntry("core", "notice", Notice(text="hi")),
    "surrogate": Message(role="user", content=[Text(text="\ud800")]),
    "no-text": Message(role="user", content=[Text(text=5)]),  # type: ignore[arg-type]
    "no-number": NewEntry("notes", "noted", float("nan")),
}


@pytest.mark.parametrize("body", UNSTORABLE.values(), ids=UNSTORABLE)
async def test_what_no_log_can_hold_is_refused_where_it_is_posted(body: Any) -> None:
    world = World(["Hello."])
    async with world.host as host:
        task = await host.start("agent", "hi")
        with pytest.raises(NotStorable):
            await host.post(task, body)
        with pytest.raises(TypeError, match="not a int"):
            await host.post(task, 5)  # type: ignore[arg-type]
        assert (await host.wait(task)).text == "Hello."


NONSENSE: dict[str, Any] = {
    "capacity": {"capacity": 0},
    "queues": {"queues": "night"},
    "lease": {"lease": 0.2},
    "lease is": {"lease": float("nan")},
    "grace": {"grace": -1.0},
}


@pytest.mark.parametrize("setting", NONSENSE)
async def test_a_setting_of_the_worker_that_makes_no_sense_is_refused(setting: str) -> None:
    with pytest.raises(ValueError, match=setting):
        Host([], **NONSENSE[setting])


JUNK: dict[str, tuple[dict[str, Any], str]] = {
    "list-of-providers": ({"providers": [ScriptedProvider()]}, "providers is of type list; write a dict"),
    "model-for-provider": (
        {"providers": {"a": "b:c"}},
        "the provider 'a' is of type str, which has no 'aclose'",
    ),
    "class-of-provider": (
        {"providers": {"a": ScriptedProvider}},
        "is the class ScriptedProvider; write Scripted",
    ),
    "whole-model": ({"providers": {"a:b": ScriptedProvider()}}, "'a:b' names no provider"),
    "path": ({"store": Path("noeta.db")}, "the store is of type PosixPath, which has no 'aclose'"),
    "class-of-store": (
        {"store": InMemoryStore},
        "the store is the class InMemoryStore; write InMemoryStore(...)",
    ),
    "folder": ({"env": Path()}, "the environment is of type PosixPath, which has no 'listdir'"),
    "name": ({"agents": "coder"}, "agents is of type str; write a list"),
    "nothing": ({"agents": None}, "agents is of type NoneType; write a list"),
    "dict": ({"agents": {"coder": Agent("coder")}}, "agents is of type dict; write a list"),
}


@pytest.mark.parametrize("junk", JUNK)
async def test_what_is_no_port_and_no_list_of_agents_is_refused(junk: str) -> None:
    given, says = JUNK[junk]
    with pytest.raises(TypeError, match=re.escape(says)):
        Host(**{"agents": [], **given})


async def test_a_host_that_was_left_says_that_it_cannot_be_entered_again() -> None:
    world = World(["Hello."])
    async with world.host as host:
        assert (await host.run("agent", "hi")).text == "Hello."
    with pytest.raises(RuntimeError, match="make another one"):
        await world.host.__aenter__()


# ---- speaking


async def test_a_post_with_the_same_key_counts_once() -> None:
    world = World(["Hello.", "Yes."])
    async with world.host as host:
        task = (await host.run("agent", "hi")).task
        assert await host.post(task, "more", dedupe_key="m")
        assert not await host.post(task, "more", dedupe_key="m")
        await host.wait(task)
        assert not await host.post(task, "other", dedupe_key="m")
    assert len(world.provider.requests) == 2


async def test_a_question_is_an_outcome_and_its_answer_goes_on() -> None:
    world = World([reply("", call("ask")), "Red it is."], Asking())
    async with world.host as host:
        outcome = await host.run("agent", "go")
        assert (outcome.status, outcome.reason) == ("waiting", "question")
        [asked] = outcome.asks
        assert (asked.task, asked.name, asked.on) == (outcome.task, "ask", "question")
        await host.answer(outcome.task, asked.call, {"Which colour?": "red"}, by="ann")
        assert (await host.wait(outcome.task)).text == "Red it is."
        assert results(world.provider.requests[1]) == ["colour: red"]
        with pytest.raises(NotWaiting, match="for an answer: it is settled"):
            await host.answer(outcome.task, asked.call, {"Which colour?": "blue"}, by="bob")


async def test_an_answer_that_no_log_can_hold_leaves_room_for_another() -> None:
    world = World([reply("", call("ask")), "Thanks."], Asking())
    async with world.host as host:
        [asked] = (await host.run("agent", "hi")).asks
        with pytest.raises(NotStorable):
            await host.answer(asked.task, asked.call, {"x": float("nan")}, by="ann")
        await host.answer(asked.task, asked.call, {"Which colour?": "red"}, by="ann")
        assert (await host.wait(asked.task)).text == "Thanks."


async def test_an_answer_to_what_does_not_wait_is_refused() -> None:
    world = World([reply("", call("ask"))], Asking())
    here = Host([], store=world.store, clock=world.clock, ids=world.ids, works=False)
    async with world.host as host, here:
        outcome = await host.run("agent", "go")
        [asked] = outcome.asks
        for task_call, park, why in (
            ("c9", None, f"or was never made.*; these wait: {asked.call}"),
            (asked.call, 2, "it is in wait 1, not 2"),
        ):
            with pytest.raises(NotWaiting, match=why):
                await host.answer(outcome.task, task_call, {}, by="ann", park=park)
        with pytest.raises(ValueError, match="'maybe'"):
            await host.answer(outcome.task, asked.call, "maybe", by="ann")
    await here.answer(outcome.task, asked.call, {"Which colour?": "red"}, by="ann")
    with pytest.raises(Duplicate, match=f"somebody answered call '{asked.call}'"):
        await here.answer(outcome.task, asked.call, {"Which colour?": "blue"}, by="bob")


async def test_a_childs_question_is_an_ask_of_its_parent() -> None:
    script = [reply("", call("spawn")), reply("", call("ask")), "Red.", "All done."]
    world = World(script, Parent(), Asking())
    async with world.host as host, world.time():
        outcome = await host.run("agent", "go")
        assert (outcome.status, outcome.reason) == ("waiting", "children")
        [asked] = outcome.asks
        assert asked.task != outcome.task
        await host.answer(asked.task, asked.call, {"Which colour?": "red"}, by="ann")
        assert (await host.wait(outcome.task)).text == "All done."


async def test_a_child_is_in_the_queue_of_its_parent_unless_it_is_sent_elsewhere() -> None:
    def spawn(ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        ctx.spawn("agent", "here", background=True)
        ctx.spawn("agent", "there", background=True, queue="theirs")
        return text_output("begun")

    world = World([reply("", call("spawn")), "Begun.", "Done."], Tool("spawn", spawn), queues=["mine"])
    async with world.host as host:
        parent = await host.start("agent", "go", queue="mine")
        await host.wait(parent)
        rows = await host.tasks(parent=parent)
        assert {row.queue for row in rows} == {"mine", "theirs"}
        # Who runs the parent alone runs the one that is with it.
        mine, theirs = sorted(rows, key=lambda row: row.queue)
        assert (await host.wait(mine.task)).status == "done"
        assert (await host.tasks(status="ready"))[0].task == theirs.task


async def test_an_interrupt_ends_the_turn_and_a_cancel_the_task() -> None:
    world = World([reply("", call("ask"))], Asking())
    async with world.host as host:
        task = (await host.run("agent", "go")).task
        assert await host.interrupt(task, by="ann")
        assert (await host.wait(task)).status == "interrupted"
        assert not await host.interrupt(task)
        assert await host.cancel(task, reason="enough")
        while (await host.tasks())[0].status != "ended":
            await anyio.lowlevel.checkpoint()
        outcome = await host.wait(task)
        assert (outcome.status, outcome.reason) == ("cancelled", "enough")


async def test_a_failed_turn_says_why() -> None:
    world = World([ProviderError("auth", "the key is not valid")])
    async with world.host as host:
        outcome = await host.run("agent", "hi")
    assert (outcome.status, outcome.reason, outcome.text) == ("failed", "auth", "the key is not valid")


async def test_a_wait_for_the_model_is_an_outcome() -> None:
    at = 2e9
    world = World([ProviderError("rate_limit", "quota", retry_at=at)])
    async with world.host as host:
        outcome = await host.run("agent", "hi")
    assert (outcome.status, outcome.reason, outcome.text) == ("waiting", "provider", "quota")


async def test_a_wait_for_a_plugin_says_what_failed() -> None:
    class Parks(Extension):
        name = "parks"
        on_error: ClassVar[dict[str, str]] = {"context": "park"}

        def context(self, view: TaskView) -> list[ContextPart]:
            raise OSError("the disk is gone")

    async with Host([Agent("a", plugins=[Parks()])]) as host:
        outcome = await host.run("a", "hi")
    assert (outcome.status, outcome.reason) == ("waiting", "plugin")
    assert outcome.text == "Plugin 'parks' failed in context. OSError: the disk is gone"


# ---- other pasts


async def test_a_fork_goes_on_from_where_it_was_made_and_the_old_task_stays() -> None:
    world = World(["One.", "Two.", "Other two.", "Third."])
    async with world.host as host:
        task = (await host.run("agent", "a")).task
        [done] = [record for record in await host.log(task) if record.kind == "turn_done"]
        await host.post(task, "b")
        await host.wait(task)
        fork = await host.rewind(task, done.seq)
        assert (await host.wait(fork)).reason == "idle"
        await host.post(fork, "c")
        assert (await host.wait(fork)).text == "Other two."
        assert [m.text for m in world.provider.requests[2].messages] == ["a", "One.", "c"]
        deep = await host.fork(fork, done.seq - 1, key="deep")
        assert deep == await host.fork(fork, done.seq - 1, key="deep")
        assert {row.task for row in await host.tasks(base=task)} == {fork, deep}
        with pytest.raises(ValueError, match="no record 99"):
            await host.fork(task, 99)
        seqs = [record.seq for record in await host.log(fork)]
        assert seqs == list(range(1, len(seqs) + 1))
        assert (await host.wait(task)).text == "Two."
        past = await host.state(task, at=done.seq)
        assert [item.message.text for item in past.conversation] == ["a", "One."]


async def test_an_erasure_reaches_an_ended_task_and_its_forks() -> None:
    world = World(["Done."])
    async with world.host as host:
        task = (await host.run("agent", "canary", one_shot=True)).task
        fork = await host.fork(task)
        [received] = [record for record in await host.log(task) if record.kind == "received"]
        await host.erase(task, [received.seq], by="ann")
        while any(row.unread for row in await host.tasks()):
            await anyio.lowlevel.checkpoint()
        await quiet()
        assert "erased" in [record.kind for record in await host.log(fork)]
        assert [item.message.text for item in (await host.state(fork)).conversation] == ["Done."]
    assert not any(b"canary" in line.data for line in await world.store.read(task))


async def test_what_cannot_be_erased_is_refused() -> None:
    world = World([reply("", call("count")), "Done."], Tool("count", lambda ctx: text_output("2")))
    async with world.host as host:
        task = (await host.run("agent", "canary")).task
        by_kind = {record.kind: record.seq for record in await host.log(task)}
        said, last = by_kind["received"], max(by_kind.values())
        for seq in (0, -1, last + 1):
            with pytest.raises(ValueError, match=f"has no record {seq}; its last one is {last}"):
                await host.erase(task, [said, seq])
        for kind in ("model_replied", "tool_finished"):
            with pytest.raises(ValueError, match=f"is a {kind}, which stays"):
                await host.erase(task, [by_kind[kind]])
        with pytest.raises(ValueError, match="is a claimed, which holds no message"):
            await host.erase(task, [by_kind["claimed"]])
        assert (await host.tasks())[0].unread == 0
        fork = await host.fork(task)
        for _ in range(2):
            # What a fork inherits is its own, and what is erased may be erased again.
            await host.erase(fork, [said])
            while any(row.unread for row in await host.tasks()):
                await anyio.lowlevel.checkpoint()
            await quiet()
        assert [item.seq for item in (await host.state(fork)).conversation if item.seq == said] == []


# ---- following


async def collected(host: Host, task: str, after: int = 0) -> list[Any]:
    async with aclosing(host.follow(task, after)) as pieces:
        return [piece async for piece in pieces]


async def test_who_follows_sees_each_record_once_and_the_pieces_before_their_reply() -> None:
    def seen(ctx: ToolContext) -> ToolOutput:
        assert ctx.progress
        ctx.progress("half way")
        return text_output("seen")

    world = World([reply("I look.", call("look")), "Done it is."], Tool("look", seen))
    async with world.host as host:
        task = await host.start("agent", "go", one_shot=True)
        pieces = await collected(host, task)
    records = [piece for piece in pieces if isinstance(piece, Recorded)]
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert records[-1].kind == "task_ended"
    replies = [i for i, piece in enumerate(pieces) if getattr(piece, "kind", "") == "model_replied"]
    texts = [
        "".join(p.text for p in part if isinstance(p, Delta) and p.kind == "text")
        for part in (pieces[: replies[0]], pieces[replies[0] : replies[1]], pieces[replies[1] :])
    ]
    assert texts[2] == ""
    assert "I look.".startswith(texts[0])
    assert "Done it is.".startswith(texts[1])


async def test_who_comes_late_sees_the_reply_under_way_from_its_beginning() -> None:
    world = World()
    answer = "A long answer that comes in pieces. " * 9
    world.provider._respond = lambda request: answer
    task = await world.host.start("agent", "go", one_shot=True)
    async with world.host as host:
        while not host._followers._under_way.get(task):
            await anyio.lowlevel.checkpoint()
        for _ in range(2):
            await anyio.lowlevel.checkpoint()
        async with aclosing(host.follow(task)) as pieces:
            seen = [piece async for piece in pieces]
    deltas = [piece.text for piece in seen if isinstance(piece, Delta)]
    assert answer.startswith("".join(deltas))
    assert deltas[0].startswith("A long")


async def test_a_reply_is_told_from_its_beginning_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "MAX_PIECES", 4)
    followers = Followers()
    with followers.of("t") as early:
        for number in range(9):
            followers.tell("t", 3, Delta(kind="text", text=str(number)))
        with followers.of("t") as late:
            followers.tell("t", 3, Delta(kind="text", text="9"))
            assert (early.take(), late.take()) == ([(3, Reset())], [])
            # Another attempt, and another reply, are whole again.
            followers.tell("t", 3, Reset())
            followers.tell("t", 3, Delta(kind="text", text="again"))
            followers.tell("t", 8, Delta(kind="text", text="next"))
            for each in (early, late):
                texts = [piece.text for _, piece in each.take() if isinstance(piece, Delta)]
                assert texts == ["again", "next"]


async def test_a_model_that_falls_silent_is_asked_again() -> None:
    async def silence(request: ModelRequest) -> str:
        await anyio.sleep_forever()
        return ""

    world = World([silence, "Hello."])
    async with world.host as host:
        task = await host.start("agent", "go")
        for _ in range(60):
            await quiet()
            world.clock.advance(20)
        assert len(world.provider.requests) == 2
        assert (await host.wait(task)).text == "Hello."


async def test_following_from_a_record_leaves_out_what_was_before() -> None:
    world = World(["Hello."])
    async with world.host as host:
        task = (await host.run("agent", "go", one_shot=True)).task
        all_ = await collected(host, task)
        assert await collected(host, task, all_[2].seq) == all_[3:]


async def test_a_failed_attempt_is_void_for_who_follows() -> None:
    world = World()
    tries = 0

    class Cut(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> Any:
            nonlocal tries
            tries += 1
            yield Delta(kind="text", text="Hel")
            await quiet()
            if tries == 1:
                raise ProviderError("network", "cut")
            async with aclosing(super().stream(request)) as whole:  # type: ignore[type-var]
                async for piece in whole:
                    yield piece

    agent = Agent("agent", model="test:model")
    ports = {"clock": world.clock, "ids": world.ids, "store": world.store}
    async with Host([agent], providers={"test": Cut(["Hello."])}, **ports) as host:
        task = await host.start("agent", "go", one_shot=True)
        async with world.time():
            pieces = await collected(host, task)
    assert pieces.index(Reset()) > pieces.index(Delta(kind="text", text="Hel"))


class Silent(ScriptedProvider):
    """A model that never says a word."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        await anyio.sleep_forever()
        yield


@pytest.mark.parametrize("verb", ["wait", "follow", "run"])
async def test_who_still_waits_when_another_task_of_the_program_leaves_the_host_is_told_so(verb: str) -> None:
    errors: list[RuntimeError] = []
    clock, ids = FrozenClock(), SeededIds()
    store = InMemoryStore(clock, ids)

    async def followed(host: Host, task: str) -> None:
        async with aclosing(host.follow(task)) as pieces:
            async for _ in pieces:
                pass

    async def waits(host: Host, task: str) -> None:
        verbs = {"wait": lambda: host.wait(task), "run": lambda: host.run("agent", "hi")}
        with pytest.raises(RuntimeError, match="the host was left before") as caught:
            await verbs.get(verb, lambda: followed(host, task))()
        errors.append(caught.value)

    agents, providers = [Agent("agent", model="test:x")], {"test": Silent()}
    host = Host(agents, store=store, providers=providers, clock=clock, ids=ids)
    # The clock stands still, so only the leaving can end a wait.
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group, host:
            task = await host.start("agent", "hi")
            group.start_soon(waits, host, task)
            await anyio.wait_all_tasks_blocked()
        await waits(host, task)
    assert len(errors) == 2


async def test_what_came_of_a_task_can_be_asked_of_a_host_that_was_left() -> None:
    world = World(["Hello."])
    async with world.host as host:
        task = (await host.run("agent", "hi")).task
    assert (await host.wait(task)).text == "Hello."


# ---- around


async def test_what_the_block_raises_comes_out_as_it_was_raised() -> None:
    with pytest.raises(LookupError, match="mine"):
        async with World().host:
            raise LookupError("mine")


async def test_a_host_that_is_left_gives_its_tasks_to_the_next_one() -> None:
    world = World([reply("", call("ask")), "Red."], Asking())
    async with world.host as host:
        outcome = await host.run("agent", "go")
    again = World(["Red."], Asking(), store=world.store)
    async with again.host as host:
        await host.answer(outcome.task, outcome.asks[0].call, {"Which colour?": "red"}, by="ann")
        assert (await host.wait(outcome.task)).text == "Red."


async def test_plugins_and_tools_reach_the_store() -> None:
    seen: dict[str, Any] = {}

    async def look(ctx: ToolContext) -> ToolOutput:
        assert ctx.tasks
        assert ctx.task
        assert ctx.read_log
        assert ctx.count_tokens
        assert ctx.post
        seen["tasks"] = [row.task for row in await ctx.tasks()]
        seen["me"] = (await ctx.task(ctx.task_id)).agent
        seen["nobody"] = await ctx.read_log("nobody")
        seen["count"] = await ctx.count_tokens("some words")
        await ctx.post("a note", dedupe_key="n")
        return text_output("looked")

    world = World([reply("", call("look")), "Done."], Tool("look", look))
    async with world.host as host:
        task = (await host.run("agent", "go")).task
    assert (seen["tasks"], seen["me"], seen["nobody"]) == ([task], "agent", [])
    assert seen["count"] > 0
    assert [message.text for message in world.provider.requests[1].messages][-1] == "a note"


async def test_tasks_outlive_their_host_in_a_file(tmp_path: Path) -> None:
    agent = Agent("agent", model="test:model", plugins=[Tools(Asking())])
    store = SqliteStore(tmp_path / "noeta.db")
    provider = ScriptedProvider([reply("", call("ask"))])
    async with Host([agent], store=store, providers={"test": provider}) as host:
        outcome = await host.run("agent", "go")
        assert outcome.reason == "question"
    await store.aclose()
    store = SqliteStore(tmp_path / "noeta.db")
    provider = ScriptedProvider(["Red."])
    async with Host([agent], store=store, providers={"test": provider}) as host:
        await host.answer(outcome.task, outcome.asks[0].call, {"Which colour?": "red"}, by="ann")
        assert (await host.wait(outcome.task)).text == "Red."
    await store.aclose()


async def test_the_host_is_a_name_of_the_package() -> None:
    assert noeta.Host is Host
    with pytest.raises(AttributeError, match="Hots"):
        noeta.Hots  # noqa: B018
