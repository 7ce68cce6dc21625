"""Taking up a claimed task: its state from the store, and all that its runner reaches outside the kernel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from noeta.core.codec import decode, encode, recorded
from noeta.core.errors import RequestStale, TurnFailed
from noeta.core.items import Erase, Post, encode_body
from noeta.core.log import Claim, NewTask
from noeta.core.ports import Clock, Delta, Ids, ModelRequest, ModelResponse
from noeta.core.records import CORE, ChildSpawned, ContextComposed, Erased, Recorded, TaskCreated
from noeta.core.runner import Runner
from noeta.core.state import TaskState
from noeta.core.view import Spawn, child_id
from noeta.core.work import Built, Outside, Work
from noeta.host.agents import Agents, Composed
from noeta.host.birth import new_task
from noeta.host.context import context_of
from noeta.host.erasure import tombstone
from noeta.host.parts import parameters_of
from noeta.host.redelivery import Redelivery, retry_at
from noeta.host.request import Requests, model_of
from noeta.host.snapshot import Snapshots
from noeta.toolkit.errors import Duplicate
from noeta.toolkit.history import history, whole
from noeta.toolkit.limits import unlimited
from noeta.toolkit.store import Store
from noeta.toolkit.strays import fault

MAX_STALE = 3
"""How often a request is built again for one call."""


@dataclass(kw_only=True)
class Means:
    """What all tasks of a host share. `view` and `context` are more fields of views and tool contexts."""

    store: Store
    agents: Agents
    clock: Clock
    ids: Ids
    model: Callable[[ModelRequest, Callable[[Delta], None]], Awaitable[ModelResponse]]
    check_schema: Callable[[dict[str, Any], object], str | None]
    spill: Callable[[str, str], str]
    view: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)


async def take_up(
    means: Means,
    claim: Claim,
    *,
    wake: Callable[[float], Awaitable[bool]],
    kept: Callable[[], bool] = lambda: False,
    **context: Any,
) -> Runner:
    """The runner of a claimed task, with its state folded.

    `wake` waits until the task's inbox may have changed, or those seconds. Raises `ValueError` when this host
    does not have the task's agent, and what the store raises.
    """
    store, task = means.store, claim.task
    composed = means.agents.known((await store.task(task)).agent)
    snapshots = Snapshots(store, task, composed.folder)
    state = await snapshots.load()

    def snapshot(lines: Sequence[Any], state: Any) -> Sequence[Any]:
        snapshots.grown(lines)
        return snapshots.take(state) if snapshots.due else ()

    agent = composed.agent
    requests = Requests(agent, lambda seqs: records(store, task, seqs))
    shared = {
        "model": model_of(agent, state.config),
        "identity": agent.identity,
        "effort": state.config.get("effort") or agent.effort,
    }
    fields = {**shared, **means.context, **context}
    outside = Outside(
        log=store,
        clock=means.clock,
        ids=means.ids,
        offer=requests.offer,
        build=lambda work: build(requests, work),
        model=means.model,
        complete=lambda request: complete(means, request),
        admit=lambda spawn: admit(means, claim, composed, state, spawn),
        # Whoever runs a task runs its children too, unless they are sent elsewhere.
        birth=lambda spawn: birth(
            means, claim, state.root or task, replace(spawn, queue=spawn.queue or state.queue)
        ),
        purge=lambda claim, seqs: purge(store, claim, seqs),
        wake=wake,
        check_schema=means.check_schema,
        spill=means.spill,
        fault=fault,
        installed=composed.plugins,
        kept=kept,
        snapshot=snapshot,
        redeliver=Redelivery(store),
        retry_at=lambda work, reason: retry_at(work, store, reason),
        view={
            "agents": means.agents.by_name,
            "allowed_tools": agent.tools,
            "denied_tools": agent.denied,
            "prompts": agent.prompts,
            **shared,
            **means.view,
        },
        context=lambda work, call, stage: context_of(work, call, stage, fields),
    )
    if state.erasing:
        await purge(store, claim, state.erasing)
    work = Work(
        claim=claim,
        state=state,
        hooks=composed.hooks,
        folder=composed.folder,
        outside=outside,
    )
    work.set(next_request=lambda: requests.base(work).request)
    return Runner(work)


async def build(requests: Requests, work: Work) -> Built:
    """The next request, built again from the new state as often as a plugin finds it stale.

    Raises `TurnFailed` when that comes too often, `TurnDone` and `PluginFailure`.
    """
    for _ in range(MAX_STALE + 1):
        try:
            return await requests.build(work)
        except RequestStale as stale:
            detail = f"Plugin {stale.plugin!r} found the request stale {MAX_STALE + 1} times."
    raise TurnFailed("request_stale", detail)


async def complete(means: Means, request: ModelRequest) -> ModelResponse:
    """Call the model for a hook, whose time limit stands still meanwhile. Refuses what no step could send."""
    parameters_of(request)
    with unlimited():
        return await means.model(request, lambda delta: None)


def admit(means: Means, claim: Claim, parent: Composed, state: TaskState, spawn: Spawn) -> None:
    """Raise `ValueError` unless the agent of `spawn` is known and has the plugins its parent requires.

    Also for what no log can hold, and `TypeError` for what is no prompt: once it is on its way, nothing could
    be written any more. A parent that has ended, as `state` says, has no more children.
    """
    if state.ended:
        raise ValueError("a task that has ended has no more children")
    names = {plugin.name for plugin in means.agents.known(spawn.agent).plugins}
    for plugin in parent.plugins:
        if plugin.required and plugin.name not in names:
            raise ValueError(f"agent {spawn.agent!r} lacks plugin {plugin.name!r}, which this task requires")
    fact = ChildSpawned(child=spawn.child, agent=spawn.agent, key=spawn.key, call=spawn.call)
    encode(0, 0.0, CORE, fact.kind, replace(fact, background=spawn.background))
    newborn(means, claim, state.root or claim.task, spawn, spawn.history_through or 0)


async def birth(means: Means, claim: Claim, root: str, spawn: Spawn) -> NewTask:
    """The task to create for `spawn`. What it continues, it continues from what is durable now.

    Raises `UnknownTask` and `ValueError` when there is nothing to continue.
    """
    source, through = spawn.history_from, spawn.history_through
    if not source:
        if through is not None:
            raise ValueError(f"history_through is {through}, and history_from names no task")
        return newborn(means, claim, root, spawn, 0)
    last = (await means.store.task(source)).last_seq
    through = last if through is None else through
    if not 1 <= through <= last:
        raise ValueError(f"task {source!r} has no record {through} to continue from; its last one is {last}")
    return newborn(means, claim, root, spawn, through)


def newborn(means: Means, claim: Claim, root: str, spawn: Spawn, through: int) -> NewTask:
    """The task to create for `spawn`, which continues another one behind the record `through`, if it does.

    Raises `NotStorable` for what no log can hold.
    """
    created = TaskCreated(
        task=spawn.child,
        agent=spawn.agent,
        config=dict(spawn.config),
        parent=claim.task,
        root=root,
        key=spawn.key,
        queue=spawn.queue,
        one_shot=True,
        history_from=spawn.history_from,
        history_through=through,
        plugins=list(means.agents.known(spawn.agent).plugins),
    )
    return new_task(created, at=means.clock.now(), prompt=spawn.prompt)


async def records(store: Store, task: str, seqs: Sequence[int]) -> list[Recorded]:
    """The records of a task, or of those it continues, at these seqs."""
    found: list[Recorded] = []
    for seq in seqs:
        pages = history(store, task, seq - 1, through=seq)
        async with aclosing(pages):
            async for lines in pages:
                found += [recorded(await whole(store, decode(line))) for line in lines]
    return found


async def purge(store: Store, claim: Claim, seqs: Sequence[int]) -> None:
    """Take the bytes of erased records out of the store, and ask every fork to do the same."""
    row = await store.task(claim.task)
    own = [seq for seq in seqs if seq > row.through]
    stones, blobs = [], set[str]()
    for seq in own:
        for line in await store.read(claim.task, seq - 1, through=seq):
            # What holds no message is no message of a person's, whatever seq somebody named.
            if line.message or line.name == "core.compacted":
                stone, gone = tombstone(await whole(store, decode(line)))
                stones.append(stone)
                blobs |= set(gone)
    # A plugin that edited the messages of a later request may have put what was erased into it again.
    for line in await store.read(claim.task, max(min(seqs), row.through), only=["core.context_composed"]):
        envelope = await whole(store, decode(line))
        if isinstance(data := recorded(envelope).data, ContextComposed) and data.edits:
            stones.append(tombstone(envelope)[0])
    # Also when nothing of it is the task's own: a snapshot may still say what was erased.
    await store.purge(claim, stones, blobs)
    erased, last = await erased_by(store, claim.task, seqs), None
    while forks := await store.tasks(base=claim.task, after=last):
        for fork in forks:
            for by, theirs in erased.items():
                if shared := [seq for seq in theirs if seq <= fork.through]:
                    key = f"erase:{child_id(claim.task, str(theirs))}"
                    body = encode_body(Erase(seqs=shared, by=by))
                    with suppress(Duplicate):
                        await store.post(Post(task=fork.task, key=key, kind="erase", body=body))
        last = forks[-1]


async def erased_by(store: Store, task: str, seqs: Sequence[int]) -> dict[str, list[int]]:
    """Who had which of these seqs of a task erased, as its log says: a person, or else a plugin."""
    who = dict.fromkeys(seqs, "")
    for line in await store.read(task, only=["core.erased"]):
        record = recorded(await whole(store, decode(line)))
        if isinstance(record.data, Erased):
            named = {*record.data.seqs, *record.data.along} & who.keys()
            who |= dict.fromkeys(named, record.data.by or record.by)
    return {by: sorted(seq for seq in who if who[seq] == by) for by in who.values()}
