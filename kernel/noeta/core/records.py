"""What a record says: the kernel's own kinds, and a record as plugins and front ends see it.

The kernel's kinds belong to the extension ``core``: facts, which the kernel writes, and entries, which
plugins write through `record("core", ...)` (`noeta.core.entries`). Everything else is a plugin's. Names of
kinds and fields are final: new fields have defaults, new meaning is a new kind. How a record becomes bytes is
the business of `noeta.core.codec`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from noeta.core.entries import CORE as CORE
from noeta.core.entries import ENTRY_KINDS as ENTRY_KINDS
from noeta.core.entries import Continue as Continue
from noeta.core.entries import CoreNotices as CoreNotices
from noeta.core.entries import Erased as Erased
from noeta.core.entries import Fact as Fact
from noeta.core.entries import Notice as Notice
from noeta.core.entries import TimerCleared as TimerCleared
from noeta.core.entries import TimerSet as TimerSet
from noeta.core.messages import Message, Usage

NULL = Raw(b"null")
ERASED_KIND = "core.erased"
STONES = frozenset({"received", "continue", "compacted"})
"""Core kinds whose records still change the state after their content was erased."""
VERSION = 1
"""The newest schema version of the kernel's kinds that this kernel reads and writes."""


class Recorded(Struct, frozen=True, kw_only=True):
    """One record of a log, decoded.

    `at` is epoch seconds and only informs; the order is `seq`. `data` is a struct of this module for a core
    kind, else builtins or what the plugin declares. `message` is there when the record joined the
    conversation. `by` and `hook` name the plugin and the hook that made an entry. `erased`: the content was
    taken out.
    """

    seq: int
    at: float
    extension: str
    kind: str
    data: Any = None
    message: Message | None = None
    by: str = ""
    hook: str = ""
    erased: bool = False


class Plugin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin as a task's log remembers it."""

    name: str
    version: str = ""
    required: bool = False


