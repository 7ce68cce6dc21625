"""A task's conversation as people read it: who said what, calls with their inputs, and results."""

from __future__ import annotations

from collections.abc import Iterator

from noeta.toolkit import records as r
from noeta.toolkit.records import Recorded
from noeta_cli.output import bold, clean, one_line, when
from noeta_cli.summaries import by_whom, shown, summary, texts_of

RESULT_LINES = 10
RESULT_CHARS = 1_000
INPUT_CHARS = 300
ALONE = (
    *(r.ChildSpawned, r.ChildEnded, r.Notice, r.ModelFailed, r.PluginFailed, r.Compacted, r.Erased),
    *(r.TurnFailedRecord, r.Interrupted, r.TaskEnded, r.TimerSet),
)
"""What is told in one line between messages."""


def is_said(record: Recorded) -> bool:
    """Whether a record belongs to what people read of a task."""
    return record.message is not None or record.erased or isinstance(record.data, (*ALONE, r.ToolFinished))


class Conversation:
    """Makes paragraphs of records, one after the other. With `full` nothing is cut."""

    def __init__(self, *, full: bool = False) -> None:
        self._full = full
        self._tools: dict[str, str] = {}

    def told(self, record: Recorded) -> str:
        """The paragraph of a record that `is_said`."""
        if record.erased:
            return f"{_head(record, 'somebody')}\n(erased)"
        match record.data:
            case r.ModelReplied(model=model):
                return "\n".join([_head(record, f"model {model}"), *self._reply(record)])
            case r.ToolFinished(call=call, is_error=is_error):
                end = "failed" if is_error else "result"
                who = f"{self._tools.get(call, 'tool')} {end} ({call})"
                return f"{_head(record, who)}\n{self._cut(chr(10).join(texts_of(record)))}"
            case r.TaskEnded(status=status, reason=reason):
                # What it hands back is what was said last.
                return _head(record, f"{status}{f' ({reason})' if reason else ''}")
            case data if isinstance(data, ALONE):
                by = f" [{by_whom(record)}]" if by_whom(record) else ""
                return _head(record, f"{record.kind.replace('_', ' ')}{by}: {summary(record)}")
        text = record.message.text if record.message else ""
        images = record.message.images if record.message else []
        return "\n".join([_head(record, _speaker(record)), clean(text), *("[image]" for _ in images)])

    def _reply(self, record: Recorded) -> Iterator[str]:
        if record.message is None:
            return
        if text := record.message.text.strip():
            yield clean(text)
        for use in record.message.calls:
            self._tools[use.id] = use.name
            given = shown(use.input)
            yield f"→ {one_line(use.name)} {one_line(given, 0 if self._full else INPUT_CHARS)} ({use.id})"

    def _cut(self, text: str) -> str:
        text = clean(text)
        if self._full:
            return text
        lines = text[:RESULT_CHARS].splitlines()[:RESULT_LINES]
        short = "\n".join(lines)
        left = len(text) - len(short)
        return f"{short}\n… {left} more characters; --full shows them" if left > 1 else short


def _speaker(record: Recorded) -> str:
    match record.data:
        case r.Received(item="message") if record.message and not record.message.origin:
            return "you"
        case r.Received(item=item) if item != "message":
            return item
        case r.Continue(reason=reason):
            return f"noeta ({reason})"
    return f"plugin {by_whom(record)}" if by_whom(record) else "noeta"


def _head(record: Recorded, who: str) -> str:
    return bold(f"[{record.seq}] {one_line(who)} · {when(record.at)}")
