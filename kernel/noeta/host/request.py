"""Building the requests of a task, so that its log alone can build them again.

What a request holds besides the conversation is recorded when it changes, each part with its plugin.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from noeta.core import records as r
from noeta.core.codec import encode
from noeta.core.conversation import Conversation, Item
from noeta.core.messages import Message, Text
from noeta.core.parts import ContextPart, Offer
from noeta.core.ports import ModelRequest, ToolSpec
from noeta.core.tool import Tool, tool_flags
from noeta.core.work import Built, Work
from noeta.host.messages import Messages
from noeta.host.offer import offer
from noeta.toolkit.agent import Agent

_log = logging.getLogger("noeta")
_PARTS = ("system", "messages", "tools")
PARAMETERS: tuple[str, ...] = tuple(name for name in ModelRequest.__struct_fields__ if name not in _PARTS)
"""The fields of a request that are recorded as its parameters."""


class Draft(Struct):
    """A request under way, and what it is made of besides the conversation."""

    request: ModelRequest
    system: list[r.SystemPart]
    tools: list[r.ToolPart]
    edits: list[r.Edit] = []


class Requests:
    """The requests of one claimed task. `records` reads records of the task's log."""

    def __init__(
        self, agent: Agent, records: Callable[[Sequence[int]], Awaitable[Sequence[r.Recorded]]]
    ) -> None:
        self._agent, self._records = agent, records
        self._specs: dict[int, tuple[Tool, str, r.ToolPart, ToolSpec]] = {}
        self._last: dict[str, Any] = {}
        self._hasher, self._hashed = sha256(), 0
        self._hashed_of: list[Item] | None = None

    def offer(self, work: Work) -> Offer:
        """What the task offers now."""
        return offer(work.hooks, work, self._agent.tools, self._agent.denied)

    def base(self, work: Work) -> Draft:
        """The request as the plugins' tools and context make it, before reminders and `before_model`."""
        agent, config = self._agent, work.state.config
        work.look()
        system = system_parts(agent.identity, agent.prompt, work.hooks.context(work))
        listed = list(self._listed(work.offer))
        request = ModelRequest(
            model=model_of(agent, config),
            system="\n".join(part.text for part in system),
            messages=Messages(work.state.conversation),
            tools=tuple(spec for _, spec in listed),
            output_schema=config.get("output_schema"),
            max_tokens=agent.max_tokens,
            effort=config.get("effort") or agent.effort,
        )
        return Draft(request, system, [part for part, _ in listed])

    async def build(self, work: Work) -> Built:
        """The request to send. Records reminders, and what changed since the last request.

        Raises the signals of `reminders` and `before_model`, and `PluginFailure`.
        """
        work.set(next_request=lambda: self.base(work).request)
        draft = self.base(work)
        given = [(by, note) for by, notes in await work.hooks.reminders(work) for note in notes]
        for by, note in sorted(given, key=lambda pair: (pair[1].role == "system", pair[1].order)):
            message = Message(role=note.role, content=[Text(text=note.text)], origin=note.origin)
            work.place(encode(0, 0.0, by, note.kind, note.data, message=message, by=by, hook="reminders"))
        built_at, conversation = work.state.seq, work.state.conversation
        draft.request = replace(draft.request, messages=Messages(conversation))
        digest = self._digest(conversation)
        for by, request in await work.hooks.before_model(work, draft.request):
            follow(draft, by, request)
        now = await self._record(work, draft)
        made = sha256(msgspec.json.encode(now, order="deterministic") + digest).digest()
        return Built(draft.request, built_at, urlsafe_b64encode(made).rstrip(b"=").decode())

    def _listed(self, offered: Offer) -> Iterator[tuple[r.ToolPart, ToolSpec]]:
        """The entries of the tool list, in order."""
        shown = {name: pair for name, pair in offered.tools.items() if name not in offered.withheld}
        ahead: dict[str, list[tuple[r.ToolPart, ToolSpec]]] = {}
        for by, entry in offered.entries:
            place = entry.before if entry.before in shown else ""
            ahead.setdefault(place, []).append((r.ToolPart(spec=to_builtins(entry.spec), by=by), entry.spec))
        last = [name for name, (_, tool) in shown.items() if tool_flags(tool).listed_last]
        known, self._specs = self._specs, {}
        for name in (*(name for name in shown if name not in last), "", *last):
            yield from ahead.get(name, ())
            if name:
                by, tool = shown[name]
                made = known.get(id(tool))
                text = self._description(tool)
                if made is None or made[0] is not tool or made[1] != text:
                    made = _made(by, tool, text)
                self._specs[id(tool)] = made
                yield made[2:]

    def _description(self, tool: Tool) -> str:
        flags = tool_flags(tool)
        text = (flags.loaded_description if flags.deferred else None) or tool.description
        return self._agent.prompts.get(f"tool/{tool.name}", text)

    def _digest(self, conversation: Conversation) -> bytes:
        """The sha-256 of all items in order. Costs what is new since the last request."""
        settled, start = conversation.settled, self._hashed
        if settled is not self._hashed_of or start > conversation.length:
            # A compaction or an erasure put another list in its place.
            self._hashed_of, self._hasher, start = settled, sha256(), 0
        for item in islice(settled, start, conversation.length):
            _hash(self._hasher, item)
        self._hashed = conversation.length
        hasher = self._hasher.copy()
        for item in conversation.tail:
            _hash(hasher, item)
        return hasher.digest()

    async def _record(self, work: Work, draft: Draft) -> dict[str, Any]:
        """Record what differs from the last request; all that this one is made of."""
        given = {name: getattr(draft.request, name) for name in PARAMETERS}
        given = {name: value for name, value in given.items() if value not in (None, "", ())}
        plain = msgspec.json.decode(msgspec.json.encode(given))
        now = {"system": draft.system, "tools": draft.tools, "parameters": plain, "edits": draft.edits}
        if not self._last:
            seqs, self._last = work.state.composed, dict.fromkeys(now) | {"edits": []}
            for record in await self._records(sorted(set(seqs.values()))):
                names = [name for name, seq in seqs.items() if seq == record.seq]
                self._last |= {name: getattr(record.data, name) for name in names}
        if changed := {name: value for name, value in now.items() if value != self._last[name]}:
            work.put(r.ContextComposed(**changed))
        self._last = now
        return now


