"""Building one request to a model, so that the log alone can build it again."""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, overload

import msgspec
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from noeta.core import records as r
from noeta.core.codec import encode
from noeta.core.conversation import Conversation
from noeta.core.messages import Message, Text
from noeta.core.parts import ContextPart
from noeta.core.ports import ModelRequest, ToolSpec
from noeta.core.tool import Tool, tool_flags
from noeta.core.work import Work

log = logging.getLogger("noeta")
PARTS = ("system", "messages", "tools")
PARAMETERS = tuple(name for name in ModelRequest.__struct_fields__ if name not in PARTS)
"""The fields of a request that are recorded as its parameters."""


class Messages(Sequence[Message]):
    """The messages of a conversation as it is now, decoded as they are read."""

    def __init__(self, conversation: Conversation) -> None:
        self._items = conversation.copy()

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [item.message for item in self._items[index]]
        return self._items[index].message

    @property
    def encoded(self) -> Iterator[bytes]:
        """Each message's JSON, in order: the same bytes as long as the message stays."""
        return (item.data for item in self._items)


class Built(Struct):
    """A request, what it is made of besides the conversation, and the seq its messages reach to."""

    request: ModelRequest
    system: list[r.SystemPart]
    tools: list[r.ToolPart]
    edits: list[r.Edit] = []
    built_at: int = 0
    digest: str = ""


def base(work: Work) -> Built:
    """The request as the plugins' tools and context make it, before reminders and `before_model`."""
    agent, config = work.agent, work.state.config
    work.look()
    system = system_parts(agent.identity, agent.prompt, work.hooks.context(work))
    listed = list(_listed(work))
    request = ModelRequest(
        model=work.model,
        system="\n".join(part.text for part in system),
        messages=Messages(work.state.conversation),
        tools=[spec for _, spec in listed],
        output_schema=config.get("output_schema"),
        max_tokens=agent.max_tokens,
        effort=config.get("effort") or agent.effort,
    )
    return Built(request, system, [part for part, _ in listed])


async def build(work: Work) -> Built:
    """The request to send. Records reminders, and what changed since the last one of the task.

    Raises the signals of `reminders` and `before_model`, and `PluginFailure`.
    """
    work.set(next_request=lambda: base(work).request)
    built = base(work)
    given = [(by, note) for by, notes in await work.hooks.reminders(work) for note in notes]
    for by, note in sorted(given, key=lambda pair: (pair[1].role == "system", pair[1].order)):
        message = Message(role=note.role, content=[Text(text=note.text)], origin=note.origin)
        work.place(encode(0, 0.0, by, note.kind, note.data, message=message, by=by, hook="reminders"))
    built.built_at = work.state.seq
    built.request = replace(built.request, messages=Messages(work.state.conversation))
    digest = work.state.conversation.digest()
    for by, request in await work.hooks.before_model(work, built.request):
        _follow(built, by, request)
    await _record(work, built, digest)
    return built


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
            log.warning("plugin %r: the prompt has no line %r, so its part stands last", by, part.before)
        place = lines.index(part.before) if known else len(lines)
        ahead.setdefault(place, []).append(r.SystemPart(text=part.text, by=by))
    places = sorted(ahead)
    pieces: list[r.SystemPart] = []
    for start, end in zip(places, [*places[1:], len(lines)], strict=True):
        text = "\n".join(lines[start:end])
        pieces += [*ahead[start], *([r.SystemPart(text=text)] if start < end and lines != [""] else [])]
    return pieces


def _listed(work: Work) -> Iterator[tuple[r.ToolPart, ToolSpec]]:
    """The entries of the tool list, in order."""
    shown = {name: pair for name, pair in work.offer.tools.items() if name not in work.offer.withheld}
    ahead: dict[str, list[tuple[r.ToolPart, ToolSpec]]] = {}
    for by, entry in work.offer.entries:
        place = entry.before if entry.before in shown else ""
        ahead.setdefault(place, []).append((r.ToolPart(spec=to_builtins(entry.spec), by=by), entry.spec))
    last = [name for name, (_, tool) in shown.items() if tool_flags(tool).listed_last]
    known, work.specs = work.specs, {}
    for name in (*(name for name in shown if name not in last), "", *last):
        yield from ahead.get(name, ())
        if name:
            yield _spec(work, known, *shown[name])[2:]


def _spec(work: Work, known: dict[int, Any], by: str, tool: Tool) -> tuple[Tool, str, r.ToolPart, ToolSpec]:
    """A tool as a request names it, made once for each tool object."""
    flags = tool_flags(tool)
    text = (flags.loaded_description if flags.deferred else None) or tool.description
    text = work.agent.prompts.get(f"tool/{tool.name}", text)
    made = known.get(id(tool))
    if made is None or made[0] is not tool or made[1] != text:
        spec = ToolSpec(
            name=tool.name, description=text, input_schema=tool.input_schema, deferred=flags.deferred
        )
        made = (tool, text, r.ToolPart(spec=to_builtins(spec), by=by), spec)
    return work.specs.setdefault(id(tool), made)


def _follow(built: Built, by: str, request: ModelRequest) -> None:
    """Note what the plugin `by` made of the request."""
    before = built.request
    if request.system != before.system:
        built.system = [r.SystemPart(text=request.system, by=by)]
    if request.tools is not before.tools:
        known = {msgspec.json.encode(part.spec): part for part in built.tools}
        specs = [to_builtins(spec) for spec in request.tools]
        built.tools = [known.get(msgspec.json.encode(spec)) or r.ToolPart(spec=spec, by=by) for spec in specs]
    if request.messages is not before.messages:
        old, new = list(before.messages), list(request.messages)
        start, same, shorter = 0, 0, min(len(old), len(new))
        while start < shorter and old[start] == new[start]:
            start += 1
        while same < shorter - start and old[-1 - same] == new[-1 - same]:
            same += 1
        edit = r.Edit(start=start, end=len(old) - same, messages=new[start : len(new) - same], by=by)
        if edit.messages or edit.start < edit.end:
            built.edits = [*built.edits, edit]
    built.request = request


async def _record(work: Work, built: Built, digest: bytes) -> None:
    """Record what differs from the last request, and give the request its digest."""
    parameters = {name: getattr(built.request, name) for name in PARAMETERS}
    plain = msgspec.json.decode(
        msgspec.json.encode({k: v for k, v in parameters.items() if v not in (None, "", ())})
    )
    now = {"system": built.system, "tools": built.tools, "parameters": plain, "edits": built.edits}
    if not work.composed:
        seqs, work.composed = (
            work.state.composed,
            {"system": None, "tools": None, "parameters": None, "edits": []},
        )
        for record in await work.outside.records(sorted(set(seqs.values()))):
            work.composed |= {
                name: getattr(record.data, name) for name, seq in seqs.items() if seq == record.seq
            }
    if changed := {name: value for name, value in now.items() if value != work.composed[name]}:
        work.put(r.ContextComposed(**changed))
        work.composed = now
    made = sha256(msgspec.json.encode(now, order="deterministic") + digest).digest()
    built.digest = urlsafe_b64encode(made).rstrip(b"=").decode()
