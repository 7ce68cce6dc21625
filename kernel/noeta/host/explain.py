"""Why a call went as it did: who decided about it, who was asked, how often it began and how it ended.

All of it stands in the log. Nothing is run for it, and no plugin is needed.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from noeta.core import records as r
from noeta.core.messages import Text, ToolResult
from noeta.core.records import Recorded
from noeta.host.reading import records
from noeta.toolkit.errors import UnknownCall
from noeta.toolkit.store import Store

NEAR = 5
"""How many calls an error suggests."""
SHOWN_CHARS = 300
"""How much of an input, or of a result, a sentence shows."""
AROUND = ("before_tool", "resolve_ask", "after_tool", "inherit")
"""The hooks that are asked about a call."""
LATE = ("core.answered", "core.child_ended")
"""What may still come when a call has its result."""
ABOUT = (
    *("core.gated", "core.tool_started", "core.tool_finished", "core.tool_parked", "core.child_spawned"),
    *("core.plugin_failed", "core.model_replied", *LATE),
)


class Why(Struct, frozen=True, kw_only=True):
    """All that a log says about one call.

    - `tool` and `input` are those of the reply that made the call, `seq` and `at` that reply's.
    - `status`: ``done``, ``failed`` (its result is an error), ``waiting``, or ``open``: not finished.
    - `decided` is the opinion that had the last word about it, None when nobody's had.
    - `rewrites` are the opinions that made another call of it, in order.
    - `approved` is the answer of the person who allowed it.
    - `attempts` is the number of its last start that was written down. That of a tool which may be repeated
      need not be.
    - `records` are those about it, in order. Of those in `unsure`, failures of plugins, the log does not say
      whether they were about this call or another one of the reply.
    """

    task: str
    call: str
    tool: str
    input: dict[str, Any]
    seq: int
    at: float
    status: str
    decided: r.Opinion | None
    rewrites: list[r.Opinion]
    approved: r.Answer | None
    attempts: int
    records: list[Recorded]
    unsure: list[int]

    @property
    def sentences(self) -> list[str]:
        """The same in words: what the call was, then what came of it in the order of the log."""
        told = [f"Call {self.call} of {self.tool}, made {_when(self.at)}: {_shown(self.input)}"]
        for record in self.records:
            told += _told(record)
            if record.seq in self.unsure:
                told.append("That may have been about another call of the same reply.")
        if not any(isinstance(record.data, r.Gated) for record in self.records):
            told.insert(1, "No plugin had an opinion about it.")
        return told if self.status in ("done", "failed") else [*told, "It has no result yet."]


async def why(store: Store, task: str, call: str) -> Why:
    """What the log of a task, and of the history it continues, says about a call.

    Raises `UnknownCall`, which names calls that may be meant, and `UnknownTask`.
    """
    reply = await _reply(store, task, call)
    window: list[Recorded] = []
    after = reply.seq
    async with aclosing(records(store, task, after, only=ABOUT)) as found:
        async for record in found:
            if record.kind == r.ModelReplied.kind:
                break
            window.append(record)
            after = record.seq
    async with aclosing(records(store, task, after, only=LATE)) as found:
        late = [record async for record in found]
    children = {s.data.child for s in window if isinstance(s.data, r.ChildSpawned) and s.data.call == call}
    failures = dict(_failures(window, call))
    about = [it for it in (*window, *late) if it.seq in failures or _is_about(it.data, call, children)]
    return _why(task, call, reply, about, [seq for seq, sure in failures.items() if not sure])


def _why(task: str, call: str, reply: Recorded, about: list[Recorded], unsure: list[int]) -> Why:
    status, decided, approved, attempts, waits = "open", None, None, 0, ""
    rewrites: list[r.Opinion] = []
    for record in about:
        match record.data:
            case r.Gated() as gated:
                decided = _winner(gated)
                rewrites += [decided] if decided and decided.verdict == "rewrite" else []
            case r.ToolParked(on=on):
                status, waits = "waiting", on
            case r.Answered(answer=answer, late=False):
                status = "open"
                approved = answer if waits == "approval" and answer.verdict == "allow" else approved
            case r.ToolStarted(attempt=attempt):
                status, attempts = "open", attempt
            case r.ToolFinished(is_error=is_error):
                status = "failed" if is_error else "done"
    uses = reply.message.calls if reply.message else []
    return Why(
        task=task,
        call=call,
        tool=next(ref.name for ref in reply.data.calls if ref.id == call),
        input=next((use.input for use in uses if use.id == call), {}),
        seq=reply.seq,
        at=reply.at,
        status=status,
        decided=decided,
        rewrites=rewrites,
        approved=approved,
        attempts=attempts,
        records=about,
        unsure=unsure,
    )


async def _reply(store: Store, task: str, call: str) -> Recorded:
    """The reply that made a call."""
    made: list[str] = []
    async with aclosing(records(store, task, only=["core.model_replied"])) as found:
        async for record in found:
            ids = [ref.id for ref in record.data.calls] if record.data else []
            if call in ids:
                return record
            made += ids
    near = [id for id in made if id.startswith(call)] or difflib.get_close_matches(call, made, NEAR) or made
    raise UnknownCall(task, call, near[-NEAR:])


def _is_about(data: object, call: str, children: Collection[str]) -> bool:
    match data:
        case r.Answered(answer=answer):
            return answer.call == call
        case r.ChildEnded(child=child):
            return child in children
        case r.PluginFailed():
            return False
    return getattr(data, "call", None) == call


def _failures(window: Sequence[Recorded], call: str) -> Iterator[tuple[int, bool]]:
    """The seqs of the failures that were about the call, and whether that is sure.

    The record of a failure names no call. What it led to does, and comes next: what the plugins said about
    the call, or the result that they were to look at.
    """
    for i, record in enumerate(window):
        match record.data:
            case r.PluginFailed(hook=hook, policy="park") if hook in AROUND:
                yield record.seq, False
            case r.PluginFailed(hook=hook) if hook in AROUND:
                led_to = {"after_tool": r.ToolFinished.kind, "inherit": ""}.get(hook, r.Gated.kind)
                led = next((it.data.call for it in window[i + 1 :] if it.data and it.kind == led_to), None)
                if led in (None, call):
                    yield record.seq, led is not None


def _winner(gated: r.Gated) -> r.Opinion | None:
    return None if gated.winner is None else next(iter(gated.opinions[gated.winner :]), None)


# ---- in words


def _told(record: Recorded) -> list[str]:
    """A record about a call in sentences."""
    match record.data:
        case r.Gated(opinions=opinions) as gated:
            winner = _winner(gated)
            return [_opinion(opinion, opinion is winner) for opinion in opinions]
        case r.ToolParked(on="children", keys=keys):
            return [f"It waits for the tasks {', '.join(keys)}."]
        case r.ToolParked(on=on, detail=detail):
            what = {"approval": "a person's approval", "question": "a person's answer"}.get(on, on)
            return [f"It waits for {what}: {_cut(str(detail.get('prompt') or _shown(detail)))}"]
        case r.Answered(answer=answer, late=late):
            said = {"allow": "allows it", "deny": "refuses it"}.get(answer.verdict, "answers")
            what = _shown(answer.values) if answer.values else answer.reason
            text = f"{answer.by or 'Somebody'} {said} {_when(answer.at or record.at)}{_behind(what)}"
            return [text, *(["That came too late and had no effect."] if late else [])]
        case r.ToolStarted(attempt=attempt):
            return [f"It starts {_when(record.at)}, attempt {attempt}."]
        case r.ChildSpawned(child=child, agent=agent):
            return [f"It spawns the task {child} of agent {agent}."]
        case r.ChildEnded(child=child, status=status, reason=reason):
            return [f"The task {child} ends: {status}{f' ({reason})' if reason else ''}."]
        case r.PluginFailed(plugin=plugin, hook=hook, error=error, policy=policy):
            return [f"Plugin {plugin!r} fails in {hook}, policy {policy}: {error}"]
        case r.ToolFinished(is_error=is_error):
            end = "an error" if is_error else "a result"
            return [f"It ends {_when(record.at)} with {end}: {_cut(_result(record))}"]
    return []


def _opinion(opinion: r.Opinion, decides: bool) -> str:
    said = opinion.verdict
    if said == "rewrite":
        said += f" to {opinion.detail.get('name') or 'the same tool'} {_shown(opinion.detail.get('input'))}"
    elif prompt := opinion.detail.get("prompt"):
        said += f" {prompt!r}"
    source = f" by {opinion.source}" if opinion.source else ""
    verb = "decides" if decides else "says"
    return f"Plugin {opinion.by!r} {verb} {said}{source}{_behind(opinion.reason)}"


def _behind(text: str) -> str:
    return f": {_cut(text)}" if text else "."


def _result(record: Recorded) -> str:
    blocks = record.message.content if record.message else []
    inner = [part for block in blocks if isinstance(block, ToolResult) for part in block.content]
    return " ".join(part.text if isinstance(part, Text) else f"[{type(part).__name__}]" for part in inner)


def _shown(value: object) -> str:
    return _cut(msgspec.json.encode(value).decode())


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def _when(at: float) -> str:
    """An epoch second for people, if it is one."""
    try:
        return f"at {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"at {at}"
