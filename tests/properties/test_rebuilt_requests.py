"""Whatever plugins, people and faults do to a task, each request it sent comes out of its log again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from noeta.core.codec import decode
from noeta.core.errors import ProviderError, RequestStale
from noeta.core.extension import Extension
from noeta.core.items import NewEntry
from noeta.core.messages import Image, Message, Text, ToolResult, encode_message, user
from noeta.core.parts import ContextPart, Reminder, ToolChanges, ToolEntry
from noeta.core.ports import ModelRequest, ToolSpec
from noeta.core.records import Compacted, Recorded
from noeta.core.tool import ToolContext, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.host.explain import why
from noeta.host.prefix import prefix_breaks
from noeta.host.rebuild import Rebuilt, _Past, rebuilt
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.harness import Harness
from noeta.testing.logs import damaged_logs
from noeta.testing.scripted_provider import ScriptedProvider, call, reply
from noeta.testing.simulation.world import simulate
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.store import Line, Store
from noeta_sqlite import SqliteStore

PIXELS = Image(media_type="image/png", data=b"pixels")
LARGE = "x" * 140_000


def encoded(request: ModelRequest) -> bytes:
    return msgspec.json.encode(replace(request, messages=list(request.messages)))


class Tool:
    description = "A tool."
    clearable = False
    read_only = True

    def __init__(self, name: str, run: Callable[[], ToolOutput] = lambda: text_output("ran")) -> None:
        self.name, self._run = name, run
        self.input_schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return self._run()


class Wild(Extension):
    """Does with the next request, and meanwhile, what a test told it. `once` is forgotten when it is done."""

    def __init__(self) -> None:
        self.offered: list[Tool] = [Tool("look"), Tool("picture", lambda: ToolOutput(content=[PIXELS]))]
        self.parts: list[ContextPart] = []
        self.withheld: dict[str, str] = {}
        self.entries: list[ToolEntry] = []
        self.edit: Callable[[ModelRequest], ModelRequest] | None = None
        self.once: dict[str, Callable[[TaskView], Any]] = {}
        self.meant = b""

    def tools(self, view: TaskView) -> list[Tool]:
        return self.offered

    def tool_changes(self, view: TaskView, offered: Any) -> ToolChanges:
        return ToolChanges(withhold=self.withheld, entries=self.entries)

    def context(self, view: TaskView) -> list[ContextPart]:
        return self.parts

    async def reminders(self, view: TaskView) -> Any:
        return self._do("reminders", view) or []

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        self._do("before_model", view)
        request = self.edit(request) if self.edit else request
        self.meant = encoded(request)
        return request

    async def on_context_overflow(self, view: TaskView, request: ModelRequest) -> bool:
        compact(view)
        return True

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        # The request that it belongs to is built by then, and not sent.
        if recorded.kind in ("context_composed", "received"):
            self._do("on_event", view)

    def _do(self, hook: str, view: TaskView) -> Any:
        return self.once.pop(hook, lambda view: None)(view)


class Left(Wild):
    name = "left"


class Right(Wild):
    name = "right"


def compact(view: TaskView) -> None:
    summary = Message(role="user", content=[Text(text="so far"), PIXELS])
    view.compacted(Compacted(through=view.state.seq, summary=[summary], lead=[user("lead")]))


def stale(act: Callable[[TaskView], Any]) -> Callable[[TaskView], Any]:
    def do(view: TaskView) -> None:
        act(view)
        raise RequestStale

    return do


def note(view: TaskView) -> None:
    view.record(view.plugin, "noted", {"n": 1}, message=user(f"noted by {view.plugin}"))


# ---- what a plugin may make of a request


def shouts(request: ModelRequest) -> ModelRequest:
    """Other words for what the person said last, and not for the rest."""
    said = [i for i, message in enumerate(request.messages) if message.role == "user" and message.text]
    loud = [
        replace(message, content=[Text(text=message.text.upper())]) if i in said[-1:] else message
        for i, message in enumerate(request.messages)
    ]
    return replace(request, messages=loud)


def clears(request: ModelRequest) -> ModelRequest:
    def cleared(block: Any) -> Any:
        return replace(block, content=[Text(text="[old]")]) if isinstance(block, ToolResult) else block

    return replace(
        request, messages=[replace(m, content=[*map(cleared, m.content)]) for m in request.messages]
    )


def puts_ahead(request: ModelRequest) -> ModelRequest:
    ahead = Message(role="user", content=[Text(text="ahead"), PIXELS])
    return replace(request, messages=(ahead, *request.messages, user("behind")))


def drops(request: ModelRequest) -> ModelRequest:
    """Leave out what the person said between the first and the last message."""
    inner = [m for m in request.messages[1:-1] if m.role != "user" or not m.text]
    return replace(request, messages=[request.messages[0], *inner, request.messages[-1]][: len(inner) + 2])


def tells(request: ModelRequest) -> ModelRequest:
    return replace(request, system=f"{request.system}\nBe brief.")


def narrows(request: ModelRequest) -> ModelRequest:
    name = "extra" if all(tool.name != "extra" for tool in request.tools) else "another"
    extra = ToolSpec(name=name, description="One more.", input_schema={"type": "object"})
    return replace(request, tools=[*request.tools[1:], extra])


def tunes(**parameters: Any) -> Callable[[ModelRequest], ModelRequest]:
    return lambda request: replace(request, **parameters)


def meddles(request: ModelRequest) -> ModelRequest:
    """Change in place what is not the plugin's to change."""
    if request.tools:
        request.tools[0].input_schema["meddled"] = True
    return request


