"""Effects outside the task that must happen once: sending, paying, calling a hook of another system.

A hook that does such a thing itself does it again after a crash, or has done it though its records were lost.
An `Outbox` writes down what is to be done in the same append as the reason for it, does it when that is
durable, and writes down that it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from noeta.core.extension import Extension
from noeta.core.items import NewEntry
from noeta.core.records import Recorded
from noeta.core.tool import ToolContext
from noeta.core.view import TaskView
from noeta.toolkit.record_types import record_types


class OutboxStaged(Struct, frozen=True, kw_only=True):
    """An effect waits. `id` is its key within the task. This record stands behind the seq `after`."""

    plugin: str
    id: str
    body: Any = None
    after: int = 0


class OutboxDone(Struct, frozen=True, kw_only=True):
    """The effect is delivered. This record stands behind the seq `after`."""

    plugin: str
    id: str
    after: int = 0


class OutboxMore(Struct, frozen=True, kw_only=True):
    """Comes through the inbox: the effect is durable and may still wait, and its own record is told."""

    plugin: str
    id: str


class OutboxState(Struct, frozen=True, kw_only=True):
    """The effects that wait, oldest first. A plugin with more state derives its own struct from this one.

    The next records stand behind the seq `floor`.
    """

    waiting: tuple[OutboxStaged, ...] = ()
    floor: int = 0


RECORDS: Mapping[str, type[Struct]] = record_types(OutboxStaged, OutboxDone, OutboxMore)
STAGED, DONE, MORE = RECORDS
Note = TypeVar("Note", OutboxStaged, OutboxDone, OutboxMore)


class Outbox(Extension):
    """A plugin that delivers effects. Implement `deliver`, and call `stage` in any hook or tool.

        class Mail(Outbox):
            name = "mail"

            async def deliver(self, view, key, body):
                await post("https://mail.example/send", body, headers={"Idempotency-Key": key})

            async def after_tool(self, view, call, output):
                self.stage(view, {"to": "ann", "text": output.text})
                return output

    What it promises, whatever crashes when:

    - An effect is delivered if and only if what was staged with it is in the log, and after that.
    - It is delivered again, with the same key, until it is in the log that it is done; then never again. So
      with an outside that drops a key it has seen, it happens exactly once.
    - Effects of a task are delivered in the order in which they were staged, one at a time. One that fails
      holds up the later ones and loses none. It is tried again after a minute, and then after twice the time
      each, up to an hour.
    - A task that continues this one delivers nothing that was staged here.

    A plugin with more state gives `State` and `initial_state` a struct derived from `OutboxState`. One that
    overrides `reduce`, `continue_state`, `on_event` or `delivered_through` calls `super()` in it.
    """

    State: ClassVar[Any] = OutboxState

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A kind that is not among the declared ones would be passed over.
        if cls.record_types is not None:
            type.__setattr__(cls, "record_types", {**RECORDS, **cls.record_types})

    async def deliver(self, view: TaskView, key: str, body: Any) -> None:
        """Do it. `key` is the same at each try, and no other effect of any task has it.

        To return means that it is done or given up. To raise, or to take longer than the 30 seconds of
        `on_event`, means that it is tried again.
        """
        raise NotImplementedError(f"plugin {self.name!r} has no deliver")

    def stage(self, at: TaskView | ToolContext, body: Any, *, key: str = "") -> str:
        """Have `body` (what JSON can say) delivered once what the hook or tool stages is durable; its key.

        What is staged twice under one `key` is delivered once, if the first one still waits. By default each
        body that a hook stages has a key of its own, and equal bodies of one call of a tool share theirs. In
        `on_event` give a key that names the event, since an event may come again.

        The body stays in the log. What is staged on the `TaskEnded` of the task is dropped.
        """
        if isinstance(at, ToolContext):
            id = key or f"{at.call_id}-{sha256(msgspec.json.encode(body)).hexdigest()[:16]}"
            after = 0
        else:
            id, after = key or at.new_id(), at.state.seq
        at.record(self.name, STAGED, OutboxStaged(plugin=self.name, id=id, body=body, after=after))
        if isinstance(at, TaskView) and at.hook == "on_event":
            # A plugin is not told of what it records in `on_event`.
            self._go_on(at, id)
        return f"{at.task_id}:{self.name}:{id}"

    def initial_state(self) -> Any:
        """Nothing waits."""
        return OutboxState()

    def reduce(self, state: Any, kind: str, data: Any) -> Any:
        """Put in what is staged; take out what is done, however often it was staged meanwhile."""
        if kind == STAGED and (new := self._own(data, OutboxStaged)):
            floor = max(state.floor, new.after)
            return replace(state, waiting=(*state.waiting, replace(new, after=floor)), floor=floor)
        if kind == DONE and (done := self._own(data, OutboxDone)):
            left = tuple(effect for effect in state.waiting if effect.id != done.id)
            return replace(state, waiting=left, floor=max(state.floor, done.after))
        return state

    def continue_state(self, state: Any) -> Any:
        """What waits is the business of the task that staged it."""
        return replace(state, waiting=())

    def delivered_through(self, view: TaskView) -> int | None:
        """While something waits, a seq before it."""
        state = view.ext_state(self.name)
        return state.waiting[0].after if state.waiting else None

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        """Deliver the oldest effect, when told of one that is durable and waits."""
        if recorded.extension != self.name or recorded.kind not in (STAGED, MORE):
            return
        told = self._own(recorded.data, OutboxMore)
        waiting: tuple[OutboxStaged, ...] = view.ext_state(self.name).waiting
        # A frozen state would not learn that it is done.
        if told is None or self.name in view.state.broken or all(told.id != it.id for it in waiting):
            return
        # One at a time: were a second one to fail, that the first is done would be dropped with it. The ones
        # that wait behind what was told may not be durable yet.
        first = waiting[0]
        await self.deliver(view, f"{view.task_id}:{self.name}:{first.id}", first.body)
        view.record(self.name, DONE, OutboxDone(plugin=self.name, id=first.id, after=view.state.seq))
        if first.id != told.id:
            self._go_on(view, told.id)

    def _go_on(self, view: TaskView, id: str) -> None:
        view.enqueue(NewEntry(self.name, MORE, OutboxMore(plugin=self.name, id=id)))

    def _own(self, data: Any, type_: type[Note]) -> Note | None:
        """`data` as what it is, None when it is another plugin's that this one folds as well."""
        note = msgspec.convert(data, type_, from_attributes=True) if data is not None else None
        return note if note and note.plugin == self.name else None
