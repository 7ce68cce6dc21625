"""Building the requests of a task again, from its log alone.

No plugin, no agent and no claim is needed for it. A request comes out byte for byte as it was sent, and its
digest proves that; where it cannot, since messages were erased or the log is damaged, it says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from noeta.core import records as r
from noeta.core.codec import ABSENT, Envelope, decode, recorded
from noeta.core.fold import Folder
from noeta.core.items import ITEMS, Entry, TimerFired
from noeta.core.messages import decode_message
from noeta.core.ports import ModelRequest, ToolSpec
from noeta.core.state import TaskState
from noeta.host.messages import GONE, Edited, Messages
from noeta.host.parts import PARAMETERS, Hashed, Parts, begun_with, digest_of
from noeta.toolkit.errors import NoRequest
from noeta.toolkit.history import history, whole
from noeta.toolkit.store import Store

NEAR = 4
"""How many records an error suggests."""


class Source(Struct, frozen=True, kw_only=True):
    """Where a message of a request comes from: its record (0: none), and the plugin behind it, if any."""

    seq: int = 0
    by: str = ""


class Removal(Struct, frozen=True, kw_only=True):
    """What took messages out of a conversation: the record `seq` of kind ``compacted`` or ``erased``.

    `by` is the plugin that made it. `person` asked for the erasure, and `seqs` are what it took out.
    """

    seq: int
    kind: str
    by: str = ""
    person: str = ""
    seqs: list[int] = []


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """A request that a task sent, built again.

    `seq` is the record of what came of it, `outcome` that record's data. The request is as the task made it:
    whoever called the model may have taken another model of the agent. `removed` is what took messages out
    of the conversation since the request before. `plugins` are those behind records, by seq.

    It is exact, byte for byte, unless one of these says why not. `erased` are the seqs of records that were
    erased since, all of them or some, and for which something stands in. `fault` is a sentence about anything
    else.
    """

    seq: int
    outcome: r.ModelReplied | r.ModelFailed
    request: ModelRequest
    parts: Parts
    removed: list[Removal]
    erased: list[int]
    fault: str
    plugins: Mapping[int, str]

    @property
    def exact(self) -> bool:
        """Whether the request is what was sent."""
        return not self.erased and not self.fault

    @property
    def messages(self) -> Messages:
        """The request's messages."""
        assert isinstance(self.request.messages, Messages)
        return self.request.messages

    @property
    def encoded(self) -> bytes:
        """The request as JSON."""
        return msgspec.json.encode(replace(self.request, messages=list(self.messages)))

    def source(self, index: int) -> Source:
        """Where the message at `index` comes from. Raises `IndexError`."""
        item = self.messages.item(index)
        if isinstance(item, Edited):
            return Source(by=item.by)
        return Source(seq=item.seq, by=self.plugins.get(item.seq, ""))


async def rebuilt(
    store: Store, task: str, *, after: int = 0, through: int | None = None
) -> AsyncGenerator[Rebuilt, None]:
    """Every request that led to a reply, or to a recorded failure, of a task and of the history it continues.

    They come in order; `after` and `through` are seqs of replies. All of them cost one reading of the log.
    A request whose outcome was not recorded, as of a worker that died, is not among them. Who stops early
    closes it (`contextlib.aclosing`). Raises `UnknownTask`.
    """
    past = _Past()
    async with aclosing(history(store, task, through=through)) as pages:
        async for lines in pages:
            for line in lines:
                envelope = await whole(store, decode(line))
                if (found := past.take(envelope)) is not None and found.seq > after:
                    yield found


async def rebuild(store: Store, task: str, seq: int) -> Rebuilt:
    """The request that led to the record `seq`, a reply or a failure of the model.

    Raises `NoRequest` for any other record, and `UnknownTask`.
    """
    async with aclosing(rebuilt(store, task, after=seq - 1, through=seq)) as found:
        async for request in found:
            return request
    seqs: list[int] = []
    async with aclosing(history(store, task, only=[f"core.{kind}" for kind in _OUTCOMES])) as pages:
        async for lines in pages:
            seqs += [line.seq for line in lines]
    raise NoRequest(task, seq, sorted(sorted(seqs, key=lambda other: abs(other - seq))[:NEAR]))


_OUTCOMES = ("model_replied", "model_failed")
_REMOVALS = ("compacted", "erased")


