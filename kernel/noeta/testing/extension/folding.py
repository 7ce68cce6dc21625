"""What a plugin folds: its state is a pure and total function of the records, and can be kept."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from noeta.core.errors import told
from noeta.core.fold import Folder, fold
from noeta.core.records import CORE
from noeta.host.snapshot import encode_slice
from noeta.testing.extension.picture import mutables, picture
from noeta.testing.extension.subject import Subject

PURE = "Return a new state and leave what is given alone"
CUTS = 4


def the_initial_state_is_fresh_each_time(subject: Subject) -> None:
    """Two tasks must not share a list or a dict."""
    initial = subject.extension.initial_state
    try:
        first, second = initial(), initial()
    except Exception as error:
        subject.fail("initial_state", f"it raised {told(error)}", "Make the state from nothing")
    if picture(first) != picture(second):
        subject.fail("initial_state", "it gives another state each time", "Make the same from nothing")
    shared = {id(found) for found in mutables(first)} & {id(found) for found in mutables(second)}
    if shared:
        subject.fail("initial_state", "two tasks would share one state", "Make a new one each time")


def reduce_is_pure(subject: Subject) -> None:
    """It changes neither the state nor the data it is given, and gives the same for the same."""
    faults: list[str] = []
    reduce = subject.extension.reduce

    def watched(state: Any, kind: str, data: Any) -> Any:
        before = picture(state), picture(data)
        once = reduce(state, kind, data)
        after = picture(state), picture(data)
        if after != before:
            faults.append(f"it changes the {'data' if after[0] == before[0] else 'state'} it is given")
        elif picture(reduce(state, kind, data)) != picture(once):
            faults.append("it gives another state for the same record")
        else:
            return once
        faults[-1] += f" (kind {kind!r})"
        raise ValueError(faults[-1])

    if subject.reducer.reduce is None:
        return
    watching = msgspec.structs.replace(subject.reducer, reduce=watched)
    for log in subject.logs:
        log.fold([watching])
        if faults:
            subject.fail("reduce", faults[0], PURE)


def reduce_is_total(subject: Subject) -> None:
    """No record stops it: of a kind it declares, of a later version, of another plugin, or an erasure."""
    for kind in subject.kinds:
        if not any((name, known) == (subject.name, kind) for name, known, _ in subject.stock):
            way_out = "Give a record of it in samples"
            subject.fail(f"kind {kind!r}", "no data of its type can be drawn to try it with", way_out)
    for log in subject.logs:
        problem = log.fold([subject.reducer]).broken.get(subject.name)
        if problem and problem.why.startswith("reduce"):
            subject.fail("reduce", problem.why.removeprefix("reduce "), "Pass over what does not fit")


def continue_state_is_pure_and_total(subject: Subject) -> None:
    """Any state can be continued, by a function that changes nothing, and `reduce` goes on from there."""
    carry = subject.extension.continue_state
    for log in subject.logs:
        state = log.fold([subject.reducer])
        if subject.name in state.broken:
            continue
        given = state.states[subject.name]
        before = picture(given)
        try:
            once, twice = carry(given), carry(given)
        except Exception as error:
            subject.fail("continue_state", f"it raised {told(error)}", "Take any state that reduce gives")
        if picture(given) != before:
            subject.fail("continue_state", "it changes the state it is given", PURE)
        if picture(once) != picture(twice):
            subject.fail("continue_state", "it gives another state each time", PURE)
        folder = Folder([subject.reducer], partial=True)
        state.states[subject.name] = deepcopy(once)
        for record in log.records:
            folder.apply(state, record)
        if problem := state.broken.get(subject.name):
            why = f"reduce cannot go on from it: {problem.why}"
            subject.fail("continue_state", why, "Return a state of the form that initial_state has")


def its_state_can_be_kept(subject: Subject) -> None:
    """Its state goes through JSON and comes back equal, so that a snapshot may hold it."""
    for state in subject.states():
        value = state.states[subject.name]
        if encode_slice(subject.reducer, value) is None:
            why = f"a {type(value).__name__} does not come back from JSON as it was"
            subject.fail("state", why, "Declare its type as State, or use lists and dicts with text keys")


def a_kept_state_folds_on_as_if_it_had_never_been_put_away(subject: Subject) -> None:
    """A prefix of a log, put into a snapshot and taken out, then folded on, is the fold of the whole."""
    reducer = subject.reducer
    for log in subject.logs:
        whole = fold(log.records, [reducer])
        for cut in range(1, len(log.lines), max(len(log.lines) // CUTS, 1)):
            state = fold(log.records[:cut], [reducer])
            data = encode_slice(reducer, state.states[subject.name])
            if data is None or subject.name in whole.broken:
                continue
            kept = msgspec.json.decode(data, type=Any if reducer.state is None else reducer.state)
            state.states[subject.name] = kept
            state = fold(log.records[cut:], [reducer], state)
            if picture(state.states[subject.name]) != picture(whole.states[subject.name]):
                why = "after a snapshot it is another than without"
                subject.fail("state", why, "Keep in it all that reduce looks at, in fields that are stored")


def the_samples_still_fold(subject: Subject) -> None:
    """Records of earlier versions decode as today's types, and fold without breaking the state."""
    extension = subject.extension
    for i, envelope in enumerate(subject.old):
        place = f"sample {i}"
        if envelope is None:
            subject.fail(place, "it is no record", "Give a line of a log, or a Recorded")
        if envelope.extension not in (subject.name, *extension.folds):
            why = f"it is a record of {envelope.extension!r}, which this plugin does not fold"
            subject.fail(place, why, "Leave it out, or add the name to folds")
        state = subject.folded([envelope])
        if envelope.extension != CORE and state.skipped:
            why = f"kind {envelope.kind!r}: {next(iter(state.skipped.values())).why}"
            subject.fail(place, why, "Keep old kinds and fields; give new fields a default")
        if (problem := state.broken.get(subject.name)) and problem.seq:
            subject.fail(place, problem.why, "Let reduce take old records as they are")
