"""What a plugin adds to the fold of a record: one that the record does not concern, and one that it does."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import msgspec
from logs import log
from measure import Value, fresh, ratios, rounds, spread
from plugins import PLUGINS, fillers

from noeta.core.codec import Line, decode
from noeta.core.fold import Folder, Reducer

IDLE = 30
BUSY = 10


def _fold(lines: Sequence[Line], reducers: Sequence[Reducer]) -> None:
    folder = Folder(reducers)
    state = folder.start()
    for line in lines:
        folder.apply(state, decode(line))


def _calls(reducers: Sequence[Reducer], records: int) -> None:
    """The work of the fillers alone: that many calls by the bound name, nothing around them."""
    reduces = [reducer.reduce for reducer in reducers if reducer.reduce is not None]
    state: object = None
    for _ in range(records):
        for reduce in reduces:
            state = reduce(state, "kind", None)


def one(records: int) -> dict[str, list[float]]:
    """CPU µs that one more plugin adds to a record, a value a round."""
    lines = log(records)
    of_core = sum(msgspec.json.decode(line.data)["extension"] == "core" for line in lines)
    gc.collect()
    gc.freeze()
    one_, some = fillers(1, "core"), fillers(1 + BUSY, "core")
    calls = {
        "plain": lambda: _fold(lines, PLUGINS),
        "idle": lambda: _fold(lines, (*PLUGINS, *fillers(IDLE))),
        "one": lambda: _fold(lines, one_),
        "some": lambda: _fold(lines, some),
        "work": lambda: _calls(fillers(BUSY), of_core),
    }
    taken = rounds(calls, 9, loops=max(1, 20_000 // records))
    idle = [(b - a) / records / IDLE for a, b in zip(taken["plain"], taken["idle"], strict=True)]
    busy = [
        (b - a - work) / of_core / BUSY
        for a, b, work in zip(taken["one"], taken["some"], taken["work"], strict=True)
    ]
    work = [seconds / of_core / BUSY for seconds in taken["work"]]
    return {name: [x * 1e6 for x in xs] for name, xs in {"idle": idle, "busy": busy, "work": work}.items()}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    taken = fresh("dispatch", "one", 10_000 if quick else 50_000)
    idle, busy, work = (spread(taken[name]) for name in ("idle", "busy", "work"))
    ratio = ratios(taken["busy"], taken["work"])
    return [
        Value("idle", f"a plugin without records of its own, by adding {IDLE}", idle, "µs/record"),
        Value("busy", "the way to a plugin that folds the record, without its work", busy, "µs/record"),
        Value("work", "the bare call of a reduce that does nothing", work, "µs"),
        Value("busy_ratio", "the way to a plugin, in bare calls", ratio, "x"),
    ]
