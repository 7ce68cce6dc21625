"""Building the requests of a task, so that its log alone can build them again.

What a request holds besides the conversation is recorded when it changes, each part with its plugin.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from noeta.core import records as r
from noeta.core.codec import encode
from noeta.core.conversation import Conversation
from noeta.core.errors import PluginFailure, told
from noeta.core.messages import Message, Text, encode_message
from noeta.core.parts import ContextPart, Offer
from noeta.core.ports import ModelRequest, ToolSpec
from noeta.core.text import storable_text
from noeta.core.tool import Tool, tool_flags
from noeta.core.work import Built, Work
from noeta.host.messages import Messages
from noeta.host.offer import offer
from noeta.host.parts import Hashed, Parts, begun_with, digest_of, parameters_of
from noeta.toolkit.agent import Agent

_log = logging.getLogger("noeta")


class Draft(Struct):
    """A request under way, its messages with the seq they reach to, and what it is made of besides them."""

    at: int
    messages: Messages
    request: ModelRequest
    system: list[r.SystemPart]
    tools: list[r.ToolPart]
    edits: list[r.Edit]
    changed: bool = False


class Sent(Struct, frozen=True, kw_only=True):
    """What all requests of the same parts share: the parts, their JSON, and what a digest begins with.

    `request` is one of them without its messages.
    """

    parts: Parts
    encoded: Mapping[str, bytes]
    begun: Any
    request: ModelRequest


class Requests:
    """The requests of one claimed task. `records` reads records of the task's log.

    What stays from one request to the next is made once, and known again by its identity.
    """

    def __init__(
        self, agent: Agent, records: Callable[[Sequence[int]], Awaitable[Sequence[r.Recorded]]]
    ) -> None:
        self._agent, self._records = agent, records
        self._offer = Offer()
        self._context: list[tuple[str, Sequence[ContextPart]]] | None = None
        self._system: list[r.SystemPart] = []
        # The tools as listed last: of which offer, by which descriptions, and as which entries.
        self._listed_of: tuple[Offer, list[str]] | None = None
        self._entries: dict[int, tuple[Tool, str, r.ToolPart, ToolSpec]] = {}
        self._tools: list[r.ToolPart] = []
        self._specs: tuple[ToolSpec, ...] = ()
        self._no_edits: list[r.Edit] = []
        # The request that no plugin has changed, without messages, and its parameters once they are wanted.
        self._bare: tuple[tuple[Any, ...], ModelRequest] | None = None
        self._parameters: tuple[ModelRequest, dict[str, Any]] | None = None
        # The JSON of each part of the last request, and of each part that was encoded last.
        self._last: Mapping[str, bytes] = {}
        self._encoded: dict[str, tuple[Any, bytes]] = {}
        self._sent: Sent | None = None
        self._hashed = Hashed()

    def offer(self, work: Work) -> Offer:
        """What the task offers now: the same object as long as it stays the same."""
        agent = self._agent
        made = offer(work.hooks, work, agent.tools, agent.denied, agent.prefer)
        self._offer = self._offer if made == self._offer else made
        return self._offer

    def base(self, work: Work) -> Draft:
        """The request as the plugins' tools and context make it, before reminders and `before_model`."""
        agent, config = self._agent, work.state.config
        work.look()
        if (context := work.hooks.context(work)) != self._context:
            self._context, self._system = context, system_parts(agent.identity, agent.prompt, context)
        self._list(work.offer)
        made_of = (config, self._system, self._specs)
        if self._bare is None or not _same(made_of, self._bare[0]):
            bare = ModelRequest(
                model=model_of(agent, config),
                system="\n".join(part.text for part in self._system),
                tools=self._specs,
                output_schema=config.get("output_schema"),
                max_tokens=agent.max_tokens,
                effort=config.get("effort") or agent.effort,
            )
            self._bare = made_of, bare
        messages = Messages(work.state.conversation)
        request = replace(self._bare[1], messages=messages)
        return Draft(work.state.seq, messages, request, self._system, self._tools, self._no_edits)

    async def build(self, work: Work) -> Built:
        """The request to send. Records reminders, and what changed since the last request.

        Raises the signals of `reminders` and `before_model`, and `PluginFailure`.
        """
        draft = self.base(work)
        given = [(by, note) for by, notes in await work.hooks.reminders(work) for note in notes]
        for by, note in sorted(given, key=lambda pair: (pair[1].role == "system", pair[1].order)):
            message = Message(role=note.role, content=[Text(text=note.text)], origin=note.origin)
            work.place(encode(0, 0.0, by, note.kind, note.data, message=message, by=by, hook="reminders"))
        if work.state.seq != draft.at:
            draft.messages = Messages(work.state.conversation)
            draft.request = replace(draft.request, messages=draft.messages)
        built_at, items = work.state.seq, self._hashed.of(work.state.conversation)
        by = ""
        try:
            for by, request in await work.hooks.before_model(work, draft.request):
                follow(draft, by, request)
            sent = await self._compose(work, draft)
        except (TypeError, ValueError) as error:
            # What no log can hold cannot be sent, since nobody could see later what was.
            why = f"its request cannot be recorded: {storable_text(told(error))}"
            work.failed(by, "before_model", why, "closed")
            raise PluginFailure(by, "before_model", why, "closed") from error
        request = replace(sent.request, messages=sent.parts.edited(draft.messages))
        return Built(request, built_at, digest_of(sent.begun, items))

    def _list(self, offered: Offer) -> None:
        """Bring the list of tools up to date: of the same offer and descriptions it is the same object."""
        listed_of = (offered, [self._description(tool) for _, tool in offered.tools.values()])
        if self._listed_of and self._listed_of[0] is offered and self._listed_of[1] == listed_of[1]:
            return
        listed = list(self._listed(offered))
        tools = [part for part, _ in listed]
        if tools != self._tools or not self._listed_of:
            self._tools, self._specs = tools, tuple(spec for _, spec in listed)
        self._listed_of = listed_of

    def _listed(self, offered: Offer) -> Iterator[tuple[r.ToolPart, ToolSpec]]:
        """The entries of the tool list, in order."""
        shown = {name: pair for name, pair in offered.tools.items() if name not in offered.withheld}
        ahead: dict[str, list[tuple[r.ToolPart, ToolSpec]]] = {}
        for by, entry in offered.entries:
            place = entry.before if entry.before in shown else ""
            ahead.setdefault(place, []).append((r.ToolPart(spec=to_builtins(entry.spec), by=by), entry.spec))
        last = [name for name, (_, tool) in shown.items() if tool_flags(tool).listed_last]
        known, self._entries = self._entries, {}
        for name in (*(name for name in shown if name not in last), "", *last):
            yield from ahead.get(name, ())
            if name:
                by, tool = shown[name]
                made = known.get(id(tool))
                text = self._description(tool)
                if made is None or made[0] is not tool or made[1] != text:
                    made = _made(by, tool, text)
                self._entries[id(tool)] = made
                yield made[2:]

    def _description(self, tool: Tool) -> str:
        flags = tool_flags(tool)
        text = (flags.loaded_description if flags.deferred else None) or tool.description
        return self._agent.prompts.get(f"tool/{tool.name}", text)

    async def _compose(self, work: Work, draft: Draft) -> Sent:
        """What the request is made of besides the conversation; what of it is new is recorded."""
        parameters = self._parameters_of(draft)
        made_of = (draft.system, draft.tools, parameters, draft.edits)
        parts = self._sent.parts if self._sent else None
        if (
            self._sent
            and parts
            and _same(made_of, (parts.system, parts.tools, parts.parameters, parts.edits))
        ):
            return self._sent
        parts = Parts(system=draft.system, tools=draft.tools, parameters=parameters, edits=draft.edits)
        encoded = await self._record(work, parts)
        sent, named = self._sent, ("system", "tools", "parameters")
        same = sent is not None and all(encoded[name] == sent.encoded[name] for name in named)
        request = sent.request if sent and same else parts.request(Messages(Conversation()))
        self._sent = Sent(parts=parts, encoded=encoded, begun=begun_with(encoded), request=request)
        return self._sent

    def _parameters_of(self, draft: Draft) -> dict[str, Any]:
        """The parameters of a request, made once for all that no plugin changed."""
        assert self._bare
        if draft.changed:
            return parameters_of(draft.request)
        if self._parameters is None or self._parameters[0] is not self._bare[1]:
            self._parameters = self._bare[1], parameters_of(self._bare[1])
        return self._parameters[1]

    async def _record(self, work: Work, parts: Parts) -> dict[str, bytes]:
        """Record the parts that differ from those of the last request; the JSON of each part."""
        now = {name: self._bytes(name, getattr(parts, name)) for name in parts.__struct_fields__}
        if not self._last:
            seqs, last = work.state.composed, dict[str, Any](edits=[])
            for record in await self._records(sorted(set(seqs.values()))):
                last |= {name: getattr(record.data, name) for name, seq in seqs.items() if seq == record.seq}
            self._last = {name: msgspec.json.encode(value) for name, value in last.items()}
        if changed := [name for name in now if now[name] != self._last.get(name)]:
            work.put(r.ContextComposed(**{name: getattr(parts, name) for name in changed}))
        self._last = now
        return now

    def _bytes(self, name: str, part: Any) -> bytes:
        """The JSON of a part, made once for each object: nothing changes one that is here."""
        known = self._encoded.get(name)
        if known is None or known[0] is not part:
            known = self._encoded[name] = (part, msgspec.json.encode(part))
        return known[1]


