"""Building the requests of a task, so that its log alone can build them again.

What a request holds besides the conversation is recorded when it changes, each part with its plugin.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from noeta.core import records as r
from noeta.core.codec import encode
from noeta.core.errors import PluginFailure, told
from noeta.core.messages import Message, Text, encode_message
from noeta.core.parts import ContextPart, Offer
from noeta.core.ports import ModelRequest, ToolSpec
from noeta.core.text import storable_text
from noeta.core.tool import Tool, tool_flags
from noeta.core.work import Built, Work
from noeta.host.messages import Messages
from noeta.host.offer import offer
from noeta.host.parts import Hashed, Parts, digest_of, parameters_of
from noeta.toolkit.agent import Agent

_log = logging.getLogger("noeta")


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
        self._offer = Offer()
        self._context: list[tuple[str, Sequence[ContextPart]]] | None = None
        self._system: list[r.SystemPart] = []
        self._tools: list[r.ToolPart] = []
        # The JSON of each part of the last request, with the part it is of, and that request.
        self._last: dict[str, bytes] = {}
        self._encoded: dict[str, tuple[Any, bytes]] = {}
        self._sent: tuple[tuple[bytes, ...], ModelRequest] | None = None
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
        listed = list(self._listed(work.offer))
        tools = [part for part, _ in listed]
        self._tools = self._tools if tools == self._tools else tools
        request = ModelRequest(
            model=model_of(agent, config),
            system="\n".join(part.text for part in self._system),
            messages=Messages(work.state.conversation),
            tools=tuple(spec for _, spec in listed),
            output_schema=config.get("output_schema"),
            max_tokens=agent.max_tokens,
            effort=config.get("effort") or agent.effort,
        )
        return Draft(request, self._system, self._tools)

    async def build(self, work: Work) -> Built:
        """The request to send. Records reminders, and what changed since the last request.

        Raises the signals of `reminders` and `before_model`, and `PluginFailure`.
        """
        draft = self.base(work)
        given = [(by, note) for by, notes in await work.hooks.reminders(work) for note in notes]
        for by, note in sorted(given, key=lambda pair: (pair[1].role == "system", pair[1].order)):
            message = Message(role=note.role, content=[Text(text=note.text)], origin=note.origin)
            work.place(encode(0, 0.0, by, note.kind, note.data, message=message, by=by, hook="reminders"))
        built_at, messages = work.state.seq, Messages(work.state.conversation)
        items = self._hashed.of(work.state.conversation)
        draft.request = replace(draft.request, messages=messages)
        by = ""
        try:
            for by, request in await work.hooks.before_model(work, draft.request):
                follow(draft, by, request)
            parameters = parameters_of(draft.request)
            parts = Parts(system=draft.system, tools=draft.tools, parameters=parameters, edits=draft.edits)
            encoded = await self._record(work, parts)
        except (TypeError, ValueError) as error:
            # What no log can hold cannot be sent, since nobody could see later what was.
            why = f"its request cannot be recorded: {storable_text(told(error))}"
            work.failed(by, "before_model", why, "closed")
            raise PluginFailure(by, "before_model", why, "closed") from error
        return Built(self._request(parts, encoded, messages), built_at, digest_of(encoded, items))

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
        return storable_text(self._agent.prompts.get(f"tool/{tool.name}", text))

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

    def _request(self, parts: Parts, encoded: Mapping[str, bytes], messages: Messages) -> ModelRequest:
        """The request that the parts make. Only what differs from the last one is made anew."""
        made_of = tuple(encoded[name] for name in ("system", "tools", "parameters"))
        if self._sent is None or self._sent[0] != made_of:
            self._sent = (made_of, parts.request(messages))
        return replace(self._sent[1], messages=parts.edited(messages))


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
    draft.request = request


def _made(by: str, tool: Tool, text: str) -> tuple[Tool, str, r.ToolPart, ToolSpec]:
    deferred = tool_flags(tool).deferred
    spec = ToolSpec(name=tool.name, description=text, input_schema=tool.input_schema, deferred=deferred)
    return tool, text, r.ToolPart(spec=to_builtins(spec), by=by), spec
