"""Logs as a working agent leaves them, of any length.

A log is one long turn: model replies with a call each, the records of that call, now and then a composed
context, a gate's opinions, and one record in ten from a plugin. Twenty steps are encoded by `codec.encode`
once, with figures for seqs and ids that occur nowhere else; every later line is such a line with its own
figures put in. That is twenty times quicker and gives the same bytes.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from noeta.core.codec import Line, encode
from noeta.core.messages import Message, Text, ToolResult, ToolUse, Usage, user
from noeta.core.records import (
    CallRef,
    Claimed,
    Compacted,
    ContextComposed,
    Gated,
    ModelReplied,
    Opinion,
    Plugin,
    Received,
    SystemPart,
    TaskCreated,
    ToolFinished,
    ToolPart,
    ToolStarted,
)

SEQ, BEFORE, STEP, OLD, SLOT = range(7_000_000_001, 7_000_000_006)
MARKS = {SEQ: "seq", BEFORE: "before", STEP: "step", OLD: "old", SLOT: "slot"}
"""Figures that stand in a template for the seq, the seq before, the step, an earlier step, and a file."""
PERIOD = 20
WORKING_SET = 53
COMPACTED_AFTER = 500
AT = 1_700_000_000.25
WORDS = (
    "the a value of is not in file line test error returns list read write call name type when and then each "
    "because module path result state count empty first last key while before after with without one two"
).split()


def log(
    records: int, *, growing: bool = False, parallel: bool = False, compacting: bool = False
) -> list[Line]:
    """The first `records` records of a log.

    With `growing` a plugin meets a new file each time, else one of a working set. With `parallel` every
    fourth step has two calls, and the second one's result comes first. With `compacting` the conversation is
    compacted after every 500 steps.
    """
    return list(islice(_lines(growing, parallel, compacting), records))


def log_of_steps(steps: int, *, growing: bool = False, parallel: bool = False) -> list[Line]:
    """As `log`, by steps."""
    lines = []
    replies = 0
    for line in _lines(growing, parallel):
        replies += b'"kind":"model_replied"' in line.data
        if replies > steps:
            break
        lines.append(line)
    return lines


def prose(rng: random.Random, size: int) -> str:
    """Words up to `size` characters."""
    text = ""
    while len(text) < size:
        text += f"{rng.choice(WORDS)} "
    return text[:size].rstrip()


def _lines(growing: bool, parallel: bool, compacting: bool = False) -> Iterator[Line]:
    rng = random.Random(1)
    seq = 0
    for kind, data, message in _beginning():
        seq += 1
        yield encode(seq, AT, "core", kind, data, message=message).line
    templates = [_templates(rng, place, parallel and place % 4 == 0) for place in range(PERIOD)]
    summary = [user(prose(rng, 1_500))]
    compacted = _template(AT, "core", "compacted", Compacted(through=BEFORE, summary=summary))
    for step in count(1):
        figures = {b"step": step, b"old": step - 201, b"slot": step if growing else step % WORKING_SET}
        last = [compacted] if compacting and step % COMPACTED_AFTER == 0 else []
        for template in (*templates[step % PERIOD], *last):
            figures[b"before"], figures[b"seq"] = seq, seq + 1
            seq += 1
            yield template._replace(seq=seq, data=template.data % figures)


def _beginning() -> list[tuple[str, Any, Message | None]]:
    plugins = [Plugin(name=name, version="1.0") for name in ("audit", "todo", "files", "spend", "idle")]
    created = TaskCreated(task="t", agent="coder", config={"cwd": "work"}, root="t", plugins=plugins)
    system = [SystemPart(text=prose(random.Random(2), 2_000), by="coder")]
    tools = [ToolPart(spec={"name": "Read", "input": {"type": "object"}}, by="fs")] * 8
    return [
        ("task_created", created, None),
        ("claimed", Claimed(fence=1, worker="w1"), None),
        ("received", Received(n=1, key="k1", item="message"), user("Please put the tests in order.")),
        (
            "context_composed",
            ContextComposed(system=system, tools=tools, parameters={"effort": "high"}),
            None,
        ),
    ]


def _templates(rng: random.Random, place: int, parallel: bool) -> list[Line]:
    """The lines of one step."""
    return [
        _template(AT + 3 * place + 0.1 * i, *record) for i, record in enumerate(_step(rng, place, parallel))
    ]


def _template(at: float, extension: str, kind: str, data: Any, message: Message | None = None) -> Line:
    """A line whose bytes have places for the figures that change."""
    owner = "" if extension == "core" else extension
    hook = "after_tool" if owner else ""
    line = encode(SEQ, at, extension, kind, data, message=message, by=owner, hook=hook).line
    template = line.data.replace(b"%", b"%%")
    for figure, name in MARKS.items():
        template = template.replace(str(figure).encode(), f"%({name})d".encode())
    if template % {name.encode(): figure for figure, name in MARKS.items()} != line.data:
        raise ValueError("a template does not give its own line back")
    return line._replace(data=template)


def _step(rng: random.Random, place: int, parallel: bool) -> Iterator[tuple[Any, ...]]:
    if place == 10:
        yield "core", "context_composed", ContextComposed(parameters={"effort": "high", "max_tokens": 8_000})
    calls = [f"call-{STEP}-0", f"call-{STEP}-1"][: 2 if parallel else 1]
    says = [Text(text=prose(rng, rng.randint(20, 100)))]
    uses = [ToolUse(id=id, name="Read", input={"path": f"src/module_{SLOT}.py"}) for id in calls]
    replied = ModelReplied(
        built_at=BEFORE,
        request=base64.urlsafe_b64encode(rng.randbytes(32)).rstrip(b"=").decode(),
        model="vendor:model-1",
        stop_reason="tool_use",
        usage=Usage(uncached=rng.randint(100, 900), cache_read=rng.randint(9_000, 90_000), output=120),
        calls=[CallRef(id=id, name="Read") for id in calls],
        ms=rng.randint(800, 9_000),
    )
    yield "core", "model_replied", replied, Message(role="assistant", content=[*says, *uses])
    if place % 5 < 2:
        allow = Opinion(by="permissions", verdict="allow", reason="reading is allowed", source="Read(src/**)")
        yield "core", "gated", Gated(call=calls[0], opinions=[allow], winner=0)
    for id in calls:
        yield "core", "tool_started", ToolStarted(call=id)
    for id in reversed(calls):
        result = ToolResult(call=id, content=[Text(text=prose(rng, rng.randint(40, 200)))])
        finished = ToolFinished(call=id, is_error=place == 7, meta={"ms": rng.randint(1, 90)})
        yield "core", "tool_finished", finished, Message(role="user", content=[result])
    yield from _of_plugins(rng, place)


def _of_plugins(rng: random.Random, place: int) -> Iterator[tuple[Any, ...]]:
    if place in {2, 9, 16}:
        kind = {2: "read", 9: "write", 16: "run"}[place]
        yield "audit", kind, {"path": f"src/module_{SLOT}.py", "bytes": rng.randint(100, 9_000), "ok": True}
    if place == 4:
        yield "todo", "added", {"id": f"t{STEP + 0}", "text": prose(rng, 40)}
    if place == 5:
        yield "todo", "finished", {"id": f"t{OLD}"}
    if place == 14:
        reminder = Message(role="user", origin="system", content=[Text(text=prose(rng, 80))])
        yield "todo", "reminded", {"open": 10}, reminder
    if place in {3, 13}:
        seen = {"path": f"src/module_{SLOT}.py", "sha256": f"{rng.getrandbits(256):064x}", "size": 4_096}
        yield "files", "seen", seen
