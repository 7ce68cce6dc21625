"""Effects of an outbox happen once, in order, whatever fails and wherever the process dies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, cast

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from noeta import Allow, Extension, Gate, Recorded, TaskView, ToolContext, ToolUse
from noeta.core.codec import Encoded, Envelope, encode, placed, recorded
from noeta.core.fold import Folder
from noeta.core.items import Entry, Post, decode_body
from noeta.core.messages import Message, user
from noeta.core.records import PluginFailed, Received, TaskCreated
from noeta.core.view import Views
from noeta.host.registry import Registry
from noeta.toolkit.outbox import Outbox, OutboxState
from noeta.toolkit.record_types import record_types
from noeta.toolkit.reducers import reducer

REGISTRY = Registry()


class Crash(BaseException):
    """The process is gone."""


class World:
    """What outlives a process: the log, the inbox, and what the outside was sent.

    `fuse` counts the steps to the next crash; with `down` the outside refuses, with `deaf` it takes an effect
    and its answer is lost.
    """

    def __init__(self) -> None:
        self.log: list[Envelope] = []
        self.inbox: list[Post] = []
        self.sent: list[tuple[str, Any]] = []
        self.fuse = -1
        self.down = self.deaf = False
        self.ids = count()
        created = TaskCreated(task="t", agent="a", root="t")
        self.log.append(encode(1, 0.0, "core", "task_created", created).envelope)

    def step(self) -> None:
        self.fuse -= 1
        if self.fuse == -1:
            raise Crash

    def noted(self, kind: str) -> list[dict[str, Any]]:
        """Return the outbox's records of a kind, in the order of the log."""
        return [msgspec.json.decode(it.data) for it in self.log if (it.extension, it.kind) == ("mail", kind)]

    async def take(self, key: str, body: Any) -> None:
        """Take an effect, and see that it is one that may be delivered now."""
        self.step()
        id = key.removeprefix("t:mail:")
        assert id in [note["id"] for note in self.noted("outbox_staged")], "it was not durable"
        assert id not in [note["id"] for note in self.noted("outbox_done")], "it was done already"
        if self.down:
            raise OSError("the outside is down")
        self.sent.append((key, body))
        if self.deaf:
            raise TimeoutError("no answer")
        self.step()


class Mail(Outbox):
    """Stages what calls, messages and tools say."""

    name = "mail"

    def __init__(self, world: World) -> None:
        super().__init__()
        self.take = world.take

    async def deliver(self, view: TaskView, key: str, body: Any) -> None:
        await self.take(key, body)

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate:
        for body in call.input["bodies"]:
            self.stage(view, body)
        return Allow()

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        if recorded.message and recorded.message.text:
            self.stage(view, recorded.message.text, key=f"at-{recorded.seq}")
        await super().on_event(view, recorded)