class _Past:
    """A log folded request by request: records wait until it is known up to where a request was built.

    From the first tombstone on it is folded twice: as it is now, which is right for requests built after the
    erasure, and with something in the place of what was erased, so that the other messages of earlier
    requests keep their places. The digest tells which of the two a request was built from.
    """

    def __init__(self) -> None:
        self._folder = Folder(())
        self._now = self._folder.start()
        self._filled: TaskState | None = None
        self._ahead: deque[Envelope] = deque()
        self._parts, self._known, self._strange = Parts(), Parts(), ""
        self._encoded = self._parts.encoded
        self._hashed = Hashed()
        self._plugins: dict[int, str] = {}
        self._removed: list[Removal] = []
        self._standing: set[int] = set()
        # The record of the edits made to the messages, if they were erased.
        self._gone: list[int] = []

    def take(self, envelope: Envelope) -> Rebuilt | None:
        """Take the next record; the request that it is the outcome of, if it is one."""
        found = None
        if envelope.extension == r.CORE and envelope.kind in (*_OUTCOMES, "context_composed"):
            match _data(envelope):
                case r.ContextComposed() as composed:
                    self._compose(composed)
                    if composed.edits is not None:
                        self._gone = [envelope.seq] if envelope.erased else []
                case (r.ModelReplied() | r.ModelFailed()) as outcome if outcome.built_at:
                    while self._ahead and self._ahead[0].seq <= outcome.built_at:
                        self._fold(self._ahead.popleft())
                    found = self._rebuilt(envelope.seq, outcome)
        self._ahead.append(envelope)
        return found

    def _compose(self, composed: r.ContextComposed) -> None:
        given = {name: getattr(composed, name) for name in Parts.__struct_fields__}
        self._parts = replace(self._parts, **{k: v for k, v in given.items() if v is not None})
        self._encoded = self._parts.encoded
        self._known, self._strange = _known(self._parts)

    def _fold(self, envelope: Envelope) -> None:
        seq, core = envelope.seq, envelope.extension == r.CORE
        if by := envelope.by or ("" if core else envelope.extension) or self._poster(envelope):
            self._plugins[seq] = by
        removes = core and envelope.kind in _REMOVALS
        if removes:
            data, kind = _data(envelope), envelope.kind
            seqs = [*data.seqs, *data.along] if isinstance(data, r.Erased) else []
            person = data.by if isinstance(data, r.Erased) else ""
            self._removed.append(Removal(seq=seq, kind=kind, by=by, person=person, seqs=seqs))
        if envelope.erased and envelope.kind != "context_composed":
            self._filled = self._filled or self._now.copy()
            self._standing.add(seq)
        self._folder.apply(self._now, envelope)
        if self._filled:
            stands = envelope.erased and envelope.kind != "context_composed"
            self._folder.apply(self._filled, _stand_in(envelope) if stands else envelope)
            conversation = self._filled.conversation
            if removes:
                self._standing.intersection_update(item.seq for item in conversation)
            elif envelope.erased and all(item.seq != seq for item in conversation.tail):
                self._standing.discard(seq)
            if not self._standing:
                self._filled = None

    def _poster(self, envelope: Envelope) -> str:
        """The plugin whose entry, or whose timer, an inbox item is."""
        if envelope.kind == "received" and isinstance(received := _data(envelope), r.Received):
            with suppress(ValueError, RecursionError):
                match msgspec.json.decode(received.data, type=ITEMS.get(received.item) or Any):
                    case Entry(extension=extension):
                        return extension
                    case TimerFired(gen=gen):
                        return self._plugins.get(gen, "")
        return ""

    def _rebuilt(self, seq: int, outcome: r.ModelReplied | r.ModelFailed) -> Rebuilt:
        state, erased, fault = self._now, list[int](), self._strange
        if (
            digest_of(begun_with(self._encoded), self._hashed.of(state.conversation)) != outcome.request
            and not fault
        ):
            if self._filled or self._gone:
                state, erased = self._filled or state, sorted({*self._standing, *self._gone})
            elif problem := state.corrupt or state.newer:
                fault = f"Record {problem.seq} cannot be used: {problem.why}."
            elif not outcome.request:
                fault = f"Record {seq} holds no digest, so nothing proves that this is the request."
            else:
                fault = f"The digest is not the one in record {seq}: the log is not what it was."
        removed, self._removed = self._removed, []
        return Rebuilt(
            seq=seq,
            outcome=outcome,
            request=self._known.request(Messages(state.conversation)),
            parts=self._parts,
            removed=removed,
            erased=erased,
            fault=fault,
            plugins=self._plugins,
        )


def _data(envelope: Envelope) -> Any:
    return recorded(replace(envelope, message=ABSENT)).data


def _known(parts: Parts) -> tuple[Parts, str]:
    """`parts` without what this version does not know, and a sentence when there is any."""
    fields = ToolSpec.__struct_fields__
    parameters = {k: v for k, v in parts.parameters.items() if k == "model" or k in PARAMETERS}
    tools = [replace(p, spec={k: v for k, v in p.spec.items() if k in fields}) for p in parts.tools]
    strange = {*parts.parameters} - {*parameters}
    strange |= {name for part in parts.tools for name in part.spec if name not in fields}
    why = f"A later version built it: this one does not know {min(strange)!r}." if strange else ""
    return replace(parts, parameters=parameters, tools=tools), why


def _stand_in(stone: Envelope) -> Envelope:
    """A tombstone with a message that stands in for what was erased."""
    if stone.kind == "compacted" and stone.extension == r.CORE:
        left = _data(stone)
        full = left and replace(left, summary=[decode_message(GONE)])
        return replace(stone, data=Raw(msgspec.json.encode(full))) if full else stone
    return replace(stone, message=Raw(GONE))
