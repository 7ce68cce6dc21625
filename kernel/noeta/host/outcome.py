"""What came of a task, for whoever waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from noeta.core import records as r
from noeta.core.codec import decode, recorded
from noeta.core.entries import Notice
from noeta.core.messages import Usage
from noeta.core.state import Call, TaskState
from noeta.core.text import meant
from noeta.host.reading import Reader, children_of
from noeta.toolkit.history import whole
from noeta.toolkit.store import Store, TaskRow

WHYS = {
    "provider": ["core.model_failed"],
    "plugin": ["core.plugin_failed", "core.notice"],
    "quarantined": ["core.notice"],
}
"""The records that say why a task waits, by the reason of its wait."""
ENDS = tuple(f"core.{kind}" for kind in ("turn_done", "turn_failed", "interrupted", "task_ended"))


class Asked(Struct, frozen=True, kw_only=True):
    """A call that waits for a person: an ``approval`` or the answer to a ``question``, as `detail` says.

    `task` may be a child of the task that waits.
    """

    task: str
    call: str
    park: int
    name: str
    on: str
    detail: dict[str, Any] = {}


class Outcome(Struct, frozen=True, kw_only=True):
    """Where a task is that does not go on by itself now.

    - `status`: how the last turn, or the task, ended: ``done``, ``failed``, ``interrupted``, ``cancelled``.
      Or ``waiting``: `reason` says for what (``question``, ``children``, ``provider``, ``plugin``,
      ``quarantined``, or ``idle`` when there was no turn yet).
    - `text`: the answer, or what failed, also while the task waits for that to work again. `data`: the answer
      as `Host.run` was asked to read it.
    - `asks`: the calls that wait for a person, those of children included.
    - `usage`: all that the task has used.
    """

    task: str
    status: str
    text: str = ""
    data: Any = None
    reason: str = ""
    asks: Sequence[Asked] = ()
    usage: Usage = Usage()


async def outcome_of(store: Store, reader: Reader, row: TaskRow) -> Outcome | None:
    """The outcome of a task with this row, None while it or a child it waits for goes on."""
    if row.status not in ("waiting", "ended"):
        return None
    asks = await _asks(store, reader, row) if row.status == "waiting" and row.reason != "idle" else []
    if asks is None:
        return None
    state = await reader.state(row.task)
    if row.status == "waiting" and row.reason != "idle":
        text = await _why(store, row)
        return Outcome(
            task=row.task, status="waiting", reason=row.reason, text=text, asks=asks, usage=state.usage
        )
    lines = await store.read(row.task, row.through, only=ENDS)
    if not lines:
        return Outcome(task=row.task, status="waiting", reason="idle", usage=state.usage)
    last = recorded(await whole(store, decode(lines[-1])))
    status, text, reason, data = "interrupted", "", "", None
    match last.data:
        case r.TurnDoneRecord():
            status, text, reason = "done", last.data.text, last.data.reason
        case r.TurnFailedRecord():
            status, text, reason = "failed", last.data.detail, last.data.reason
        case r.TaskEnded():
            status, text, reason, data = last.data.status, last.data.text, last.data.reason, last.data.data
    return Outcome(task=row.task, status=status, text=text, data=data, reason=reason, usage=state.usage)


async def _why(store: Store, row: TaskRow) -> str:
    """What failed, if the task waits for that to work again."""
    lines = await store.read(row.task, row.through, only=WHYS[row.reason]) if row.reason in WHYS else []
    for line in reversed(lines):
        match recorded(await whole(store, decode(line))).data:
            case r.ModelFailed(detail=detail):
                return detail
            case r.PluginFailed(plugin=plugin, hook=hook, error=error, policy="park"):
                return f"Plugin {plugin!r} failed in {hook}. {error}"
            case Notice(topic=row.reason, text=text):
                return text
    return ""


async def _asks(store: Store, reader: Reader, row: TaskRow) -> list[Asked] | None:
    """What the task and its children ask a person; None while a child at work may wake the task."""
    found = asked_of(await reader.state(row.task))
    if row.reason != "children":
        return found
    children = [child for child in await children_of(store, row.task) if child.status != "ended"]
    for child in children:
        asked = await _asks(store, reader, child) if child.status == "waiting" else None
        if asked is None:
            return None
        found += asked
    return found if children else None


def asked_of(state: TaskState) -> list[Asked]:
    """The calls of a task that wait for a person, those of its children left out."""
    return [
        Asked(task=state.task, call=c.id, park=c.park, name=c.name, on=c.on, detail=c.detail)
        for c in state.open_calls
        if c.status == "parked" and c.on != "children"
    ]


def why_not(state: TaskState, call: str, found: Call | None, park: int | None) -> str:
    """Why a call does not wait for this answer."""
    if found is None:
        waiting = [open.id for open in state.open_calls if open.status == "parked" and open.on != "children"]
        known = f"; these wait: {', '.join(waiting)}" if waiting else ""
        return f"it is settled, or was never made{meant(call, state.calls)}{known}"
    if found.status == "done":
        return "it is done"
    if found.status == "answered":
        return "it was answered before"
    if found.status != "parked":
        return "it has not asked yet, or runs"
    return "it waits for child tasks" if found.on == "children" else f"it is in wait {found.park}, not {park}"
