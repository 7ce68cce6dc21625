"""The records of the trivial step: their bytes, and what encoding and proving them costs.

The step is the one that frameworks are compared by: a call with an argument of 100 bytes, a result of 200,
and 100 bytes of text beside the call.
"""

from __future__ import annotations

from typing import Any

import msgspec
from measure import Value, exact, fresh, ratios, rounds, spread

from noeta.core.codec import Encoded, encode
from noeta.core.messages import Message, Text, ToolResult, ToolUse, Usage
from noeta.core.records import CallRef, ModelReplied, ToolFinished, ToolStarted

AT = 1_700_000_000.25
STEP = 5_000


class Whole(msgspec.Struct, omit_defaults=True):
    """A record with everything in place, which one call encodes."""

    seq: int
    at: float
    extension: str
    kind: str
    data: Any
    message: Message | None = None


def step() -> list[Whole]:
    """The three records of one step in the middle of a long turn."""
    id = f"call-{STEP}-0"
    replied = ModelReplied(
        built_at=3 * STEP,
        request="0123456789abcdef" * 2 + "0123456789_",
        model="vendor:model-1",
        stop_reason="tool_use",
        usage=Usage(uncached=300, cache_read=60_000, output=120),
        calls=[CallRef(id=id, name="work")],
        ms=2_000,
    )
    says = [Text(text="z" * 100), ToolUse(id=id, name="work", input={"text": "x" * 100})]
    result = ToolResult(call=id, content=[Text(text="y" * 200)])
    records: list[tuple[Any, Message | None]] = [
        (replied, Message(role="assistant", content=[*says])),
        (ToolStarted(call=id), None),
        (ToolFinished(call=id), Message(role="user", content=[result])),
    ]
    return [
        Whole(3 * STEP + i, AT, "core", data.kind, data, message)
        for i, (data, message) in enumerate(records, 1)
    ]


def _encode(record: Whole) -> Encoded:
    return encode(record.seq, record.at, record.extension, record.kind, record.data, message=record.message)


def one() -> dict[str, list[float]]:
    """CPU µs to encode a record, by kind: one value a round."""
    bare = msgspec.json.Encoder().encode
    taken = {}
    plugin = Whole(1, AT, "audit", "read", {"path": "src/module_1.py", "bytes": 1_234, "ok": True})
    for record in (*step(), plugin):
        if record.extension == "core" and bare(record) != _encode(record).line.data:
            raise ValueError("the two do not encode the same")
        calls = {"encode": lambda r=record: _encode(r), "bare": lambda r=record: bare(r)}
        for name, values in rounds(calls, 9, loops=3_000).items():
            taken[f"{record.kind}.{name}"] = [value * 1e6 for value in values]
    return taken


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    lines = [_encode(record).line.data for record in step()]
    sizes = ", ".join(str(len(line)) for line in lines)
    values = [
        Value("bytes", "bytes of a trivial step's lines", exact(sum(map(len, lines))), "B", f"{sizes} B")
    ]
    taken = fresh("records", "one")
    for kind in ("model_replied", "tool_started", "tool_finished", "read"):
        encoded, bare = taken[f"{kind}.encode"], taken[f"{kind}.bare"]
        of = "a plugin's record" if kind == "read" else kind
        values += [
            Value(f"encode.{kind}", f"encode and prove {of}", spread(encoded), "µs"),
            Value(f"over_bare.{kind}", "the same, over msgspec encoding it", ratios(encoded, bare), "x"),
        ]
    return values
