"""A record in one line, for people."""

from __future__ import annotations

from typing import Any

import msgspec

from noeta.toolkit import records as r
from noeta.toolkit.records import Recorded
from noeta_cli.output import one_line, when

SUMMARY_CHARS = 200


def summary(record: Recorded) -> str:
    """What a record says, on one line without anything a terminal would obey."""
    if record.erased:
        return "(erased)"
    said = _said(record)
    text = record.message.text if record.message else ""
    return one_line(f"{said} {text}".strip() if text else said, SUMMARY_CHARS)


def by_whom(record: Recorded) -> str:
    """The plugin behind a record, empty for none."""
    plugin = getattr(record.data, "plugin", "") if record.extension == r.CORE else record.extension
    return record.by or plugin


def shown(value: Any) -> str:
    """A value as JSON, one that JSON does not know in words."""
    return msgspec.json.encode(value, enc_hook=repr).decode()


def _said(record: Recorded) -> str:
    match record.data:
        case r.TaskCreated(agent=agent, history_from=base, history_through=through):
            return f"agent {agent}" + (f", goes on from {base} behind record {through}" if base else "")
        case r.Received(item=item):
            return "" if record.message and item == "message" else f"{item}:" if record.message else item
        case r.ContextComposed() as composed:
            fields = composed.__struct_fields__
            return f"changed: {', '.join(f for f in fields if getattr(composed, f) is not None)}"
        case r.ModelReplied(usage=usage, calls=calls, model=model, ms=ms):
            made = f" calls {', '.join(f'{c.name} ({c.id})' for c in calls)};" if calls else ""
            return f"{model}{made} {usage.input} tokens in, {usage.output} out, {ms} ms;"
        case r.ModelFailed(category=category, detail=detail, attempt=attempt, retry_at=at):
            again = "" if at is None else f"; again {when(at)}"
            return f"{category}, attempt {attempt}: {detail}{again}"
        case r.ModelCalled(model=model, usage=usage, ms=ms):
            return f"{model} {usage.input} tokens in, {usage.output} out, {ms} ms"
        case r.Gated(call=call, opinions=opinions, winner=winner):
            told = [f"{o.by} says {o.verdict}{f' ({o.reason})' if o.reason else ''}" for o in opinions]
            decided = opinions[winner].by if winner is not None and winner < len(opinions) else ""
            return f"{call}: {', '.join(told)}" + (f"; {decided} decides" if decided else "")
        case r.ToolStarted(call=call, attempt=attempt):
            return f"{call}, attempt {attempt}"
        case r.ToolFinished(call=call, is_error=is_error):
            return f"{call}{' failed' if is_error else ''}: {_result(record)}"
        case r.ToolParked(call=call, on="children", keys=keys):
            return f"{call} waits for {', '.join(keys)}"
        case r.ToolParked(call=call, on=on, detail=detail):
            return f"{call} waits for {on}: {detail.get('prompt') or shown(detail)}"
        case r.Answered(answer=answer, late=late):
            what = answer.verdict or shown(answer.values)
            return f"{answer.call}: {what} by {answer.by or 'somebody'}{', too late' if late else ''}"
        case r.ChildSpawned(child=child, agent=agent):
            return f"{child} of agent {agent}"
        case r.ChildEnded(child=child, status=status, text=text):
            return f"{child}: {status} {text}"
        case r.Compacted(through=through, keep=keep):
            return f"what came up to record {through}, but for {len(keep)} records"
        case r.PluginFailed(hook=hook, error=error, policy=policy):
            return f"in {hook}, policy {policy}: {error}"
        case r.TurnDoneRecord(reason=reason):
            return reason
        case r.TurnFailedRecord(reason=reason, detail=detail):
            return f"{reason}: {detail}"
        case r.Interrupted(by=by):
            return f"by {by}" if by else ""
        case r.Claimed(fence=fence, worker=worker):
            return f"by worker {worker}, fence {fence}"
        case r.TaskEnded(status=status, reason=reason, text=text):
            return f"{status}{f' ({reason})' if reason else ''} {text}"
        case r.Notice(text=text):
            return text
        case r.TimerSet(name=name, at=at, text=text):
            return f"{name} {when(at)} {text}"
        case r.TimerCleared(name=name):
            return name
        case r.Erased(seqs=seqs, by=by):
            return f"records {', '.join(map(str, seqs))}{f' by {by}' if by else ''}"
        case r.Continue(reason=reason):
            return reason
        case None:
            return ""
    return shown(record.data)


def _result(record: Recorded) -> str:
    return " ".join(texts_of(record))


def texts_of(record: Recorded) -> list[str]:
    """What a result holds: its texts, and the kind of whatever is no text."""
    blocks = record.message.content if record.message else []
    inner = [part for block in blocks for part in getattr(block, "content", ())]
    return [getattr(part, "text", f"[{type(part).__name__.lower()}]") for part in inner]
