"""What a run shows of records and pieces, whatever is missing of the pieces."""

from __future__ import annotations

from typing import Any

from noeta import Message, Recorded, Text, ToolUse
from noeta.host.following import Live
from noeta.host.models import Reset
from noeta.host.outcome import Outcome
from noeta.toolkit.provider import Delta
from noeta.toolkit.records import ModelReplied
from noeta_cli.outlet import Outlet
from noeta_cli.showing import AsText


class Kept(Outlet):
    """An outlet that keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.out, self.err = "", list[str]()

    def put(self, text: str) -> None:
        self.out += text

    def say(self, text: str, **style: Any) -> None:
        self.err.append(text)


def reply(text: str, *calls: ToolUse) -> Recorded:
    message = Message(role="assistant", content=[Text(text=text), *calls])
    return Recorded(
        seq=5, at=0.0, extension="core", kind="model_replied", data=ModelReplied(built_at=4), message=message
    )


def piece(text: str) -> Live:
    return Delta(kind="text", index=0, text=text)


def shown(*given: Live | Recorded, text: str = "") -> Kept:
    """What is shown of these, and of a turn that ends with `text`."""
    kept = Kept()
    view = AsText(kept)
    for each in given:
        if isinstance(each, Recorded):
            view.record(each)
        else:
            view.live(each)
    view.end(Outcome(task="t", status="done", text=text))
    return kept


def test_a_reply_is_shown_once_however_much_of_it_was_told_live() -> None:
    whole = "One two three."
    for told in ([], [whole], ["One ", "two "], ["One two three", "."]):
        assert shown(*map(piece, told), reply(whole), text=whole).out == "One two three.\n"


def test_who_came_late_is_shown_the_whole_reply_on_lines_of_its_own() -> None:
    assert (
        shown(piece("three."), reply("One two three."), text="One two three.").out
        == "three.\nOne two three.\n"
    )


def test_a_reply_that_begins_again_begins_on_a_new_line() -> None:
    kept = shown(piece("One"), Reset(), piece("Eins"), reply("Eins zwei."), text="Eins zwei.")
    assert kept.out == "One\nEins zwei.\n"
    assert kept.err == ["  That reply was cut off; it begins again."]


def test_thoughts_and_inputs_are_no_answer() -> None:
    thought = Delta(kind="thinking", index=0, text="Hm.")
    input = Delta(kind="tool", index=1, text='{"a"', name="look")
    kept = shown(
        thought, input, reply("Yes.", ToolUse(id="c", name="look", input={"a": "b\nc"})), text="Yes."
    )
    assert kept.out == "Yes.\n"
    assert kept.err == ["  look(a=b c)"]


def test_an_answer_that_no_record_of_this_run_holds_is_shown_at_the_end() -> None:
    assert shown(text="From before.").out == "From before.\n"