class TaskCreated(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The first record of a task: what it is, where its history comes from, which plugins it began with."""

    kind = "task_created"
    task: str
    agent: str
    config: dict[str, Any] = {}
    parent: str = ""
    root: str = ""
    key: str = ""
    queue: str = ""
    one_shot: bool = False
    history_from: str = ""
    history_through: int = 0
    plugins: list[Plugin] = []


class Received(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """One inbox item, and its message when it has one. `n` is its number in the inbox, `key` its dedupe key.

    `item` is its kind (`ITEMS`) and `data` its payload. An answer and a child's end have records of their
    own.
    """

    kind = "received"
    n: int
    key: str
    item: str
    data: Raw = NULL


class SystemPart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of the system prompt and the plugin behind it."""

    text: str
    by: str = ""


class ToolPart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of a request's tool list (the fields of a `ToolSpec`) and the plugin behind it."""

    spec: dict[str, Any]
    by: str = ""


class Edit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Messages `start` to `end` (exclusive) of a request were replaced by `messages` before it was sent."""

    start: int
    end: int
    messages: list[Message]
    by: str = ""


class ContextComposed(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """What a request is built from besides the conversation; None means unchanged since the last one."""

    kind = "context_composed"
    system: list[SystemPart] | None = None
    tools: list[ToolPart] | None = None
    parameters: dict[str, Any] | None = None
    edits: list[Edit] | None = None


class CallRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of a reply: its id and the tool's name."""

    id: str
    name: str


class ModelReplied(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A complete reply; its message is the envelope's.

    `built_at` is the seq its request was built from, `request` the request's sha-256 (in base64url without
    padding, since every step has one), `ms` the milliseconds.
    """

    kind = "model_replied"
    built_at: int
    request: str = ""
    model: str = ""
    stop_reason: str = ""
    usage: Usage = Usage()
    calls: list[CallRef] = []
    ms: int = 0


class ModelFailed(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A model call failed. `retry_at` (epoch seconds) is when it is tried again; None means not at all.

    `built_at` and `request` say what was sent, as in `ModelReplied`.
    """

    kind = "model_failed"
    category: str
    detail: str = ""
    attempt: int = 1
    retry_at: float | None = None
    built_at: int = 0
    request: str = ""


class ModelCalled(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin called the model outside a step."""

    kind = "model_called"
    plugin: str
    model: str = ""
    usage: Usage = Usage()
    ms: int = 0


class Opinion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one plugin said about a call: its verdict, why, and the rule behind it (`source`)."""

    by: str
    verdict: str
    reason: str = ""
    source: str = ""
    detail: dict[str, Any] = {}


class Gated(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Every opinion about a call, in plugin order, and the index of the one that decided, if any did."""

    kind = "gated"
    call: str
    opinions: list[Opinion]
    winner: int | None = None


class ToolStarted(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A call is about to run for the `attempt`-th time."""

    kind = "tool_started"
    call: str
    attempt: int = 1


class ToolFinished(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A call has its result: the envelope's message. `meta` and `display` are for front ends and plugins."""

    kind = "tool_finished"
    call: str
    is_error: bool = False
    meta: dict[str, Any] = {}
    display: dict[str, Any] | None = None
    end_turn: str | None = None


class ToolParked(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A call waits, for the `park`-th time, on a ``question`` or on ``children`` (`keys`: their ids)."""

    kind = "tool_parked"
    call: str
    park: int
    on: str
    keys: list[str] = []
    detail: dict[str, Any] = {}


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person's answer to the `park`-th question of a call: a verdict, or values for its questions."""

    call: str
    park: int
    verdict: str = ""
    values: dict[str, Any] = {}
    by: str = ""
    at: float = 0.0
    reason: str = ""
    end_turn: bool = False
    remember: dict[str, Any] | None = None


class Answered(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """An answer arrived. `late`: the call was settled already, so it had no effect."""

    kind = "answered"
    n: int
    key: str
    answer: Answer
    late: bool = False


class ChildSpawned(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A child task exists.

    `call` is the call it was spawned by, if any; `background`: no call waits for it.
    """

    kind = "child_spawned"
    child: str
    agent: str
    key: str
    call: str = ""
    background: bool = False


class ChildEnded(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A child's end arrived: its status (``done``, ``failed`` or ``cancelled``) and what it handed back."""

    kind = "child_ended"
    child: str
    status: str
    text: str = ""
    data: Any = None
    reason: str = ""
    n: int = 0
    key: str = ""


class Compacted(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A compaction: the items up to seq `through`, but for those in `keep`, make room.

    In their place stand `lead`, `summary`, the kept items and `after`; items later than `through` stay behind
    them.
    """

    kind = "compacted"
    through: int
    summary: list[Message] = []
    keep: list[int] = []
    lead: list[Message] = []
    after: list[Message] = []
    trigger: str = "auto"


class PluginFailed(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A plugin's hook raised or took too long, and what was done about it."""

    kind = "plugin_failed"
    plugin: str
    hook: str
    error: str
    policy: str


class TurnDoneRecord(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The turn is over. `text` is its answer."""

    kind = "turn_done"
    reason: str = ""
    text: str = ""


class TurnFailedRecord(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The turn failed."""

    kind = "turn_failed"
    reason: str
    detail: str = ""


class Interrupted(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A person stopped the turn."""

    kind = "interrupted"
    by: str = ""


class Claimed(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A worker took the task up.

    `plugins` is what it runs with, when that differs from the last record of it.
    """

    kind = "claimed"
    fence: int
    worker: str = ""
    plugins: list[Plugin] | None = None


class TaskEnded(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The last record of a task: ``done``, ``failed`` or ``cancelled``, and what it hands back."""

    kind = "task_ended"
    status: str
    text: str = ""
    data: Any = None
    reason: str = ""


CORE_KINDS: dict[str, type[Fact]] = ENTRY_KINDS | {
    t.kind: t
    for t in (
        *(TaskCreated, Received, ContextComposed, ModelReplied, ModelFailed, ModelCalled),
        *(Gated, ToolStarted, ToolFinished, ToolParked, Answered, ChildSpawned, ChildEnded),
        *(Compacted, PluginFailed, TurnDoneRecord, TurnFailedRecord, Interrupted, Claimed, TaskEnded),
    )
}
