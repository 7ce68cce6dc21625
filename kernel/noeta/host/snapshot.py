"""Snapshots: a cache of a fold, so that a long task is picked up without folding its whole log.

A snapshot repeats no message. It has one part for the kernel (its scalars, and the conversation as runs of
seqs) and one part a plugin. Each part names the code that made it; a part of other code is ignored, and that
plugin alone is folded again. Deleting every snapshot changes nothing but time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from noeta.core.codec import ABSENT, DECODERS, CompactedParts, Envelope, Line, decode, with_body
from noeta.core.conversation import Conversation, Item
from noeta.core.fold import Folder, Reducer
from noeta.core.log import SnapshotPart
from noeta.core.records import CORE, ERASED_KIND
from noeta.core.state import Core, TaskState
from noeta.toolkit.history import history, messages
from noeta.toolkit.store import Store

CORE_FINGERPRINT = "3"
"""Changes with every change of what the kernel's part holds or means."""
MIN_RECORDS = 200
SHARE = 0.1
"""Snapshots may cost this share of the bytes of the log."""
READ_ACROSS = 1_000
"""Runs this many records apart or less are read in one go."""


class Run(NamedTuple):
    """Neighbours among the settled items, by their records.

    With `part` 0: all messages recorded from seq `first` to seq `last`. Else the parts `part` to `last` of
    the compaction at seq `first`.
    """

    first: int
    last: int
    part: int = 0


