"""The command `answer`: what a person says to a call that waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from noeta_cli.asks import answer_line, asks_of, read_words, shown_ask
from noeta_cli.opening import acting, whoami
from noeta_cli.output import note, one_line, show
from noeta_cli.readers import Wrong, reading
from noeta_cli.stores import store_option
from noeta_cli.task_ids import find_task, task_argument

if TYPE_CHECKING:
    from noeta.host.host import Host
    from noeta.host.outcome import Asked

CALL = re.compile(r"c\d+_\d+(_[0-9a-f]*)?")
"""What the id of a call looks like, or the beginning of one."""


@click.command(short_help="Answer a question that a task waits with.")
@task_argument
@click.argument("words", metavar="[CALL] [allow|deny|ANSWER...]", nargs=-1)
@click.option("--by", metavar="NAME", help="Who answers; without it, who is logged in.")
@click.option("--reason", metavar="TEXT", default="", help="Told to the model.")
@click.option("--end-turn", is_flag=True, help="The turn ends with this call.")
@store_option
def answer(task: str, words: tuple[str, ...], store: str | None, by: str | None, **more: Any) -> None:
    """Answer a call of TASK, or of its children, that waits.

    An approval is answered by allow or deny. A question takes one ANSWER: an option, its number, or your own
    words; deny refuses to answer. Without an answer, what waits is listed. CALL is needed when several wait.
    """

    with reading(store) as opened:
        name = find_task(opened.reader, task)
        asks = asks_of(opened.reader, name)
        asked, rest = _meant(name, asks, words, store) if words else (None, ())
        if asked is None or not rest:
            _list(name, [asked] if asked else asks, store)
            return
        given, call = read_words(asked, rest), asked

        async def verb(host: Host) -> None:
            await host.answer(call.task, call.call, given, by=by or whoami(), park=call.park, **more)

        acting(verb, opened)
    note(f"answered; a worker goes on with the task, or: noeta run --resume {name}")


def _meant(
    task: str, asks: Sequence[Asked], words: Sequence[str], store: str | None
) -> tuple[Asked, Sequence[str]]:
    """The call that the words answer, and the words left. Raises `Wrong`."""
    if CALL.fullmatch(words[0]):
        found = [asked for asked in asks if asked.call.startswith(words[0])]
        if len(found) == 1:
            return found[0], words[1:]
        raise Wrong(
            f"call {words[0]!r} of task {task} does not wait for an answer{_others(asks)}"
            if not found
            else f"{words[0]!r} begins {len(found)} calls{_others(found)}"
        )
    if len(asks) == 1:
        return asks[0], words
    if not asks:
        raise Wrong(f"nothing of task {task} waits for an answer")
    lines = "; ".join(answer_line(asked, store) for asked in asks)
    raise Wrong(f"{len(asks)} calls wait, so name one: {lines}")


def _others(asks: Sequence[Asked]) -> str:
    return f"; these wait: {', '.join(asked.call for asked in asks)}" if asks else "; nothing else waits"


def _list(task: str, asks: Sequence[Asked], store: str | None) -> None:
    """What waits, each with the command that answers it."""
    if not asks:
        note(f"nothing of task {task} waits for an answer")
    for asked in asks:
        for line in shown_ask(asked):
            show(one_line(line) if not line.startswith("  ") else f"  {one_line(line)}")
        show(f"  {answer_line(asked, store)}")