class Worker(Views):
    """A claim of the task: the least of a runner that an outbox needs. `Crash` ends it."""

    def __init__(self, world: World, plugin: Extension) -> None:
        self.world, self.plugin = world, plugin
        self.folder = Folder([reducer(plugin)])
        self.state = self.folder.start()
        for record in world.log:
            self.folder.apply(self.state, record)
        self.lines: list[Envelope] = []
        self.posts: list[Post] = []
        self.untold: list[Envelope] = []
        new_id = map("n{}".format, world.ids).__next__
        hooks = REGISTRY.compose([plugin])
        super().__init__(hooks, state=self.state, folder=self.folder, new_id=new_id)

    @property
    def waiting(self) -> list[Any]:
        """Return the bodies that wait, by the state."""
        return [effect.body for effect in self.state.states[self.plugin.name].waiting]

    def place(self, made: Encoded) -> None:
        envelope = placed(made, self.state.seq + 1, 0.0).envelope
        self.folder.apply(self.state, envelope)
        self.lines.append(envelope)

    def put(self, extension: str, kind: str, data: Any, message: Message | None = None) -> None:
        self.place(encode(0, 0.0, extension, kind, data, message=message))

    def settled(self, view: TaskView) -> None:
        for made in view.pending:
            self.place(made)
        self.posts += view.enqueued

    def failed(self, plugin: str, hook: str, error: str, policy: str) -> None:
        self.put("core", "plugin_failed", PluginFailed(plugin=plugin, hook=hook, error=error, policy=policy))

    def commit(self, consumed: int = 0) -> None:
        """Make all or nothing durable: the records, the posts, and that items of the inbox are consumed."""
        self.world.step()
        self.world.log += self.lines
        self.world.inbox = self.world.inbox[consumed:] + self.posts
        self.untold += self.lines
        self.lines, self.posts = [], []
        self.world.step()

    async def tell(self, records: Sequence[Envelope], only: str = "") -> None:
        for record in records:
            self.world.step()
            event = recorded(record, self.plugin.record_types)
            await self.hooks.on_event(self, event, only=only)

    async def rest(self) -> None:
        """Commit, tell and drain the inbox until nothing moves."""
        if self.behind:
            await self.redeliver()
        while self.lines or self.posts or self.untold or self.world.inbox:
            items = list(self.world.inbox)
            for post in items:
                entry = msgspec.json.decode(decode_body(post.body).data, type=Entry)
                self.put(entry.extension, entry.kind, msgspec.json.decode(entry.data))
            self.commit(len(items))
            told, self.untold = self.untold, []
            await self.tell(told)

    async def claim(self) -> None:
        """Tell again what may not have been handled."""
        await self.redeliver()
        await self.rest()

    async def redeliver(self) -> None:
        self.behind.clear()
        for by, through in self.hooks.delivered_through(self).items():
            await self.tell([record for record in self.world.log if record.seq > through], by)

    async def call(self, *bodies: Any) -> None:
        """Let a hook stage effects."""
        await self.hooks.before_tool(self, ToolUse(id="c", name="x", input={"bodies": list(bodies)}))

    def tool(self, *bodies: Any) -> None:
        """Let a tool stage effects."""
        staged: list[tuple[str, str, Any]] = []
        env = cast("Any", None)
        ctx = ToolContext("t", f"c{self.state.seq}_0", env, lambda *record: staged.append(record), state={})
        for body in bodies:
            cast("Mail", self.plugin).stage(ctx, body)
        for record in staged:
            self.put(*record)

    def say(self, text: str) -> None:
        """Have a message in the log, on which the plugin stages an effect in `on_event`."""
        self.put("core", "received", Received(n=1, key="k", item="message"), user(text))


async def perform(worker: Worker, number: int, step: str) -> None:
    world = worker.world
    match step:
        case "call":
            await worker.call(f"{number}a", f"{number}b")
        case "tool":
            worker.tool({"n": number}, {"n": number})
        case "say":
            worker.say(f"{number}")
        case "commit":
            worker.commit()
        case "settle":
            await worker.rest()
        case "down" | "deaf":
            setattr(world, step, True)
        case "up":
            world.down = world.deaf = False


async def live(world: World, script: Sequence[str], fuses: Sequence[int]) -> int:
    """Play the script, dying after each fuse and going on with a new worker; then let all come to rest.

    Return how often it died.
    """
    left, crashes = list(enumerate(script)), list(fuses)
    while True:
        world.fuse = crashes.pop(0) if crashes else -1
        try:
            worker = Worker(world, Mail(world))
            await worker.claim()
            while left:
                await perform(worker, *left.pop(0))
            await worker.rest()
            break
        except Crash:
            continue
    died = len(fuses) - len(crashes) - (world.fuse >= 0)
    world.fuse, world.down, world.deaf = -1, False, False
    await Worker(world, Mail(world)).claim()
    return died


def check(world: World) -> None:
    """See that what is durable was delivered, in its order, and that the log says so."""
    staged = {note["id"]: note["body"] for note in world.noted("outbox_staged")}
    happened: dict[str, Any] = {}
    for key, body in world.sent:
        assert happened.setdefault(key, body) == body
    assert list(happened.items()) == [(f"t:mail:{id}", body) for id, body in staged.items()]
    assert Worker(world, Mail(world)).waiting == []
    done = [note["id"] for note in world.noted("outbox_done")]
    assert sorted(set(done)) == sorted(done) == sorted(staged)