class Runs:
    """The settled items of a conversation in short, brought up to date when asked for."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        # Runs of the first items of this list, and of how many.
        self._settled: list[Item] = []
        self._done = 0

    def of(self, conversation: Conversation) -> list[Run]:
        """The runs of this conversation; quick when it is the one asked for last, grown since."""
        if conversation.settled is not self._settled or conversation.length < self._done:
            self._runs, self._settled, self._done = [], conversation.settled, 0
        runs = self._runs
        for item in conversation.settled[self._done : conversation.length]:
            last = runs[-1] if runs else None
            if last and not item.part and not last.part and item.before == last.last:
                runs[-1] = Run(last.first, item.seq)
            elif last and item.part and last.part and (item.seq, item.part) == (last.first, last.last + 1):
                runs[-1] = Run(last.first, item.part, last.part)
            else:
                runs.append(Run(item.seq, item.part or item.seq, item.part))
        self._done = conversation.length
        return list(runs)


class LineItem(Item, frozen=True, gc=False):
    """An item whose `raw` is the line of its record.

    A task is picked up with thousands of items, so what can be done later is.
    """

    @property
    def data(self) -> bytes:
        """The message, encoded; empty when the line is damaged."""
        try:
            said = _said(self.raw)
        except (ValueError, RecursionError):
            return b""
        return bytes(said.message) if said.seq == self.seq and not said.erased else b""


class _Said(Struct, gc=False):
    """What of a line tells its message. Reading no more takes half the time."""

    seq: int
    message: Raw = ABSENT
    erased: bool = False


_said = msgspec.json.Decoder(_Said).decode


class _CorePart(Struct, frozen=True, kw_only=True):
    """The kernel's part.

    `runs` are the `settled` items of the conversation in short. `slices` says which part of each plugin, by
    seq, is the plugin's state at this seq.
    """

    scalars: Core
    runs: list[Run]
    settled: int
    tail: list[int]
    placed: list[int]
    last_seq: int
    slices: dict[str, int]
    extensions: list[str]


_encode = msgspec.json.Encoder().encode
_core_part = msgspec.json.Decoder(_CorePart).decode


class Snapshots:
    """Loads the state of one task, and takes its snapshots while its log grows."""

    def __init__(self, store: Store, task: str, folder: Folder) -> None:
        self._store, self._task, self._folder = store, task, folder
        # For each plugin: the state whose slice is stored, and the seq of that slice.
        self._slices: dict[str, tuple[Any, int]] = {}
        self._runs = Runs()
        self._cost = self._records = self._bytes = 0

    async def load(self) -> TaskState:
        """The state after the task's last record, from a snapshot and the log behind it if possible."""
        state, apply = await self._restored() or self._folder.start(), self._folder.apply
        async for lines in history(self._store, self._task, state.seq):
            self.grown(lines)
            for line in lines:
                envelope = decode(line)
                apply(state, await self._filled(envelope) if envelope.blob else envelope)
        return state

    def grown(self, lines: Sequence[Line]) -> None:
        """Count lines that were appended."""
        self._records += len(lines)
        self._bytes += sum([len(line.data) for line in lines])

    @property
    def due(self) -> bool:
        """Whether the log has grown enough to pay for a snapshot as large as the last one."""
        return self._records >= MIN_RECORDS and self._cost <= SHARE * self._bytes

    def take(self, state: TaskState) -> list[SnapshotPart]:
        """The parts that changed since the last snapshot, for `Store.append`."""
        parts = []
        for reducer in self._folder.reducers:
            value = state.states[reducer.name]
            known = self._slices.pop(reducer.name, None)
            if reducer.name in state.broken:
                continue
            if known is None or known[0] is not value:
                data = encode_slice(reducer, value)
                if data is None:
                    continue
                part = SnapshotPart(
                    name=reducer.name, fingerprint=reducer.fingerprint, seq=state.seq, data=data
                )
                parts.append(part)
                known = (value, state.seq)
            self._slices[reducer.name] = known
        conversation = state.conversation
        core = _CorePart(
            scalars=Core(**{name: getattr(state, name) for name in Core.__struct_fields__}),
            runs=self._runs.of(conversation),
            settled=conversation.length,
            # A compaction puts what it makes among the settled items, so no item of the tail has a part.
            tail=[item.seq for item in conversation.tail],
            placed=list(conversation.placed),
            last_seq=conversation.last_seq,
            slices={name: seq for name, (_, seq) in self._slices.items()},
            extensions=_known(self._folder),
        )
        parts.append(SnapshotPart(name=CORE, fingerprint=CORE_FINGERPRINT, seq=state.seq, data=_encode(core)))
        self._cost = sum(len(part.data) for part in parts)
        self._records = self._bytes = 0
        return parts

    async def _restored(self) -> TaskState | None:
        parts = {part.name: part for part in await self._store.snapshot(self._task)}
        core = parts.get(CORE)
        if core is None or core.fingerprint != CORE_FINGERPRINT:
            return None
        try:
            kept = _core_part(core.data)
        except ValueError:
            return None
        if kept.extensions != _known(self._folder):
            # What was passed over is counted by name, and other plugins pass over other records.
            return None
        conversation = await self._conversation(kept)
        if conversation is None:
            return None
        state = TaskState(**{name: getattr(kept.scalars, name) for name in Core.__struct_fields__})
        state.conversation = conversation
        for reducer in self._folder.reducers:
            part = parts.get(reducer.name)
            fresh = (kept.slices.get(reducer.name), reducer.fingerprint)
            if (
                part is None
                or (part.seq, part.fingerprint) != fresh
                or not (value := _decoded(reducer, part.data))
            ):
                if not await self._refold(state, reducer):
                    return None
            else:
                state.states[reducer.name] = value[0]
                self._slices[reducer.name] = (value[0], part.seq)
        self._cost = len(core.data)
        return state

    async def _refold(self, state: TaskState, reducer: Reducer) -> bool:
        """Fold one plugin's records up to where `state` is, into `state`; False when one cannot be read."""
        folder = Folder([reducer], partial=True)
        slice_ = folder.start()
        names = [f"{CORE}.task_created"]
        if reducer.reduce is not None:
            names += [reducer.name, *reducer.folds, ERASED_KIND]
        async for lines in history(self._store, self._task, through=state.seq, only=names):
            for line in lines:
                envelope = decode(line)
                folder.apply(slice_, await self._filled(envelope) if envelope.blob else envelope)
        if slice_.corrupt is not None:
            return False
        state.states[reducer.name] = slice_.states[reducer.name]
        state.broken.update(slice_.broken)
        mine = f"{reducer.name}."
        state.skipped = {k: v for k, v in state.skipped.items() if not k.startswith(mine)}
        state.skipped.update((k, v) for k, v in slice_.skipped.items() if k.startswith(mine))
        return True

    async def _conversation(self, kept: _CorePart) -> Conversation | None:
        """The conversation that `kept` describes, its messages still in their lines.

        None when the log does not hold it, since something is damaged or gone: folding all of it says what.
        """
        spans = [(run.first, run.last) for run in kept.runs if not run.part]
        seqs: list[int] = []
        items: list[Item] = []
        apart: set[int] = set()
        for first, last in _joined([*spans, *((seq, seq) for seq in kept.tail)]):
            async with aclosing(messages(self._store, self._task, first - 1, last)) as pages:
                async for page in pages:
                    numbers = [seq for seq, _ in page]
                    lines = [line for _, line in page]
                    seqs += numbers
                    items += map(LineItem, numbers, lines, (-1, *numbers))
                    # Most lines end with their message. That of the others may lie in a blob.
                    apart.update(seq for seq, line in page if line[-2:] != b"}}")
        try:
            made = {seq: await self._made(seq) for seq in {run.first for run in kept.runs if run.part}}
            settled: list[Item] = []
            for run in kept.runs:
                if run.part:
                    parts = range(run.part, run.last + 1)
                    settled.extend(Item(run.first, made[run.first][part - 1], -1, part) for part in parts)
                else:
                    settled += items[bisect_left(seqs, run.first) : bisect_right(seqs, run.last)]
            tail = [items[bisect_left(seqs, seq)] for seq in kept.tail]
            if apart:
                settled = [await self._apart(item) if item.seq in apart else item for item in settled]
                tail = [await self._apart(item) if item.seq in apart else item for item in tail]
        except LookupError:
            return None
        if len(settled) != kept.settled or [item.seq for item in tail] != kept.tail:
            return None
        return Conversation(settled, len(settled), tail, tuple(kept.placed), kept.last_seq)

    async def _apart(self, item: Item) -> Item:
        """`item` with its message alone, from its blob if it lies there. Raises `LookupError` without one."""
        envelope = await self._filled(decode(Line(item.seq, item.raw)))
        if not envelope.message:
            raise LookupError(item.seq)
        return Item(item.seq, bytes(envelope.message), item.before)

    async def _made(self, seq: int) -> list[bytes]:
        """The messages that the compaction at `seq` made."""
        found: list[bytes] = []
        async for lines in history(self._store, self._task, seq - 1, through=seq, only=["core.compacted"]):
            envelope = await self._filled(decode(lines[0]))
            with suppress(ValueError):
                parts: CompactedParts = DECODERS["compacted"].decode(envelope.data)
                found += [bytes(raw) for raw in (*parts.lead, *parts.summary, *parts.after)]
        return found

    async def _filled(self, envelope: Envelope) -> Envelope:
        """`envelope` with the data and message that lie in its blob, if it has one, put back."""
        if not envelope.blob:
            return envelope
        return with_body(envelope, await self._store.read_blob(envelope.blob) or b"")


