"""What each core record does to the state of a task.

Every function is total: a record that does not fit the state, such as a second result of a call, changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from noeta.core import records as r
from noeta.core.codec import DECODERS, CompactedParts, Envelope
from noeta.core.items import ITEMS, TimerFired
from noeta.core.log import Timer
from noeta.core.state import Call, Child, Core, Problem, TaskState, Turn


def _task_created(state: TaskState, record: Envelope, data: r.TaskCreated) -> None:
    for name in r.TaskCreated.__struct_fields__:
        setattr(state, name, getattr(data, name))
    if data.history_from:
        fresh = Core()
        for name in _NOT_CARRIED:
            setattr(state, name, getattr(fresh, name))
        state.broken = {}
        state.calls = {id: replace(call, inherited=True) for id, call in state.calls.items()}


_NOT_CARRIED = ("turn", "children", "timers", "usage", "failures", "retry_at", "fence", "ended")


def _received(state: TaskState, record: Envelope, data: r.Received) -> None:
    if data.item not in ITEMS:
        state.newer = state.newer or Problem(seq=record.seq, why=f"inbox item {data.item!r} is newer")
    if data.item == "timer":
        fired = _timer(data.data)
        if (timer := state.timers.get(fired.name)) is None or timer.gen != fired.gen:
            # It was set again, or taken back, after it had fired.
            return
        del state.timers[fired.name]
    if record.message:
        state.conversation.add(record.seq, bytes(record.message))
    # Only records with a message are erased, so a tombstone had one.
    if record.message or record.erased:
        state.turn = replace(state.turn, tools={}) if state.turn else Turn(seq=record.seq)


def _context_composed(state: TaskState, record: Envelope, data: r.ContextComposed) -> None:
    for name in r.ContextComposed.__struct_fields__:
        if getattr(data, name) is not None:
            state.composed[name] = record.seq


def _model_replied(state: TaskState, record: Envelope, data: r.ModelReplied) -> None:
    if record.message:
        state.conversation.add_reply(record.seq, bytes(record.message), data.built_at)
    seq = record.seq
    # Every step comes through here, and a comprehension is one more call of Python.
    calls = state.calls = {}
    for i, ref in enumerate(data.calls):
        calls[ref.id] = Call(id=ref.id, name=ref.name, seq=seq, index=i)
    turn = state.turn or Turn(seq=seq)
    state.turn = replace(turn, steps=turn.steps + 1)
    state.usage, state.context_usage = state.usage + data.usage, data.usage
    if state.failures or state.retry_at is not None:
        state.failures, state.retry_at = 0, None


def _model_failed(state: TaskState, record: Envelope, data: r.ModelFailed) -> None:
    state.failures += 1
    state.retry_at = data.retry_at


def _model_called(state: TaskState, record: Envelope, data: r.ModelCalled) -> None:
    state.usage = state.usage + data.usage


def _gated(state: TaskState, record: Envelope, data: r.Gated) -> None:
    call = state.calls.get(data.call)
    winner = next(iter(data.opinions[data.winner :]), None) if data.winner is not None else None
    if call is not None and call.status != "done" and winner is not None and winner.verdict == "rewrite":
        # What a person approved was the call as it was.
        name, input = winner.detail.get("name") or call.name, winner.detail.get("input", {})
        state.calls[call.id] = replace(call, name=name, input=input, status="open", answer=None)


def _tool_started(state: TaskState, record: Envelope, data: r.ToolStarted) -> None:
    call = state.calls.get(data.call)
    if call is not None and call.status != "done":
        state.calls[data.call] = replace(call, status="started", attempts=data.attempt)


def _tool_finished(state: TaskState, record: Envelope, data: r.ToolFinished) -> None:
    call = state.calls.get(data.call)
    # A second result would leave a call with two, which no provider accepts.
    if call is None or call.status == "done":
        return
    state.calls[data.call] = replace(call, status="done", end_turn=data.end_turn)
    if state.turn is not None:
        succeeded = not data.is_error or state.turn.tools.get(call.name, False)
        state.turn = replace(state.turn, tools={**state.turn.tools, call.name: succeeded})
    if record.message:
        state.conversation.add_result(record.seq, bytes(record.message), call.index)


def _tool_parked(state: TaskState, record: Envelope, data: r.ToolParked) -> None:
    call = state.calls.get(data.call)
    if call is not None and call.status != "done":
        waits = replace(call, park=data.park, on=data.on, keys=data.keys, detail=data.detail)
        state.calls[data.call] = replace(waits, status="parked", answer=None, ends={})


def _answered(state: TaskState, record: Envelope, data: r.Answered) -> None:
    call = state.calls.get(data.answer.call)
    if not data.late and call is not None and call.status == "parked" and call.park == data.answer.park:
        state.calls[call.id] = replace(call, status="answered", answer=data.answer)


def _child_spawned(state: TaskState, record: Envelope, data: r.ChildSpawned) -> None:
    state.children[data.child] = Child(agent=data.agent, call=data.call, background=data.background)


def _child_ended(state: TaskState, record: Envelope, data: r.ChildEnded) -> None:
    child = state.children.pop(data.child, None)
    if child is not None and not child.call:
        # Whoever spawns it again under its key must find it.
        state.children[data.child] = replace(child, over=True)
    for call in list(state.calls.values()):
        if call.status == "parked" and call.on == "children" and data.child in call.keys:
            ends = call.ends | {data.child: data}
            status = "answered" if all(key in ends for key in call.keys) else "parked"
            state.calls[call.id] = replace(call, status=status, ends=ends)


def _compacted(state: TaskState, record: Envelope, data: CompactedParts) -> None:
    ahead = [bytes(raw) for raw in (*data.lead, *data.summary)]
    after = [bytes(raw) for raw in data.after]
    state.conversation.compact(record.seq, data.through, data.keep, ahead, after)
    state.context_usage = None


def _turn_over(state: TaskState, record: Envelope, data: object) -> None:
    state.turn, state.failures, state.retry_at = None, 0, None


def _claimed(state: TaskState, record: Envelope, data: r.Claimed) -> None:
    state.fence, state.erasing = data.fence, []
    if data.plugins is not None:
        state.plugins = data.plugins


def _task_ended(state: TaskState, record: Envelope, data: r.TaskEnded) -> None:
    state.ended, state.turn, state.timers = data.status, None, {}


def _timer_set(state: TaskState, record: Envelope, data: r.TimerSet) -> None:
    state.timers[data.name] = Timer(name=data.name, gen=record.seq, at=data.at, text=data.text)


def _timer_cleared(state: TaskState, record: Envelope, data: r.TimerCleared) -> None:
    state.timers.pop(data.name, None)


def _erased(state: TaskState, record: Envelope, data: r.Erased) -> None:
    state.conversation.erase([*data.seqs, *data.along])
    state.erasing = [*state.erasing, *data.seqs, *data.along]


def _continue(state: TaskState, record: Envelope, data: r.Continue) -> None:
    if record.message:
        state.conversation.add(record.seq, bytes(record.message))
    if state.turn is not None:
        count = state.turn.continues.get(data.reason, 0) + 1
        state.turn = replace(state.turn, continues=state.turn.continues | {data.reason: count})


_timer = msgspec.json.Decoder(TimerFired).decode
_CHANGES: dict[str, Callable[[TaskState, Envelope, Any], None]] = {
    change.__name__.removeprefix("_"): change
    for change in (
        *(_task_created, _received, _context_composed, _model_replied, _model_failed, _model_called),
        *(_gated, _tool_started, _tool_finished, _tool_parked, _answered, _child_spawned, _child_ended),
        *(_compacted, _claimed, _task_ended, _timer_set, _timer_cleared, _erased, _continue),
    )
}
_CHANGES |= dict.fromkeys(("turn_done", "turn_failed", "interrupted"), _turn_over)
CORE_FOLD = {kind: (decoder.decode, _CHANGES.get(kind)) for kind, decoder in DECODERS.items()}
"""For each core kind: how its data decodes, and what it does. Kinds for readers only do nothing (None)."""