def model_of(agent: Agent, config: Any) -> str:
    """The model a task of `agent` with this config runs on."""
    return str(config.get("model") or agent.model)


def system_parts(
    identity: str, prompt: str, given: Sequence[tuple[str, Sequence[ContextPart]]]
) -> list[r.SystemPart]:
    """The system prompt in pieces, each with its plugin; joined by newlines they are the prompt."""
    lines = "\n".join(text for text in (identity, prompt) if text).split("\n")
    parts = sorted(((by, part) for by, parts in given for part in parts), key=lambda pair: pair[1].order)
    ahead: dict[int, list[r.SystemPart]] = {0: [], len(lines): []}
    for by, part in parts:
        known = part.before and part.before in lines
        if part.before and not known:
            _log.warning("plugin %r: the prompt has no line %r, so its part stands last", by, part.before)
        place = lines.index(part.before) if known else len(lines)
        ahead.setdefault(place, []).append(r.SystemPart(text=part.text, by=by))
    places = sorted(ahead)
    pieces: list[r.SystemPart] = []
    for start, end in zip(places, [*places[1:], len(lines)], strict=True):
        text = "\n".join(lines[start:end])
        pieces += [*ahead[start], *([r.SystemPart(text=text)] if start < end and lines != [""] else [])]
    return pieces


def follow(draft: Draft, by: str, request: ModelRequest) -> None:
    """Note what the plugin `by` made of the request. Costs nothing for what it left as it was."""
    before = draft.request
    if request.system != before.system:
        draft.system = [r.SystemPart(text=request.system, by=by)]
    if request.tools is not before.tools:
        known = {msgspec.json.encode(part.spec): part for part in draft.tools}
        specs = [to_builtins(spec) for spec in request.tools]
        draft.tools = [known.get(msgspec.json.encode(spec)) or r.ToolPart(spec=spec, by=by) for spec in specs]
    if request.messages is not before.messages:
        old, new = list(before.messages), list(request.messages)
        start, same, shorter = 0, 0, min(len(old), len(new))
        while start < shorter and old[start] == new[start]:
            start += 1
        while same < shorter - start and old[-1 - same] == new[-1 - same]:
            same += 1
        edit = r.Edit(start=start, end=len(old) - same, messages=new[start : len(new) - same], by=by)
        if edit.messages or edit.start < edit.end:
            draft.edits = [*draft.edits, edit]
    draft.request = request


def _made(by: str, tool: Tool, text: str) -> tuple[Tool, str, r.ToolPart, ToolSpec]:
    deferred = tool_flags(tool).deferred
    spec = ToolSpec(name=tool.name, description=text, input_schema=tool.input_schema, deferred=deferred)
    return tool, text, r.ToolPart(spec=to_builtins(spec), by=by), spec


def _hash(hasher: Any, item: Item) -> None:
    # The length ahead keeps two items from reading like one.
    hasher.update(b"%d " % len(item.data))
    hasher.update(item.data)
