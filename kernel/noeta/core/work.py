"""A claimed task at work: its state, what is folded and not yet durable, and the one way to write it.

Staged, folded and durable are three moments. What a hook stages is folded when the hook returns, and written
with the next commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import anyio
from msgspec import Struct
from msgspec.structs import asdict, replace

from noeta.core import records as r
from noeta.core.codec import Blob, Encoded, Envelope, Line, encode, placed, recorded
from noeta.core.fold import Folder
from noeta.core.hooks import Hooks
from noeta.core.items import Cancel, Interrupt, Post
from noeta.core.log import Append, Claim, Log, NewTask, SnapshotPart, Timer
from noeta.core.messages import Message, ToolUse
from noeta.core.parts import Offer
from noeta.core.ports import Clock, Delta, Ids, ModelRequest, ModelResponse
from noeta.core.state import Call, TaskState
from noeta.core.text import storable_text
from noeta.core.tool import Tool, ToolContext
from noeta.core.view import Spawn, TaskView, Views

PROGRESS = frozenset({"received", "model_replied", "tool_finished", "answered", "turn_done", "turn_failed"})
"""Core kinds that show a task gets on, so that the claims before did not die for nothing."""
MAX_ERROR_CHARS = 2_000


class Built(Struct):
    """A request to send, the seq its messages reach to, and its digest as `ModelReplied` keeps it."""

    request: ModelRequest
    built_at: int
    digest: str


@dataclass(kw_only=True)
class Outside:
    """What a runner reaches outside the kernel. The host supplies it.

    - `offer` asks the plugins what the task offers now. `build` makes the next request, again when a plugin
      found it stale, and records what it is made of; raises `TurnDone`, `TurnFailed` and `PluginFailure`.
    - `model` calls a model and tells each `Delta`; it raises `ProviderError` when its patience is over.
    - `complete` calls a model for a plugin whose hook waits, outside any step.
    - `admit` raises `ValueError` for a child that cannot be; `birth` makes the task to create of one,
      and raises for one with nothing to continue.
    - `purge` removes the bytes of erased records.
    - `snapshot` gets the lines of an append and the state behind them, and gives parts to write along.
    - `wake` waits until the inbox may have changed, or those seconds. `kept`: the claim has to stay here.
    - `installed` are the plugins the task runs with here. `redeliver` tells those of them that ask for it
      what they have not handled yet, at first and now and then while one is behind; `retry_at` says when a
      task that waits for this reason is to be taken up again without a word from outside.
    - `live` is told of deltas and of what a call reports while it runs.
    - `context` makes what a call sees, staging on the view. `view` are more fields of every `TaskView`.
    - `check_schema`, `spill` and `fault`, which says what a call raised, or raises what is no failure of it,
      are the toolkit's.
    """

    log: Log
    clock: Clock
    ids: Ids
    offer: Callable[[Work], Offer]
    build: Callable[[Work], Awaitable[Built]]
    model: Callable[[ModelRequest, Callable[[Delta], None]], Awaitable[ModelResponse]]
    complete: Callable[[ModelRequest], Awaitable[ModelResponse]]
    admit: Callable[[Spawn], None]
    birth: Callable[[Spawn], Awaitable[NewTask]]
    purge: Callable[[Claim, Sequence[int]], Awaitable[None]]
    wake: Callable[[float], Awaitable[bool]]
    context: Callable[[Work, Call, TaskView], ToolContext]
    check_schema: Callable[[dict[str, Any], object], str | None]
    spill: Callable[[str, str], str]
    fault: Callable[[BaseException], str]
    redeliver: Callable[[Work], Awaitable[None]]
    retry_at: Callable[[Work, str], Awaitable[float | None]]
    installed: Sequence[r.Plugin] = ()
    kept: Callable[[], bool] = lambda: False
    live: Callable[[object], None] = lambda piece: None
    snapshot: Callable[[Sequence[Line], TaskState], Sequence[SnapshotPart]] = lambda lines, state: ()
    view: Mapping[str, Any] = field(default_factory=dict)


class Batch(Struct):
    """What the next commit writes, by the names of `Append`; `erased` are seqs whose bytes go after it."""

    lines: list[Line] = []
    blobs: list[Blob] = []
    consume: list[int] = []
    posts: list[Post] = []
    spawn: list[Spawn] = []
    set_timers: dict[str, Timer] = {}
    clear_timers: set[str] = set()
    progress: bool = False
    erased: list[int] = []


class Gating(NamedTuple):
    """That a call may run: decided at `seq`, by these opinions, `approved` by a person or `outright`."""

    seq: int
    record: r.Gated
    approved: bool
    outright: bool


@dataclass(kw_only=True, eq=False)
class Work(Views):
    """One claim of a task: what all parts of the runner share, and the desk of its hooks.

    `durable` is the last seq written, `taken` the last inbox number recorded, `offer` what calls find their
    tools in, `stops` what was received to stop the task or its turn. `one_at_a_time` is held while hooks of a
    call run beside other calls.
    """

    claim: Claim
    state: TaskState
    hooks: Hooks
    folder: Folder
    outside: Outside
    batch: Batch = field(default_factory=Batch)
    durable: int = 0
    taken: int = 0
    offer: Offer = field(default_factory=Offer)
    gatings: dict[str, Gating] = field(default_factory=dict)
    uses: dict[str, ToolUse] = field(default_factory=dict)
    stops: list[Interrupt | Cancel] = field(default_factory=list)
    one_at_a_time: anyio.Lock = field(default_factory=partial(anyio.Lock, fast_acquire=True))
    _committing: anyio.Lock = field(default_factory=partial(anyio.Lock, fast_acquire=True))
    _events: list[Envelope] = field(default_factory=list)
    _known: set[tuple[Any, ...]] = field(default_factory=set)
    _spent: list[r.ModelCalled] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.durable = self.state.seq
        own = {"state": self.state, "folder": self.folder, "admit": self.admit}
        super().__init__(self.hooks, **own, new_id=self.outside.ids.new, **self.outside.view)

    def made(self, plugin: str) -> TaskView:
        """A view of the plugin, which may call a model."""
        view = super().made(plugin)
        view.complete = partial(self._complete, plugin)
        return view

    def put(self, fact: r.Fact, message: Message | None = None, by: str = "", hook: str = "") -> int:
        """Fold a core record; its seq. Raises `NotStorable`."""
        seq, at = self.state.seq + 1, self.outside.clock.now()
        return self.place(encode(seq, at, r.CORE, fact.kind, fact, message=message, by=by, hook=hook))

    def place(self, made: Encoded) -> int:
        """Give a record its place in the log and fold it; its seq."""
        if made.line.seq == 0:
            made = placed(made, self.state.seq + 1, self.outside.clock.now())
        batch, envelope = self.batch, made.envelope
        self.folder.apply(self.state, envelope)
        batch.lines.append(made.line)
        batch.blobs += made.blobs
        if self.hooks.impls["on_event"]:
            self._events.append(envelope)
        if envelope.extension == r.CORE:
            batch.progress |= envelope.kind in PROGRESS
            match recorded(envelope).data if envelope.kind in r.ENTRY_KINDS else None:
                case r.Erased(seqs=seqs, along=along):
                    batch.erased += [*seqs, *along]
                case r.TimerSet(name=name):
                    batch.set_timers[name] = self.state.timers[name]
                case r.TimerCleared(name=name):
                    batch.set_timers.pop(name, None)
                    batch.clear_timers.add(name)
        return envelope.seq

    def settled(self, view: TaskView) -> None:
        """Take what a hook or a call staged."""
        self._account()
        for made in view.pending:
            self.place(made)
        for spawn in view.creates:
            if spawn.child not in self.state.children:
                fact = r.ChildSpawned(child=spawn.child, agent=spawn.agent, key=spawn.key)
                self.put(replace(fact, call=spawn.call, background=spawn.background))
                self.batch.spawn.append(spawn)
        self.batch.posts += view.enqueued

    def failed(self, plugin: str, hook: str, error: str, policy: str) -> None:
        """Record that a hook failed: the same failure once a turn."""
        failure = (plugin, hook, error, self.state.turn and self.state.turn.seq)
        if failure not in self._known:
            self._known.add(failure)
            error = storable_text(error)[:MAX_ERROR_CHARS]
            self.put(r.PluginFailed(plugin=plugin, hook=hook, error=error, policy=policy))

    def admit(self, spawn: Spawn) -> Spawn:
        """`spawn` with what a child inherits.

        Raises `ValueError` for an agent that cannot be this task's child and for what no log can hold,
        `PluginFailure` when a plugin does not say what is inherited.
        """
        spawn = replace(spawn, config={**spawn.config, **self.hooks.inherit(self, self.state)})
        self.outside.admit(spawn)
        return spawn

    async def commit(self, status: Literal["running", "waiting", "ended"] = "running", **end: Any) -> None:
        """Write all that is folded, in one append; nothing when there is nothing. Cannot be cancelled.

        `end` are the fields of `Append` that go with a status. Raises what `Log.append` raises. After an
        error everything is still to be written.
        """
        with anyio.CancelScope(shield=True):
            async with self._committing:
                self._account()
                if status == "running" and self.batch == Batch():
                    return
                batch, self.batch, outside = self.batch, Batch(), self.outside
                fields = asdict(batch) | {"set_timers": list(batch.set_timers.values()), **end}
                erased = fields.pop("erased")
                try:
                    fields["snapshot"] = outside.snapshot(batch.lines, self.state)
                    fields["spawn"] = [await outside.birth(spawn) for spawn in batch.spawn]
                    id = outside.ids.token()
                    append = Append(expected_seq=self.durable, id=id, status=status, **fields)
                    done = await outside.log.append(self.claim, append)
                except BaseException:
                    self.batch = batch
                    raise
                self.durable = done.last_seq
                for post in done.undelivered:
                    self.put(r.Notice(text=f"Task {post.task} took no message: it is over or unknown."))
                if erased:
                    await outside.purge(self.claim, erased)

    async def tell(self) -> bool:
        """Tell plugins what became durable since the last time; whether that staged anything."""
        if self.behind:
            await self.outside.redeliver(self)
        while self._events and self._events[0].seq <= self.durable:
            await self.hooks.on_event(self, self.recorded(self._events[0]))
            # Not before: when the turn is stopped meanwhile, the rest is still to be told.
            del self._events[0]
        return self.batch != Batch()

    def recorded(self, envelope: Envelope) -> r.Recorded:
        """A record as plugins see it."""
        types = {reducer.name: reducer.types for reducer in self.folder.reducers}
        return recorded(envelope, types.get(envelope.extension))

    async def _complete(self, plugin: str, request: ModelRequest) -> ModelResponse:
        clock = self.outside.clock
        began = clock.monotonic()
        response = await self.outside.complete(request)
        ms, model = int(1000 * (clock.monotonic() - began)), response.model or request.model
        self._spent.append(r.ModelCalled(plugin=plugin, model=model, usage=response.usage, ms=ms))
        return response

    def _account(self) -> None:
        # A hook that fails has spent what it has spent. No record is made while one is awaited.
        while self._spent:
            self.put(self._spent.pop(0))

    def look(self) -> None:
        """Ask the plugins what they offer, so that calls find their tools."""
        if (offer := self.outside.offer(self)) is not self.offer:
            self.offer = offer
            self.set(offer=offer)

    def tool(self, call: Call) -> Tool | None:
        """The tool of a call, None when it is not offered any more."""
        return self.offer.tools.get(call.name, ("", None))[1]

    def use(self, call: Call) -> ToolUse:
        """A call as it is to run: as the reply made it, or as it was rewritten."""
        if call.id not in self.uses:
            reply = next(item for item in reversed(self.state.conversation) if item.seq == call.seq)
            self.uses |= {use.id: use for use in reply.message.calls}
        use = self.uses[call.id]
        return use if call.input is None else replace(use, name=call.name, input=call.input)
