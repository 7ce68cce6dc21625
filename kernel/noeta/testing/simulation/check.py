"""What must hold of a simulated world at rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from noeta.core.codec import decode
from noeta.core.fold import fold
from noeta.core.messages import ToolResult
from noeta.core.records import Recorded
from noeta.core.state import TaskState
from noeta.core.tool import MAX_ATTEMPTS
from noeta.testing.simulation.cast import TOLD
from noeta.toolkit.history import history
from noeta.toolkit.store import TaskRow

if TYPE_CHECKING:
    from noeta.testing.simulation.world import Simulation


async def check(world: Simulation) -> None:
    """Raise `AssertionError` for the first thing that does not hold."""
    assert all(times <= MAX_ATTEMPTS for times in world.acts.values()), "a call ran too often"
    assert all(times == 1 for times in world.lost.values()), "a loss was told twice"
    for row in await world.store.tasks(limit=1_000):
        log = await world.bench.log(row.task)
        own = [record for record in log if record.seq > row.through]
        state = await _folded(world, row)
        for holds in (_dense, _results, _inbox, _fences, _turns, _told):
            if fault := holds(row, log if holds in (_dense, _results) else own, state):
                raise AssertionError(f"{holds.__name__[1:]} of task {row.task}: {fault}.")
        await _children(world, row, own)
        lines = b"".join(line.data for line in await world.store.read(row.task)).decode()
        assert not any(text in lines for text in world.erased), (
            f"an erased message is in the log of {row.task}"
        )


async def _folded(world: Simulation, row: TaskRow) -> TaskState:
    """The state, after folding the log twice, in two pieces, and as it was kept."""
    reducers = world.bench.means.agents.known(row.agent).folder.reducers
    records = [decode(line) async for page in history(world.store, row.task) for line in page]
    state = fold(records, reducers)
    cut = world.rng.randrange(len(records) + 1)
    assert state == fold(records, reducers), "folding a log twice gives two states"
    assert state == fold(records[cut:], reducers, fold(records[:cut], reducers)), "a cut changes a fold"
    assert state == await world.bench.state(row.task), "a snapshot changes a fold"
    assert fold(records).conversation == state.conversation, "plugins change the conversation"
    fault = state.corrupt or state.newer
    assert fault is None, f"the log of {row.task} is {fault}"
    return state


def _dense(row: TaskRow, log: Sequence[Recorded], state: TaskState) -> str:
    seqs = [record.seq for record in log]
    return "" if seqs == list(range(1, len(log) + 1)) else f"seqs are {seqs}"


def _results(row: TaskRow, log: Sequence[Recorded], state: TaskState) -> str:
    """Each call has exactly one result, before the next reply."""
    waiting: set[str] = set()
    for record in log:
        if record.kind == "model_replied":
            if waiting:
                return f"reply {record.seq} came before the result of {min(waiting)}"
            waiting = {ref.id for ref in record.data.calls}
        elif record.kind == "tool_finished":
            if record.data.call not in waiting:
                return f"record {record.seq} is a second result of {record.data.call}"
            waiting.remove(record.data.call)
            [block] = record.message.content if record.message else [None]
            if not isinstance(block, ToolResult) or block.call != record.data.call:
                return f"record {record.seq} has no result"
        elif record.kind == "task_created":
            continue
    if waiting != {call.id for call in state.open_calls}:
        return f"the state has not the calls without result {waiting}"
    return f"it has ended, and {min(waiting)} has no result" if state.ended and waiting else ""


def _inbox(row: TaskRow, own: Sequence[Recorded], state: TaskState) -> str:
    """Every item is recorded once, in the order in which it came."""
    kinds = ("received", "answered", "child_ended")
    numbers = [record.data.n for record in own if record.kind in kinds]
    if row.unread:
        return f"{row.unread} items are not recorded"
    return "" if numbers == list(range(1, len(numbers) + 1)) else f"the items recorded are {numbers}"


def _fences(row: TaskRow, own: Sequence[Recorded], state: TaskState) -> str:
    fences = [record.data.fence for record in own if record.kind == "claimed"]
    return "" if fences == sorted(set(fences)) else f"they are {fences}"


def _turns(row: TaskRow, own: Sequence[Recorded], state: TaskState) -> str:
    """At rest no turn is under way, unless it waits for somebody."""
    if row.status == "waiting" and row.reason == "idle" and (state.turn or state.open_calls):
        return "it is idle in the middle of a turn"
    if row.status not in ("waiting", "ended"):
        return f"it is {row.status}"
    ended = sum(record.kind == "task_ended" for record in own)
    return "" if ended == (row.status == "ended") else f"it is {row.status} with {ended} ends"


def _told(row: TaskRow, own: Sequence[Recorded], state: TaskState) -> str:
    """The watcher was told of every record, in order, though of some more than once."""
    told = [record.data for record in own if (record.extension, record.kind) == ("watcher", "told")]
    first = list(dict.fromkeys(told))
    wanted = [record.seq for record in own if record.kind in TOLD]
    if first != sorted(first):
        return f"it was {told}"
    missing = set(wanted) - set(told)
    return f"it was not told of {sorted(missing)}" if missing and row.status != "ended" else ""


async def _children(world: Simulation, row: TaskRow, own: Sequence[Recorded]) -> None:
    """A child exists if its record does, is made once, and its end is recorded once."""
    spawned = Counter(record.data.child for record in own if record.kind == "child_spawned")
    ended = Counter(record.data.child for record in own if record.kind == "child_ended")
    rows = {child.task: child for child in await world.store.tasks(parent=row.task, limit=1_000)}
    assert spawned.keys() == rows.keys(), f"the records of children of {row.task} and the children differ"
    assert max(spawned.values(), default=1) == 1, f"a child of {row.task} was spawned twice"
    assert max(ended.values(), default=1) == 1, f"a child of {row.task} ended twice"
    over = {task for task, child in rows.items() if child.status == "ended"}
    if row.status != "ended":
        assert over == set(ended), f"ends of children of {row.task} are lost"
        live = set((await world.bench.state(row.task)).live_children)
        assert not live & over, f"a child of {row.task} is taken for alive"
    else:
        assert over == set(rows), f"a child of {row.task} outlives it"