def _same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether these are the very same objects."""
    return all(map(is_, some, others))


def model_of(agent: Agent, config: Any) -> str:
    """The model a task of `agent` with this config runs on."""
    return str(config.get("model") or agent.model)


def system_parts(
    identity: str, prompt: str, given: Sequence[tuple[str, Sequence[ContextPart]]]
) -> list[r.SystemPart]:
    """The system prompt in pieces, each with its plugin; joined by newlines they are the prompt."""
    lines = storable_text("\n".join(text for text in (identity, prompt) if text)).split("\n")
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
        given = list(request.messages)
        # As JSON, since Python takes 1 and True for the same.
        old, new = ([encode_message(message) for message in m] for m in (before.messages, given))
        start, same, shorter = 0, 0, min(len(old), len(new))
        while start < shorter and old[start] == new[start]:
            start += 1
        while same < shorter - start and old[-1 - same] == new[-1 - same]:
            same += 1
        edit = r.Edit(start=start, end=len(old) - same, messages=given[start : len(new) - same], by=by)
        if edit.messages or edit.start < edit.end:
            draft.edits = [*draft.edits, edit]
    draft.request, draft.changed = request, True


def _made(by: str, tool: Tool, text: str) -> tuple[Tool, str, r.ToolPart, ToolSpec]:
    said, deferred = storable_text(text), tool_flags(tool).deferred
    spec = ToolSpec(name=tool.name, description=said, input_schema=tool.input_schema, deferred=deferred)
    return tool, text, r.ToolPart(spec=to_builtins(spec), by=by), spec
