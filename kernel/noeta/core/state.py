"""What a task's log folds to."""

from __future__ import annotations

from copy import copy
from typing import Any, Literal

import msgspec
from msgspec import Struct

from noeta.core.conversation import Conversation
from noeta.core.log import Timer
from noeta.core.messages import Usage
from noeta.core.records import Answer, ChildEnded, Plugin


class Problem(Struct, frozen=True, kw_only=True):
    """Something in a log that could not be used: where, and why."""

    seq: int
    why: str


class Skipped(Struct, frozen=True, kw_only=True):
    """Records of one kind that the fold passed over: how many, and the first one's seq and reason."""

    count: int
    first: int
    why: str


class Call(Struct, frozen=True, kw_only=True):
    """A call of the last reply.

    `status` is ``open``, ``started``, ``parked``, ``answered`` or ``done``. `seq` is the reply's, `index` the
    place in it. `input` is what it was rewritten to (None: what the reply says), `end_turn` the answer with
    which its result ends the turn. `park` counts its waits, `on` and `keys` say what the last one was for
    (``approval``, ``question`` or ``children``), `answer` and `ends`
    what came of it. `inherited`: the reply was made in the task that this one continues.
    """

    id: str
    name: str
    seq: int
    index: int
    status: Literal["open", "started", "parked", "answered", "done"] = "open"
    attempts: int = 0
    park: int = 0
    on: str = ""
    keys: list[str] = []
    detail: dict[str, Any] = {}
    answer: Answer | None = None
    ends: dict[str, ChildEnded] = {}
    inherited: bool = False
    input: dict[str, Any] | None = None
    end_turn: str | None = None


class Child(Struct, frozen=True, kw_only=True):
    """A child task, and the call that spawned it. It is `over` when its end came."""

    agent: str
    call: str = ""
    background: bool = False
    over: bool = False


class Turn(Struct, frozen=True, kw_only=True):
    """The turn under way: the seq of the message it began with, its replies so far, its continues by
    reason, and the tools called since the person's last message: whether one succeeded.
    """

    seq: int
    steps: int = 0
    continues: dict[str, int] = {}
    tools: dict[str, bool] = {}


class Core(Struct, kw_only=True):
    """The part of a task's state that belongs to the kernel, without the conversation.

    `seq` is that of the last record folded. `composed` maps each part of a request's context to the seq of
    the record that set it. `context_usage` is the usage of the last reply since a compaction. `failures`
    counts model failures since the last reply and `retry_at` is when the next try is due. `newer` is set by a
    core record of a later version: the task can be read, not run. `corrupt` is set by a core record that
    cannot be read.
    """

    seq: int = 0
    at: float = 0.0
    task: str = ""
    agent: str = ""
    config: dict[str, Any] = {}
    parent: str = ""
    root: str = ""
    key: str = ""
    queue: str = ""
    one_shot: bool = False
    history_from: str = ""
    history_through: int = 0
    plugins: list[Plugin] = []
    turn: Turn | None = None
    calls: dict[str, Call] = {}
    children: dict[str, Child] = {}
    timers: dict[str, Timer] = {}
    usage: Usage = Usage()
    context_usage: Usage | None = None
    composed: dict[str, int] = {}
    failures: int = 0
    retry_at: float | None = None
    fence: int = 0
    erasing: list[int] = []
    ended: str = ""
    newer: Problem | None = None
    corrupt: Problem | None = None
    skipped: dict[str, Skipped] = {}


class TaskState(Core, kw_only=True):
    """The folded state of a task.

    `states` holds each plugin's own state by name. `broken` names the plugins whose `reduce` or
    `initial_state` raised: their state is frozen where it was.
    """

    conversation: Conversation = msgspec.field(default_factory=Conversation)
    states: dict[str, Any] = {}
    broken: dict[str, Problem] = {}

    def copy(self) -> TaskState:
        """A state that can be folded on without changing this one.

        Costs the live calls, children and timers.
        """
        other = copy(self)
        other.conversation = self.conversation.copy()
        for name in _DICTS:
            setattr(other, name, dict(getattr(self, name)))
        return other

    @property
    def live_children(self) -> list[str]:
        """The children that have not ended."""
        return [id for id, child in self.children.items() if not child.over]

    @property
    def open_calls(self) -> list[Call]:
        """The calls of the last reply that have no result yet, in order."""
        return [call for call in self.calls.values() if call.status != "done"]


_DICTS = ("calls", "children", "timers", "composed", "skipped", "states", "broken")