def casts(request: ModelRequest) -> ModelRequest:
    """Say the same in other bytes, as Python sees it."""
    messages = [
        replace(
            message,
            content=[replace(b, input={"n": True}) if b in message.calls else b for b in message.content],
        )
        for message in request.messages
    ]
    return replace(request, messages=messages)


EDITS: list[Callable[[ModelRequest], ModelRequest] | None] = [
    *(None, shouts, clears, puts_ahead, drops, tells, narrows, meddles, casts),
    tunes(temperature=1, extra={"a": 1, "b": 2}),
    tunes(temperature=0.0, max_tokens=1, cache_at=[0]),
    tunes(temperature=1.0, extra={"b": 2, "a": True}, cache_at=(0,)),
    tunes(model="other", tool_choice="none", thinking="disabled", effort="low"),
]


class World:
    """A task and its forks, a model that notes what it was sent, and workers that come and go."""

    def __init__(self, store: Store, clock: FrozenClock) -> None:
        self.store, self.clock, self.ids = store, clock, SeededIds()
        self.sent: list[bytes] = []
        self.meant: list[bytes] = []
        self.answers: list[Any] = []
        self.provider = ScriptedProvider(respond=self._reply)
        self.wild: list[Wild] = [Left(), Right()]
        self.said: list[tuple[str, int, str]] = []
        self.erased: dict[int, set[str]] = {}
        self.meddled = False
        self.works()

    def works(self, *names: str) -> None:
        """Another worker, whose agent has the plugins `names` (all of them when there are none)."""
        plugins = [plugin for plugin in self.wild if not names or plugin.name in names]
        self.works_last = plugins[-1]
        ports: dict[str, Any] = {"store": self.store, "clock": self.clock, "ids": self.ids}
        self.bench = Harness(plugins, provider=self.provider, **ports)

    def _reply(self, request: ModelRequest) -> Any:
        self.sent.append(encoded(request))
        # What was changed in place is sent by nobody.
        self.meddled |= any(wild.edit is meddles for wild in self.wild)
        self.meant.append(self.sent[-1] if self.meddled else self.works_last.meant)
        number = str(len(self.sent) - 1)
        given = self.answers.pop(0) if self.answers else "done"
        if isinstance(given, ProviderError):
            return ProviderError(given.category, number, retry_at=given.retry_at)
        return reply(number, *(call(name, n=1) for name in given if name in ("look", "picture")))

    async def live(self, steps: list[tuple[str, int]]) -> None:
        self.task = await self.bench.start("begin")
        await self.bench.run()
        for name, n in steps:
            await getattr(self, name)(self.wild[n % 2], n // 2)
            self.clock.advance(100)
            await self.bench.run()

    async def says(self, wild: Wild, n: int) -> None:
        text = f"said {len(self.said)}. {LARGE if n % 5 == 4 else ''}"
        message = replace(user(text), content=[Text(text=text), *([PIXELS] if n % 3 == 2 else [])])
        await self.bench.post(self.task, message)
        await self.bench.run()
        for record in await self.bench.log(self.task, "received"):
            if record.message and record.message.text == text:
                self.said.append((self.task, record.seq, text))

    async def calls(self, wild: Wild, n: int) -> None:
        self.answers = [["look", "picture"][: 1 + n % 2], "done"]
        await self.says(wild, n)

    async def offers(self, wild: Wild, n: int) -> None:
        wild.offered = [Tool(name) for name in ["look", "picture", "third"][n % 3 :]]
        wild.withheld = {"third": "not now"} if n % 4 == 1 else {}
        entry = ToolSpec(extra={"type": "mode"})
        wild.entries = [ToolEntry(entry, before="look" if n % 2 else "")] if n % 5 == 2 else []

    async def knows(self, wild: Wild, n: int) -> None:
        wild.parts = [ContextPart(f"Fact {n}.", before="You are an agent." if n % 2 else "")][: n % 3]

    async def edits(self, wild: Wild, n: int) -> None:
        wild.edit = EDITS[n % len(EDITS)]
        await self.says(wild, 0)

    async def reminds(self, wild: Wild, n: int) -> None:
        wild.once["reminders"] = lambda view: [Reminder(f"remember {n}", role=["user", "system"][n % 2])]
        await self.says(wild, n)

    async def interferes(self, wild: Wild, n: int) -> None:
        """Record a message, or compact, at another moment of a request's life."""
        act = [note, compact][n % 2]
        hook = ["before_model", "before_model", "reminders", "on_event"][n // 2 % 4]
        wild.once[hook] = stale(act) if n // 2 % 4 == 0 else act
        await self.says(wild, 0)

    async def fails(self, wild: Wild, n: int) -> None:
        at = self.clock.now() + 60
        category = ["overloaded", "overflow", "auth"][n % 3]
        self.answers = [ProviderError(category, "", retry_at=None if n % 3 else at), "done"]
        await self.says(wild, 0)

    async def enters(self, wild: Wild, n: int) -> None:
        await self.bench.post(self.task, NewEntry(wild.name, "entered", n, user("an entry")))

    async def forks(self, wild: Wild, n: int) -> None:
        last = (await self.bench.row(self.task)).last_seq
        past = {"history_from": self.task, "history_through": max(1, last - n)}
        self.task = await self.bench.start("go on here", **past)

    async def restarts(self, wild: Wild, n: int) -> None:
        self.works(*([wild.name] if n % 2 else []))

    async def erases(self, wild: Wild, n: int) -> None:
        own = (await self.bench.row(self.task)).through
        if told := [said for said in self.said if said[0] == self.task and said[1] > own]:
            _, seq, text = told[n % len(told)]
            await self.bench.erase(self.task, seq)
            self.erased.setdefault(seq, set()).add(text)

    async def check(self) -> None:
        """Every reply and every failure of every task leads to what was sent, as plugins meant it."""
        assert self.sent == self.meant
        for row in await self.store.tasks():
            outcomes = await self.bench.log(row.task, "model_replied", "model_failed")
            found = [request async for request in rebuilt(self.store, row.task)]
            assert [request.seq for request in found] == [record.seq for record in outcomes]
            await self.check_breaks(row.task, found)
            for record in outcomes:
                for ref in getattr(record.data, "calls", ()):
                    assert (await why(self.store, row.task, ref.id)).sentences
            for record, request in zip(outcomes, found, strict=True):
                number = record.message.text if record.message else record.data.detail
                sent = self.sent[int(number)]
                assert not request.fault
                if request.exact:
                    assert request.encoded == sent
                    continue
                gone = [
                    [text for text in self.erased.get(seq, ()) if text in str(sent)] for seq in request.erased
                ]
                # What was replaced before sending was still part of what the request was made of.
                assert any(gone) or request.parts.edits
                if all(gone) and not request.parts.edits:
                    before, now = (msgspec.json.decode(data)["messages"] for data in (sent, request.encoded))
                    left = [not any(text in str(message) for [text] in gone) for message in before]
                    assert [a == b for a, b in zip(before, now, strict=True)] == left

    async def check_breaks(self, task: str, found: list[Rebuilt]) -> None:
        """A prefix is broken where the requests, read in full, differ before the end of the first one."""
        broken = {one.seq: one for one in await prefix_breaks(self.store, task)}
        for old, new in pairwise(found):
            before, now = ([encode_message(message) for message in one.messages] for one in (old, new))
            same = [a == b for a, b in zip(before, now, strict=False)]
            shared = same.index(False) if False in same else len(same)
            tools = [msgspec.json.encode(one.request.tools) for one in (old, new)]
            parts = {
                "model": getattr(old.outcome, "model", "") != getattr(new.outcome, "model", ""),
                "tools": tools[0] != tools[1],
                "system": old.request.system != new.request.system,
                "messages": shared < len(before),
            }
            if "ModelFailed" in {type(one.outcome).__name__ for one in (old, new)}:
                parts["model"] = old.request.model != new.request.model
            changes = broken[new.seq].changes if new.seq in broken else []
            assert [change.part for change in changes] == [part for part in parts if parts[part]]
            for change in changes:
                assert change.part != "messages" or change.at == shared == broken[new.seq].shared
                assert change.cause != "changed" or change.part != "messages"
                assert change.cause not in ("edited", "compacted") or change.by


@asynccontextmanager
async def opened(kind: str, folder: str) -> AsyncIterator[World]:
    clock = FrozenClock()
    store: Any = InMemoryStore(clock, SeededIds())
    if kind == "sqlite":
        store = SqliteStore(Path(folder) / "noeta.db", synchronous="NORMAL", clock=clock)
    try:
        yield World(store, clock)
    finally:
        await store.aclose()


VERBS = ["says", "calls", "offers", "knows", "edits", "edits", "reminds", "interferes", "fails", "enters"]
STEPS = st.lists(
    st.tuples(st.sampled_from([*VERBS, "forks", "restarts"]), st.integers(0, 39)), min_size=4, max_size=14
)
ERASING = st.lists(
    st.tuples(st.sampled_from([*VERBS, "forks", "erases", "erases"]), st.integers(0, 39)),
    min_size=4,
    max_size=14,
)


def live(kind: str, steps: list[tuple[str, int]]) -> World:
    async def main() -> World:
        with TemporaryDirectory() as folder:
            async with opened(kind, folder) as world:
                await world.live(steps)
                await world.check()
                return world

    return anyio.run(main)


@given(STEPS)
@settings(max_examples=30, deadline=None)
def test_every_request_of_any_task_is_rebuilt_byte_for_byte(steps: list[tuple[str, int]]) -> None:
    live("memory", steps)


@given(STEPS)
@settings(max_examples=8, deadline=None)
def test_every_request_is_rebuilt_from_a_file(steps: list[tuple[str, int]]) -> None:
    live("sqlite", steps)


@given(ERASING)
@settings(max_examples=20, deadline=None)
def test_a_request_is_exact_or_says_which_messages_were_erased(steps: list[tuple[str, int]]) -> None:
    live("memory", steps)


def test_a_world_of_deaths_leaves_every_request_to_be_rebuilt() -> None:
    for seed in range(40):
        world = simulate(seed)
        requests = world.provider.requests
        sent = {encoded(one) for one in requests}

        async def look(world: Any = world, sent: set[bytes] = sent) -> None:
            for row in await world.store.tasks():
                async for request in rebuilt(world.store, row.task):
                    assert not request.fault
                    assert request.exact == (request.encoded in sent)

        anyio.run(look)


@given(damaged_logs())
def test_a_damaged_log_is_rebuilt_as_far_as_it_goes(lines: list[Line]) -> None:
    past = _Past()
    for line in lines:
        if (found := past.take(decode(line))) is not None:
            assert not found.exact
            assert msgspec.json.decode(found.encoded)["messages"]
