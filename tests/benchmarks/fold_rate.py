"""How fast a log folds, from bytes in memory, against decoding the same bytes; and whether that is linear."""

from __future__ import annotations

import gc

import decoding
from logs import log
from measure import Spread, Value, exact, fresh, ratios, rounds, spread
from plugins import PLUGINS

from noeta.core.codec import Line, decode
from noeta.core.fold import fold
from noeta.core.state import TaskState

SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK = (1_000, 10_000)


def _fold(lines: list[Line]) -> TaskState:
    return fold(map(decode, lines), PLUGINS)


def _fold_and_read(lines: list[Line]) -> None:
    for item in _fold(lines).conversation:
        _ = item.message


def one(size: int) -> dict[str, list[float]]:
    """CPU µs per record of every way through a log of this size, a value a round."""
    lines = log(size)
    # The lines stand for what a store hands over page by page; the collector need not look at all of them.
    gc.collect()
    gc.freeze()
    one_pass = decoding.one_pass()
    calls = {
        "full": lambda: decoding.full(lines),
        "fold": lambda: _fold(lines),
        "one_pass": lambda: one_pass(lines),
        "envelopes": lambda: decoding.envelopes(lines),
        "read": lambda: _fold_and_read(lines),
    }
    # The longest log is there for the shape of the curve alone, and takes a while.
    longest = size >= 1_000_000
    if longest:
        calls = {name: calls[name] for name in ("full", "fold")}
    taken = rounds(calls, 3 if longest else 5, loops=max(1, 20_000 // size), warm=not longest)
    return {name: [seconds / size * 1e6 for seconds in values] for name, values in taken.items()}


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    sizes = QUICK if quick else SIZES
    taken = {size: fresh("fold_rate", "one", size) for size in sizes}
    names = {
        "fold": "fold with five plugins",
        "read": "the same, then every message decoded",
        "full": "decoding alone: envelope, payload, message",
        "one_pass": "decoding alone, all in one call",
        "envelopes": "decoding alone, envelopes only",
    }
    values = [
        Value(f"{name}.{size}", f"{words}, {size:,} records", spread(taken[size][name]), "µs/record")
        for name, words in names.items()
        for size in sizes
        if name in taken[size]
    ]
    at = taken[100_000 if 100_000 in taken else sizes[-1]]

    def share(key: str, of: str, fold_: str, under: str) -> None:
        values.append(Value(key, of, ratios(at[under], at[fold_]).times(100), "%"))

    share("rate", "rate of the fold, of decoding everything", "fold", "full")
    share("rate_one_pass", "rate of the fold, of decoding everything in one call", "fold", "one_pass")
    share("rate_envelopes", "rate of the fold, of decoding envelopes", "fold", "envelopes")
    share("rate_read", "rate of the fold and all messages, of decoding everything", "read", "full")
    return [*values, *(_linear(taken, sizes[-1], small) for small in (10_000, 1_000))]


def _linear(taken: dict[int, dict[str, list[float]]], large: int, small: int) -> Value:
    a, b = spread(taken[large]["fold"]), spread(taken[small]["fold"])
    # The two were not taken in one round, so the widest that the rounds allow is told.
    value = exact(1.0) if large == small else Spread(a.median / b.median, a.low / b.high, a.high / b.low)
    return Value(f"linear_{small}", f"cost per record, {large:,} records over {small:,}", value, "x")
