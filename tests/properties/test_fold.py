"""The fold is total and pure, whatever a log holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.codec import Envelope, Line, decode, recorded
from noeta.core.fold import Folder, Reducer, fold
from noeta.core.records import ERASED_KIND
from noeta.core.state import Core, TaskState
from noeta.host.erasure import tombstone
from noeta.testing.logs import damaged_logs, logs

SAMPLE = Path(__file__).parents[1] / "kernel" / "samples" / "v0_1.jsonl"


class Noted(msgspec.Struct, frozen=True):
    a: int


def count(state: dict[str, int], kind: str, data: Any) -> dict[str, int]:
    return {**state, kind: state.get(kind, 0) + 1}


def remember(state: list[Any], kind: str, data: Any) -> list[Any]:
    return [kind, *data] if kind == ERASED_KIND else [*state, kind]


def fail_on_done(state: int, kind: str, data: Any) -> int:
    if kind == "done":
        raise KeyError(kind)
    return state + 1


REDUCERS = {
    "alpha": Reducer(name="alpha", initial=dict, reduce=count, folds=("beta", "core")),
    "beta": Reducer(name="beta", initial=list, reduce=remember),
    "typed": Reducer(name="beta", initial=list, reduce=remember, types={"noted": Noted}),
    "raising": Reducer(name="gone", initial=int, reduce=fail_on_done),
    "unborn": Reducer(name="unborn", initial=lambda: {}["x"], reduce=count, folds=("alpha",)),
}
PLUGIN_SETS = st.sampled_from(
    [(), ("alpha",), ("alpha", "beta"), ("beta", "alpha", "raising"), ("typed", "unborn")]
)


def reducers(names: tuple[str, ...]) -> list[Reducer]:
    return [REDUCERS[name] for name in names]


def envelopes(lines: list[Line]) -> list[Envelope]:
    return [decode(line) for line in lines]


def core_part(state: TaskState) -> list[Any]:
    return [getattr(state, name) for name in Core.__struct_fields__ if name != "skipped"]


@given(logs() | damaged_logs(), PLUGIN_SETS, st.data())
def test_every_prefix_of_every_log_folds_and_splitting_it_changes_nothing(
    lines: list[Line], names: tuple[str, ...], data: st.DataObject
) -> None:
    records = envelopes(lines)
    cut = data.draw(st.integers(0, len(records)))
    head = fold(records[:cut], reducers(names))
    before = msgspec.json.encode(core_part(head)), list(head.conversation)
    whole = fold(records[cut:], reducers(names), head)
    assert whole == fold(records, reducers(names))
    assert (msgspec.json.encode(core_part(head)), list(head.conversation)) == before


@given(logs() | damaged_logs(), PLUGIN_SETS)
def test_core_state_does_not_depend_on_the_plugins(lines: list[Line], names: tuple[str, ...]) -> None:
    records = envelopes(lines)
    bare, full = fold(records), fold(records, reducers(names))
    assert core_part(full) == core_part(bare)
    assert full.conversation == bare.conversation


@given(logs())
def test_a_sound_log_folds_without_a_complaint(lines: list[Line]) -> None:
    state = fold(envelopes(lines), reducers(("alpha", "beta")))
    assert (state.corrupt, state.newer, state.broken) == (None, None, {})
    assert set(state.skipped) <= {"gone.noted", "gone.done", "gone.later"}
    assert state.seq == len(lines)


@given(logs())
def test_a_raising_plugin_costs_its_own_state_alone(lines: list[Line]) -> None:
    records = envelopes(lines)
    state = fold(records, reducers(("raising", "alpha", "unborn")))
    alone = fold(records, reducers(("alpha",)))
    assert state.states["alpha"] == alone.states["alpha"]
    mine = [record for record in records if record.extension == "gone" or record.kind == "erased"]
    done = next((i for i, record in enumerate(mine) if record.kind == "done"), None)
    assert state.states["gone"] == (len(mine) if done is None else done)
    assert ("gone" in state.broken) == (done is not None)
    assert state.broken["unborn"].why.startswith("initial_state: KeyError")


@given(logs())
def test_no_item_stands_between_a_call_and_its_result(lines: list[Line]) -> None:
    state = fold(envelopes(lines))
    messages = [item.message for item in state.conversation]
    for i, message in enumerate(messages):
        calls = [call.id for call in message.calls]
        results = []
        for later in messages[i + 1 : i + 1 + len(calls)]:
            results += [block.call for block in later.content if block.__struct_config__.tag == "tool_result"]
        finished = [id for id in calls if id not in state.calls or state.calls[id].status == "done"]
        assert results[: len(finished)] == finished


@given(logs())
def test_a_log_with_tombstones_folds_to_the_state_that_the_erasure_left(lines: list[Line]) -> None:
    records = envelopes(lines)
    facts = [recorded(record).data for record in records if record.kind == "erased"]
    gone = {seq for fact in facts for seq in (*fact.seqs, *fact.along)}
    purged = [decode(tombstone(record)[0]) if record.seq in gone else record for record in records]
    before, after = fold(records), fold(purged)
    assert core_part(after) == core_part(before)
    assert after.conversation == before.conversation
    again = [decode(tombstone(record)[0]) if record.seq in gone else record for record in purged]
    assert again == purged


@given(logs(max_steps=60), st.data())
def test_a_copy_and_its_origin_grow_apart(lines: list[Line], data: st.DataObject) -> None:
    folder = Folder(())
    records = envelopes(lines)
    cut = data.draw(st.integers(0, len(records)))
    state = fold(records[:cut])
    copies = []
    for record in records[cut:]:
        copies.append((state.copy(), state.seq))
        folder.apply(state, record)
    for copy, seq in copies:
        assert copy == fold(records[:seq])


@given(damaged_logs())
def test_a_damaged_core_record_is_named_and_a_newer_one_leaves_the_task_readable(lines: list[Line]) -> None:
    state = fold(envelopes(lines))
    expected = list(range(1, len(lines) + 1))
    if [line.seq for line in lines] != expected:
        assert state.corrupt is not None
    for line in lines:
        record = decode(line)
        if record.kind == "of_tomorrow" or record.v > 1:
            assert state.newer is not None or record.extension != "core"
        if record.kind == "unreadable":
            assert state.corrupt is not None
            assert state.corrupt.seq <= record.seq


PROGRAM = """
import pathlib, sys
from noeta.core.codec import Line, decode
from noeta.core.fold import Reducer, fold
def names(state, kind, data):
    return [*state, kind, sorted(data) if isinstance(data, dict) else data]
lines = pathlib.Path(sys.argv[1]).read_bytes().split(b"\\n")[:-1]
records = [decode(Line(i, line)) for i, line in enumerate(lines, 1)]
state = fold(records, [Reducer(name="alpha", initial=list, reduce=names)])
print(state.states, state.seq, list(state.conversation), sorted(state.calls), state.usage, state.skipped)
"""


def test_folding_does_not_depend_on_the_process_or_its_hash_seed() -> None:
    outputs = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", PROGRAM, str(SAMPLE)]
        outputs.add(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    assert len(outputs) == 1
    assert b"noted" in outputs.pop()