STEPS = ["call", "tool", "say", "commit", "settle", "settle", "down", "deaf", "up"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(st.lists(st.sampled_from(STEPS), max_size=12), st.lists(st.integers(0, 40), max_size=5))
def test_every_durable_effect_happens_once_and_in_order_wherever_the_process_dies(
    backend: str, script: list[str], fuses: list[int]
) -> None:
    world = World()
    anyio.run(live, world, script, fuses, backend=backend)
    check(world)


@pytest.mark.anyio
async def test_a_crash_at_each_single_step_changes_nothing_outside() -> None:
    script = ["call", "down", "settle", "say", "up", "tool", "settle"]
    for steps in range(1_000):
        world = World()
        died = await live(world, script, [steps])
        check(world)
        if not died:
            break
    assert 30 < steps < 999


@pytest.mark.anyio
async def test_without_a_fault_each_effect_is_delivered_once_and_at_once() -> None:
    world = World()
    worker = Worker(world, Mail(world))
    await worker.call("a", "b")
    worker.tool("c")
    await worker.call("d")
    assert (world.sent, worker.waiting) == ([], ["a", "b", "c", "d"])
    await worker.rest()
    assert [body for _, body in world.sent] == ["a", "b", "c", "d"]
    assert len({key for key, _ in world.sent}) == 4
    assert worker.waiting == []
    assert world.noted("outbox_more") == []


@pytest.mark.anyio
async def test_one_that_fails_holds_up_the_later_ones_and_loses_none() -> None:
    world = World()
    worker = Worker(world, Mail(world))
    world.down = True
    await worker.call("a")
    await worker.rest()
    await worker.call("b", "c")
    await worker.rest()
    assert (world.sent, worker.waiting) == ([], ["a", "b", "c"])
    world.down = False
    await worker.call("d")
    await worker.rest()
    assert [body for _, body in world.sent] == ["a", "b", "c", "d"]
    assert worker.waiting == []


@pytest.mark.anyio
async def test_a_lost_answer_means_the_same_key_again_at_the_next_claim() -> None:
    world = World()
    world.deaf = True
    worker = Worker(world, Mail(world))
    await worker.call("a")
    await worker.rest()
    world.deaf = False
    await Worker(world, Mail(world)).claim()
    await Worker(world, Mail(world)).claim()
    assert world.sent == [("t:mail:n0", "a")] * 2


@pytest.mark.anyio
async def test_only_what_waits_is_told_again() -> None:
    world = World()
    worker = Worker(world, Mail(world))
    await worker.call("a")
    await worker.rest()
    assert worker.hooks.delivered_through(worker) == {}
    world.down = True
    before = worker.state.seq
    await worker.call("b")
    await worker.rest()
    assert worker.hooks.delivered_through(worker) == {"mail": before}
    worker.tool("c")
    world.down = False
    await worker.claim()
    world.down = True
    worker.tool("d")
    await worker.rest()
    (through,) = worker.hooks.delivered_through(worker).values()
    # A tool knows no seq, so its effect stands behind the last one that was delivered.
    assert before < through < worker.state.seq


@pytest.mark.anyio
async def test_an_event_whose_effect_is_done_is_not_told_again_for_a_later_one() -> None:
    class Picky(Mail):
        async def deliver(self, view: TaskView, key: str, body: Any) -> None:
            if body == refused:
                raise OSError(body)
            await super().deliver(view, key, body)

    world, refused = World(), "late"
    world.down = True
    worker = Worker(world, Picky(world))
    worker.say("early")
    await worker.rest()
    worker.tool("late")
    await worker.rest()
    world.down = False
    for _ in range(2):
        worker = Worker(world, Picky(world))
        await worker.claim()
        assert worker.waiting == ["late"]
    refused = ""
    await Worker(world, Picky(world)).claim()
    assert [body for _, body in world.sent] == ["early", "late"]


@pytest.mark.anyio
async def test_a_tool_that_stages_a_body_twice_in_one_call_stages_it_once() -> None:
    world = World()
    worker = Worker(world, Mail(world))
    worker.tool("a", "b", "a")
    await worker.rest()
    worker.say("on")
    worker.tool("a")
    await worker.rest()
    assert [body for _, body in world.sent] == ["a", "b", "a", "on"]


@pytest.mark.anyio
async def test_the_key_that_is_staged_is_the_key_that_is_delivered() -> None:
    keys: list[str] = []

    class Own(Mail):
        async def on_start(self, view: TaskView) -> None:
            keys.append(self.stage(view, "a"))
            keys.append(self.stage(view, "b", key="mine"))
            keys.append(self.stage(view, "again", key="mine"))

    world = World()
    worker = Worker(world, Own(world))
    await worker.hooks.on_start(worker)
    await worker.rest()
    assert world.sent == list(zip(keys, "ab", strict=False))
    assert keys[1:] == ["t:mail:mine"] * 2


@pytest.mark.anyio
async def test_what_a_hook_stages_and_then_raises_is_not_delivered() -> None:
    class Broken(Mail):
        async def on_start(self, view: TaskView) -> None:
            self.stage(view, "a")
            raise ValueError("no")

    world = World()
    worker = Worker(world, Broken(world))
    await worker.hooks.on_start(worker)
    await worker.rest()
    assert (world.sent, worker.waiting) == ([], [])


class Sent(Struct, frozen=True):
    body: str


class CountState(OutboxState, frozen=True, kw_only=True):
    """What waits, and how much was seen."""

    seen: int = 0


class Counting(Mail):
    """An outbox with state and kinds of its own."""

    record_types = record_types(Sent)
    State = CountState

    def initial_state(self) -> Any:
        return CountState()

    def reduce(self, state: Any, kind: str, data: Any) -> Any:
        state = super().reduce(state, kind, data)
        return msgspec.structs.replace(state, seen=state.seen + 1) if isinstance(data, Sent) else state

    async def deliver(self, view: TaskView, key: str, body: Any) -> None:
        await super().deliver(view, key, body)
        view.record(self.name, "sent", Sent(body=body))


@pytest.mark.anyio
async def test_a_plugin_has_more_state_and_records_beside_its_outbox() -> None:
    world = World()
    worker = Worker(world, Counting(world))
    await worker.call("a", "b")
    await worker.rest()
    state = worker.state.states["mail"]
    assert (state.waiting, state.seen) == ((), 2)
    world.down = True
    await worker.call("c")
    await worker.rest()
    state = worker.state.states["mail"]
    assert msgspec.json.decode(msgspec.json.encode(state), type=CountState) == state
    assert (worker.waiting, state.seen) == (["c"], 2)


@pytest.mark.anyio
async def test_a_task_that_continues_another_delivers_nothing_of_it() -> None:
    world = World()
    world.down = True
    worker = Worker(world, Counting(world))
    worker.put("mail", "sent", Sent(body="x"))
    await worker.call("a")
    await worker.rest()
    state = worker.plugin.continue_state(worker.state.states["mail"])
    assert (state.waiting, state.seen) == ((), 1)


@pytest.mark.anyio
async def test_a_plugin_that_folds_another_outbox_leaves_it_alone() -> None:
    class Watching(Mail):
        folds = ("other",)

    world = World()
    worker = Worker(world, Watching(world))
    worker.put("other", "outbox_staged", {"plugin": "other", "id": "n0", "body": "not mine"})
    await worker.call("a")
    worker.put("other", "outbox_done", {"plugin": "other", "id": "n0", "after": 99})
    await worker.rest()
    assert [body for _, body in world.sent] == ["a"]
    assert worker.state.states["mail"].floor < 99


@pytest.mark.anyio
async def test_a_frozen_state_delivers_nothing_since_it_would_not_learn_that_it_is_done() -> None:
    class Breaking(Mail):
        def reduce(self, state: Any, kind: str, data: Any) -> Any:
            if kind == "bad":
                raise ValueError("no")
            return super().reduce(state, kind, data)

    world = World()
    worker = Worker(world, Breaking(world))
    await worker.call("a")
    worker.put("mail", "bad", None)
    await worker.rest()
    assert world.sent == []


@pytest.mark.anyio
async def test_an_outbox_without_deliver_says_so() -> None:
    class Bare(Outbox):
        name = "mail"

        async def on_start(self, view: TaskView) -> None:
            self.stage(view, 1)

    world = World()
    worker = Worker(world, Bare())
    await worker.hooks.on_start(worker)
    await worker.rest()
    failures = [msgspec.json.decode(it.data) for it in world.log if it.kind == "plugin_failed"]
    assert [it["error"] for it in failures] == ["NotImplementedError: plugin 'mail' has no deliver"]