def _known(folder: Folder) -> list[str]:
    """The names whose records some plugin folds or at least knows, sorted."""
    folded = [reducer.folds for reducer in folder.reducers if reducer.reduce is not None]
    return sorted({reducer.name for reducer in folder.reducers}.union(*folded))


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """`spans` in order, those that meet or nearly meet joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + READ_ACROSS:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def encode_slice(reducer: Reducer, value: object) -> bytes | None:
    """The JSON of a plugin's state, or None when it would not come back as it was.

    Without a declared type of the state (`Reducer.state`), only builtins come back: not a tuple, not a set.
    """
    try:
        data = _encode(value)
    except Exception:
        return None
    back = _decoded(reducer, data)
    return data if back is not None and _same(back[0], value) else None


def _decoded(reducer: Reducer, data: bytes) -> tuple[Any] | None:
    try:
        return (msgspec.json.decode(data, type=Any if reducer.state is None else reducer.state),)
    except Exception:
        return None


def _same(a: Any, b: Any) -> bool:
    """Equal, and of equal types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return all(map(_same, a, b)) and len(a) == len(b) and all(map(_same, a.values(), b.values()))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Struct):
        return all(_same(getattr(a, name), getattr(b, name)) for name in a.__struct_fields__)
    if a is None or isinstance(a, str | int | float | bytes):
        return bool(a == b)
    # Dates with other zones are equal too, and 1.0 hides in a set as 1.
    return bool(a == b) and repr(a) == repr(b)
