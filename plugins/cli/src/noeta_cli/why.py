"""`noeta why`: who decided about a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from noeta_cli.output import note, one_line, show, show_json, show_table
from noeta_cli.readers import reading
from noeta_cli.stores import json_option, store_option
from noeta_cli.task_ids import find_task, task_argument

if TYPE_CHECKING:
    from noeta.host.explain import Why
    from noeta.toolkit.store import Reader

KINDS = ("model_replied", "gated", "tool_parked", "answered", "tool_started", "tool_finished")


@click.command()
@task_argument
@click.argument("call", required=False)
@json_option
@store_option
def why(task: str, call: str | None, as_json: bool, store: str | None) -> None:
    """Say who decided about a call, by which rule, who was asked, and how it ended.

    TASK is an id, the beginning of one, or `last`; CALL is the id of a call, or the beginning of one. Without
    CALL, list the calls.
    """
    with reading(store) as opened:
        id = find_task(opened.reader, task)
        if call is not None:
            found = _why(opened.reader, id, call)
            if as_json:
                show_json(found)
                return
            for sentence in found.sentences:
                show(one_line(sentence))
            return
        calls = list(_calls(opened.reader, id))
    if as_json:
        for each in calls:
            show_json(each)
    elif calls:
        show_table(("call", "tool", "status", "decided by", "input"), [_cells(each) for each in calls])
    else:
        note("it has made no call yet.")


def _why(reader: Reader, task: str, call: str) -> Why:
    from noeta.host.at_once import at_once, looking
    from noeta.host.explain import why
    from noeta.toolkit.errors import UnknownCall

    try:
        return at_once(why(looking(reader), task, call))
    except UnknownCall as error:
        meant = [id for id in error.near if call and id.startswith(call)]
        if len(meant) != 1:
            raise
        return at_once(why(looking(reader), task, meant[0]))


def _calls(reader: Reader, task: str) -> Iterator[dict[str, Any]]:
    """Every call of a task in order: its id, tool and input, how it stands, and who decided about it.

    That is the opinion which had the last word, and the last answer of a person.
    """
    from noeta.host.at_once import each_at_once, looking
    from noeta.host.reading import records
    from noeta.toolkit import records as r

    calls: dict[str, dict[str, Any]] = {}
    for record in each_at_once(records(looking(reader), task, only=[f"core.{kind}" for kind in KINDS])):
        match record.data:
            case r.ModelReplied(calls=made):
                inputs = {use.id: use.input for use in record.message.calls} if record.message else {}
                for ref in made:
                    calls[ref.id] = {
                        "call": ref.id,
                        "tool": ref.name,
                        "seq": record.seq,
                        "status": "open",
                        "decided": None,
                        "answered": None,
                        "input": inputs.get(ref.id, {}),
                    }
            case r.Gated(call=call, opinions=opinions, winner=winner) if call in calls:
                decided = opinions[winner] if winner is not None and winner < len(opinions) else None
                calls[call]["decided"] = decided
            case r.ToolParked(call=call) if call in calls:
                calls[call]["status"] = "waiting"
            case r.Answered(answer=answer, late=False) if answer.call in calls:
                calls[answer.call] |= {"status": "open", "answered": answer}
            case r.ToolStarted(call=call) if call in calls:
                calls[call]["status"] = "open"
            case r.ToolFinished(call=call, is_error=is_error) if call in calls:
                calls[call]["status"] = "failed" if is_error else "done"
    yield from calls.values()


def _cells(call: dict[str, Any]) -> tuple[str, ...]:
    from noeta_cli.summaries import shown

    decided, answered = call["decided"], call["answered"]
    who = f"{decided.by} ({decided.verdict})" if decided else ""
    if answered:
        who = f"{answered.by} ({answered.verdict})"
    return call["call"], call["tool"], call["status"], who, one_line(shown(call["input"]), 100)
