"""Which request broke the prefix that models cache, and which plugin did it.

A model reads the tools, then the system prompt, then the messages. What it read before costs little as long
as nothing ahead of it changed. So a request ought to repeat the one before and add to its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct

from noeta.core import records as r
from noeta.host.messages import GONE, Edited
from noeta.host.rebuild import Rebuilt, rebuilt
from noeta.toolkit.store import Store


class Change(Struct, frozen=True, kw_only=True):
    """What stands in a request in another form, or not at all, compared with the one before.

    - `part` is ``model``, ``tools``, ``system`` or ``messages``.
    - `at` is how much of that part is the same: tools, pieces of the prompt, or messages.
    - `by` are the plugins that did it, empty for the agent itself and its config. `person` is who erased.
    - `cause` is ``changed``; of messages also ``edited`` just before sending, ``compacted`` or ``erased``.
    - `names` are the tools that came, went or changed, or the two models.
    """

    part: str
    at: int = 0
    by: list[str] = []
    person: str = ""
    cause: str = "changed"
    names: list[str] = []

    @property
    def sentence(self) -> str:
        """The same in words."""
        names = ", ".join(self.names)
        who = ", ".join([*(f"plugin {by!r}" for by in self.by), *([self.person] if self.person else [])])
        match self.part, self.cause:
            case "model", _:
                text = f"The model is another one: {names}"
            case "tools", _:
                text = f"The tools differ from place {self.at} on: {names}"
            case "system", _:
                text = f"The system prompt differs from piece {self.at} on"
            case _, "edited":
                text = f"Message {self.at} was edited before sending"
            case _, "compacted":
                text = f"The conversation was compacted, from message {self.at} on"
            case _, "erased":
                text = f"Message {self.at} was erased"
            case _:
                text = f"Message {self.at} is another one"
        return f"{text}, by {who}." if who else f"{text}."


class PrefixBreak(Struct, frozen=True, kw_only=True):
    """A request that does not begin with all of the one before.

    `seq` is the reply to it, or its failure, `before` that of the request before. `shared` of that one's
    `messages` stand at its beginning. `changes` come in the order in which a model reads the parts; what is
    behind the first one is not cached. `exact` says whether both requests are what was sent (`Rebuilt`).
    """

    seq: int
    before: int
    shared: int
    messages: int
    changes: list[Change]
    exact: bool

    @property
    def sentences(self) -> list[str]:
        """The same in words."""
        head = f"The request of record {self.seq} repeats {self.shared} of {self.messages} messages"
        return [f"{head} of that of record {self.before}.", *(change.sentence for change in self.changes)]


async def prefix_breaks(store: Store, task: str) -> list[PrefixBreak]:
    """The requests of a task, and of the history it continues, that do not only add to the one before.

    Raises `UnknownTask`.
    """
    found: list[PrefixBreak] = []
    before: Rebuilt | None = None
    async with aclosing(rebuilt(store, task)) as requests:
        async for now in requests:
            if before is not None and (changes := list(_changes(before, now))):
                broken = PrefixBreak(
                    seq=now.seq,
                    before=before.seq,
                    shared=before.messages.shared(now.messages),
                    messages=len(before.messages),
                    changes=changes,
                    exact=before.exact and now.exact,
                )
                found.append(broken)
            before = now
    return found


def _changes(old: Rebuilt, new: Rebuilt) -> Iterator[Change]:
    models = _models(old, new)
    if models[0] != models[1]:
        yield Change(part="model", names=models)
    if tools := _parts(old.parts.tools, new.parts.tools, "spec"):
        names = dict.fromkeys(str(part.spec.get("name", "")) for part in tools[1])
        yield Change(part="tools", at=tools[0], by=_plugins(tools[1]), names=list(names))
    # The same text in other pieces is the same to a model.
    told = old.request.system != new.request.system
    if told and (system := _parts(old.parts.system, new.parts.system, "text")):
        yield Change(part="system", at=system[0], by=_plugins(system[1]))
    shared = old.messages.shared(new.messages)
    if shared < len(old.messages):
        yield _of_messages(old, new, shared)


def _models(old: Rebuilt, new: Rebuilt) -> list[str]:
    """The models of two requests: those that answered, if both were answered, else those that were asked."""
    if isinstance(old.outcome, r.ModelReplied) and isinstance(new.outcome, r.ModelReplied):
        return [old.outcome.model, new.outcome.model]
    return [old.request.model, new.request.model]


def _parts(old: Sequence[Any], new: Sequence[Any], field: str) -> tuple[int, list[Any]] | None:
    """How many parts two requests have in common from the first one on, and the parts that differ.

    None when all are the same. Parts that only changed places are all that stand behind the first such one.
    """
    if old is new:
        return None
    was, now = ([msgspec.json.encode(getattr(part, field)) for part in parts] for parts in (old, new))
    if was == now:
        return None
    pairs = enumerate(zip(was, now, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(was), len(now)))
    both = {*was} & {*now}
    parts = [*zip(new, now, strict=True), *zip(old, was, strict=True)]
    return at, [part for part, data in parts if data not in both] or [*new[at:], *old[at:]]


def _plugins(parts: Sequence[Any]) -> list[str]:
    return [by for by in dict.fromkeys(part.by for part in parts) if by]


def _of_messages(old: Rebuilt, new: Rebuilt, at: int) -> Change:
    """Why message `at` of a request is not the one it was in the request before."""

    def change(cause: str, *by: str, person: str = "") -> Change:
        return Change(part="messages", at=at, cause=cause, by=[name for name in by if name], person=person)

    was = old.messages.item(at)
    now = new.messages.item(at) if at < len(new.messages) else None
    compactions = {removal.seq: removal for removal in new.removed if removal.kind == "compacted"}
    erasures = [removal for removal in new.removed if removal.kind == "erased"]
    erased = next((removal for removal in erasures if was.seq in removal.seqs), None)
    edits = [edit for edit in new.parts.edits if edit not in old.parts.edits]
    edits += [edit for edit in old.parts.edits if edit not in new.parts.edits]
    if isinstance(now, Edited):
        return change("edited", now.by)
    if now is not None and now.seq in compactions:
        return change("compacted", compactions[now.seq].by)
    if erased:
        return change("erased", erased.by, person=erased.person)
    if isinstance(was, Edited):
        return change("edited", was.by)
    if compactions:
        return change("compacted", *(removal.by for removal in compactions.values()))
    if edits:
        return change("edited", *dict.fromkeys(edit.by for edit in edits))
    if erasures or GONE in (was.data, now.data if now else b""):
        last = erasures[-1] if erasures else None
        return change("erased", last.by if last else "", person=last.person if last else "")
    return change("changed", new.source(at).by if now else "")
