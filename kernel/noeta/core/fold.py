"""The fold: records in, the state of a task out. Pure and total.

Whatever a log holds, folding it gives a state: a plugin that is absent, raises or wrote nonsense costs its
own state at most, and a damaged core record leaves the task readable. Nothing here reads a clock or a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from noeta.core.codec import UNREADABLE, Envelope, compacted
from noeta.core.errors import told
from noeta.core.facts import CORE_FOLD
from noeta.core.records import CORE, ERASED_KIND, STONES, VERSION
from noeta.core.state import Problem, Skipped, TaskState


class Reducer(Struct, frozen=True, kw_only=True):
    """How one plugin folds its records.

    `reduce(state, kind, data)` is called for the plugin's records and those of the names in `folds`; it
    returns the next state and never changes the one it got. None means that the plugin keeps no state.
    `types` maps its own kinds to what their data decodes as; kinds not in it are of a later version and
    passed over. With `types` None data comes as builtins. `state` is the declared type of the state, if any,
    and `fingerprint` names the code and settings that computed it.
    """

    name: str
    initial: Callable[[], Any] = lambda: None
    reduce: Callable[[Any, str, Any], Any] | None = None
    continued: Callable[[Any], Any] = lambda state: state
    folds: tuple[str, ...] = ()
    types: Mapping[str, Any] | None = None
    state: Any = None
    fingerprint: str = ""


def fold(
    records: Iterable[Envelope], reducers: Sequence[Reducer] = (), after: TaskState | None = None
) -> TaskState:
    """The state after `records`: a task's log from its beginning (with the history it continues), or what
    follows the records that `after` was folded from. `after` is not changed.
    """
    folder = Folder(reducers)
    state = folder.start() if after is None else after.copy()
    for record in records:
        folder.apply(state, record)
    return state


class _Target(NamedTuple):
    """One plugin that folds records of one extension."""

    name: str
    reduce: Callable[[Any, str, Any], Any]
    decoders: Mapping[str, Callable[[Raw], Any]] | None


class Folder:
    """A fold prepared once for a set of plugins, and applied record by record.

    With `partial` it is given some of a log's records, so that gaps are no fault.
    """

    def __init__(self, reducers: Sequence[Reducer], *, partial: bool = False) -> None:
        self.reducers: tuple[Reducer, ...] = tuple(reducers)
        names = [reducer.name for reducer in self.reducers]
        if len({*names, CORE}) <= len(names):
            raise ValueError(f"reducers need names of their own, and not {CORE!r}: {', '.join(names)}")
        self._partial = partial
        self._targets: dict[str, list[_Target]] = {name: [] for name in names}
        for reducer in self.reducers:
            if reducer.reduce is not None:
                for extension in dict.fromkeys((reducer.name, *reducer.folds)):
                    types = reducer.types if extension == reducer.name else None
                    decoders = types and {k: msgspec.json.Decoder(t).decode for k, t in types.items()}
                    target = _Target(reducer.name, reducer.reduce, decoders)
                    self._targets.setdefault(extension, []).append(target)
        self._of_core = [(name, reduce) for name, reduce, _ in self._targets.get(CORE, ())]
        self._all = [(r.name, r.reduce) for r in self.reducers if r.reduce is not None]

    def start(self) -> TaskState:
        """The state before any record."""
        state = TaskState()
        for reducer in self.reducers:
            try:
                state.states[reducer.name] = reducer.initial()
            except BaseException as error:
                state.states[reducer.name] = None
                state.broken[reducer.name] = _broken(0, "initial_state", error)
        return state

    def apply(self, state: TaskState, record: Envelope) -> None:
        """Fold one record into `state`. Never raises."""
        seq = record.seq
        if seq != state.seq + 1 and not self._partial and state.corrupt is None:
            state.corrupt = Problem(seq=seq, why=f"the record after seq {state.seq} is missing")
        state.seq, state.at = seq, record.at
        if record.extension != CORE:
            self._apply_plugin(state, record)
            return
        kind = record.kind
        known = CORE_FOLD.get(kind)
        if known is None or record.v > VERSION:
            _set_aside(state, record)
            return
        if record.erased and kind not in STONES:
            return
        decode, change = known
        try:
            data = decode(record.data)
            if change is not None:
                change(state, record, data)
        except (ValueError, RecursionError) as error:
            state.corrupt = state.corrupt or Problem(seq=seq, why=f"{kind}: {error}")
            return
        finally:
            if record.message:
                # Also when the message has not joined the conversation, so that no run reaches across it.
                state.conversation.last_seq = seq
        if kind in _SPECIAL:
            if kind == "erased":
                for name, reduce in self._all:
                    _reduce(state, name, reduce, ERASED_KIND, list(data.seqs))
                return
            if kind == "task_created" and data.history_from:
                self._continue(state)
            if kind == "compacted":
                data = compacted(data)
        states, broken = state.states, state.broken
        # What the kernel keeps of a record, no plugin may change.
        apart = kind in _REMEMBERED
        for name, reduce in self._of_core:
            # As `_reduce`: a call a plugin and record more would cost as much as most of them do.
            if name not in broken:
                try:
                    states[name] = reduce(states[name], kind, decode(record.data) if apart else data)
                except BaseException as error:
                    broken[name] = _broken(seq, f"reduce of {kind}", error)

    def _apply_plugin(self, state: TaskState, record: Envelope) -> None:
        if record.message:
            state.conversation.add(record.seq, bytes(record.message))
        targets = self._targets.get(record.extension)
        skipped = "" if targets is not None else "no plugin of this task folds it"
        for name, reduce, decoders in targets or () if not record.erased else ():
            decode = _untyped if decoders is None else decoders.get(record.kind)
            if decode is None:
                skipped = f"plugin {name!r} does not know this kind"
                continue
            try:
                data = decode(record.data)
            except Exception as error:
                skipped = f"plugin {name!r} cannot read it: {told(error)}"
                continue
            _reduce(state, name, reduce, record.kind, data)
        if skipped:
            _skip(state, record, skipped)

    def _continue(self, state: TaskState) -> None:
        for reducer in self.reducers:
            try:
                state.states[reducer.name] = reducer.continued(state.states[reducer.name])
            except BaseException as error:
                state.broken[reducer.name] = _broken(state.seq, "continue_state", error)


_untyped = msgspec.json.Decoder().decode
_SPECIAL = frozenset({"compacted", "erased", "task_created"})
_REMEMBERED = frozenset({"answered", "child_ended", "claimed", "task_created", "tool_parked"})


def _reduce(state: TaskState, name: str, reduce: Any, kind: str, data: Any) -> None:
    if name in state.broken:
        return
    try:
        state.states[name] = reduce(state.states[name], kind, data)
    except BaseException as error:
        state.broken[name] = _broken(state.seq, f"reduce of {kind}", error)


def _broken(seq: int, where: str, error: BaseException) -> Problem:
    """Why a plugin's state is frozen. Nothing waits here, so whatever its code raises is its own fault, an
    exit and a cancel too; but for what a person's key raised.
    """
    if isinstance(error, KeyboardInterrupt):
        raise error
    return Problem(seq=seq, why=f"{where}: {told(error)}")


def _set_aside(state: TaskState, record: Envelope) -> None:
    """Note a core record that this version cannot use."""
    if record.message:
        state.conversation.last_seq = record.seq
    if record.kind == UNREADABLE:
        state.corrupt = state.corrupt or Problem(seq=record.seq, why=str(_untyped(record.data)))
    else:
        state.newer = state.newer or Problem(seq=record.seq, why=f"core kind {record.kind!r} is newer")


def _skip(state: TaskState, record: Envelope, why: str) -> None:
    name = f"{record.extension}.{record.kind}"
    was = state.skipped.get(name) or Skipped(count=0, first=record.seq, why=why)
    state.skipped[name] = Skipped(count=was.count + 1, first=was.first, why=was.why)
