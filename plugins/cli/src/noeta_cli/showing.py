"""Showing a task at work: as text for people, as one JSON value at the end, or as a stream of JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from noeta_cli.asks import shown_call
from noeta_cli.outlet import Outlet
from noeta_cli.output import one_line, when

if TYPE_CHECKING:
    from noeta import Recorded
    from noeta.host.following import Live
    from noeta.host.outcome import Outcome

VERSION = 1
"""The version of the JSON that is printed. New keys do not change it."""
LINE_CHARS = 200
DIM: dict[str, Any] = {"dim": True}
BAD: dict[str, Any] = {"fg": "red"}


class Begun(Struct, frozen=True, kw_only=True):
    """A run: its task, why it has its model, and the names of the calls that are open already, by id."""

    task: str
    agent: str
    model: str
    reason: str
    calls: Mapping[str, str] = {}


class Shown(Protocol):
    """Is told what happens to a task."""

    def begin(self, run: Begun) -> None:
        """The task is there."""

    def record(self, recorded: Recorded) -> None:
        """A record was written."""

    def live(self, piece: Live) -> None:
        """Something is told live."""

    def end(self, outcome: Outcome) -> None:
        """The task does not go on by itself."""


class Quiet:
    """Shows the answer alone, at the end."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def begin(self, run: Begun) -> None:
        """Says nothing."""

    def record(self, recorded: Recorded) -> None:
        """Says nothing."""

    def live(self, piece: Live) -> None:
        """Says nothing."""

    def end(self, outcome: Outcome) -> None:
        """The answer."""
        if outcome.status == "done" and outcome.text:
            self._outlet.put(outcome.text if outcome.text.endswith("\n") else f"{outcome.text}\n")


class AsText:
    """Shows the text of the model as it comes, and in short lines on standard error what else happens."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        # What of the reply under way was shown, and the names of calls.
        self._said, self._calls = "", dict[str, str]()
        self._answered = False

    def begin(self, run: Begun) -> None:
        """Which task it is, and why on this model."""
        self._calls.update(run.calls)
        self._outlet.say(f"noeta: task {run.task} of agent {run.agent}. {run.reason}", **DIM)

    def record(self, recorded: Recorded) -> None:
        """Show what of the record is for people."""
        data = recorded.data
        if recorded.extension != "core":
            return
        match recorded.kind:
            case "model_replied":
                self._reply(recorded)
            case "model_failed":
                self._void()
                later = f"; again at {when(data.retry_at)}" if data.retry_at else ""
                self._line(f"The model failed ({data.category}): {data.detail}{later}", BAD)
            case "tool_finished":
                self._result(recorded)
            case "notice":
                self._line(data.text)
            case "plugin_failed":
                self._line(f"Plugin {data.plugin} failed in {data.hook}: {data.error}", BAD)
            case "compacted":
                self._line("The conversation was compacted.")
            case "child_spawned":
                self._line(f"Task {data.child} of agent {data.agent} begins.")
            case "child_ended":
                self._line(f"Task {data.child} ended: {data.status}.")

    def live(self, piece: Live) -> None:
        """Show text, and what calls report."""
        from noeta.host.context import Progress
        from noeta.host.models import Reset

        if isinstance(piece, Reset):
            if self._said:
                self._void()
                self._line("That reply was cut off; it begins again.")
        elif isinstance(piece, Progress):
            self._line(f"{self._calls.get(piece.call, piece.call)}: {piece.text}")
        elif piece.kind == "text" and piece.text:
            self._said += piece.text
            self._outlet.put(piece.text)

    def end(self, outcome: Outcome) -> None:
        """The answer, unless it was shown as it came."""
        self._void()
        if outcome.status == "done" and outcome.text and not self._answered:
            self._outlet.put(f"{outcome.text}\n")

    def _reply(self, recorded: Recorded) -> None:
        message = recorded.message
        text = message.text if message else ""
        if not text.startswith(self._said):
            # Who came late heard it from the middle on.
            self._void()
        if rest := text[len(self._said) :]:
            self._outlet.put(rest)
        self._said = text
        self._void()
        self._answered = self._answered or bool(text)
        for call in message.calls if message else ():
            self._calls[call.id] = call.name
            self._line(shown_call(call.name, call.input))

    def _result(self, recorded: Recorded) -> None:
        name = self._calls.get(recorded.data.call, "")
        text = ""
        for block in recorded.message.content if recorded.message else ():
            text += "".join(getattr(inner, "text", "") for inner in getattr(block, "content", ()))
        first = one_line(text, LINE_CHARS) or "nothing"
        self._line(f"{name} -> {first}", BAD if recorded.data.is_error else DIM)

    def _void(self) -> None:
        """What comes next is something else than the reply that was under way."""
        if self._said and not self._said.endswith("\n"):
            self._outlet.put("\n")
        self._said = ""

    def _line(self, text: str, style: dict[str, Any] = DIM) -> None:
        self._outlet.say(f"  {one_line(text, LINE_CHARS)}", **style)


class AsJson(Quiet):
    """One JSON object at the end."""

    def end(self, outcome: Outcome) -> None:
        """The outcome."""
        self._outlet.put(encoded({"v": VERSION, **outcome_of(outcome)}))


class AsLines:
    """One JSON object a line: what the run is, every record and what is told live, and the outcome."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def begin(self, run: Begun) -> None:
        """The first line, with the version of all."""
        self._put("run", v=VERSION, task=run.task, agent=run.agent, model=run.model, reason=run.reason)

    def record(self, recorded: Recorded) -> None:
        """A record, as `Recorded` has it."""
        self._put("record", record=recorded)

    def live(self, piece: Live) -> None:
        """A piece of a reply, that the pieces so far are void, or what a call reports."""
        from noeta.host.context import Progress
        from noeta.host.models import Reset

        if isinstance(piece, Reset):
            self._put("reset")
        elif isinstance(piece, Progress):
            self._put("progress", call=piece.call, text=piece.text)
        else:
            self._put("delta", kind=piece.kind, index=piece.index, text=piece.text, name=piece.name)

    def end(self, outcome: Outcome) -> None:
        """The last line."""
        self._put("outcome", **outcome_of(outcome))

    def _put(self, type: str, **more: Any) -> None:
        self._outlet.put(encoded({"type": type, **more}))


def outcome_of(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON has it."""
    keys = ("task", "status", "reason", "text", "usage", "asks")
    return {key: getattr(outcome, key) for key in keys}


def encoded(value: Any) -> str:
    """A line of JSON. What JSON does not know is told in words."""
    import msgspec

    return f"{msgspec.json.encode(value, enc_hook=repr).decode()}\n"
