"""What a hook sees, and how it stages work: records, posts, children.

Nothing staged is written by the hook. When it returns the kernel gives the records their place in the log and
folds them; when it raises they are dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from noeta.core.codec import Encoded, encode, placed
from noeta.core.conversation import Item
from noeta.core.entries import Erased, core_entry
from noeta.core.errors import NotStorable
from noeta.core.extension import Extension
from noeta.core.fold import Folder, Reducer
from noeta.core.gates import Deny
from noeta.core.hooks import Hooks
from noeta.core.items import NewEntry, Post, post_of
from noeta.core.messages import Message, ToolResult, unfit
from noeta.core.parts import Offer
from noeta.core.ports import Effort, ModelRequest, ModelResponse
from noeta.core.records import CORE, Compacted, CoreNotices, Recorded, TaskCreated
from noeta.core.state import TaskState
from noeta.core.text import checked_key
from noeta.core.tool import Tool, tool_flags

if TYPE_CHECKING:
    from noeta.toolkit.agent import Agent
    from noeta.toolkit.env import ExecEnv


class Spawn(Struct, frozen=True, kw_only=True):
    """A child task on its way: its id, what it runs and what it is told.

    `call` spawned it, and waits for it unless it runs in the `background`. `history_from` is the task whose
    conversation it continues, up to `history_through` (None: all that is durable).
    """

    child: str
    agent: str
    prompt: str | Message
    config: Mapping[str, Any] = {}
    queue: str = ""
    key: str = ""
    call: str = ""
    background: bool = False
    history_from: str = ""
    history_through: int | None = None


@dataclass
class TaskView(CoreNotices):
    """What a hook sees of a task: the folded state, read only, and ways to record.

    One view serves a plugin as long as a worker holds the task. A field that is None is not there: the hook
    runs outside a task's step.

    - `complete` calls the model through the task's providers, retried, and is no step.
    - `post` puts something into this task's own inbox at once. `count_tokens` counts one user message.
    - `read_log` reads another task's records (an unknown task reads as empty), `child_tasks` a task's
      children.
    - `extensions` are the task's plugins in the agent's order, `agents` what this worker can run.
    - `allowed_tools` (None: every tool) and `denied_tools` are the agent's lists.
    - `keeps_tail` and `kept`, while a compaction asks for residents: whether messages stay after its summary,
      and which.
    - `spill_dir` is where long outputs are saved, `identity` the line requests open with.
    - `next_request` gives the request the next model call would start from, without reminders and
      `before_model`.
    - `pending`, `creates` and `enqueued` are what this hook staged.
    """

    state: TaskState
    _: KW_ONLY
    complete: Callable[[ModelRequest], Awaitable[ModelResponse]] | None = None
    env: ExecEnv | None = None
    post: Callable[..., Awaitable[None]] | None = None
    count_tokens: Callable[[str], Awaitable[int | None]] | None = None
    read_log: Callable[..., Awaitable[Sequence[Recorded]]] | None = None
    child_tasks: Callable[[str], Awaitable[list[str]]] | None = None
    extensions: Sequence[Extension] = ()
    model: str = ""
    agents: Mapping[str, Agent] = field(default_factory=dict)
    allowed_tools: Sequence[str] | None = None
    denied_tools: Sequence[str] = ()
    keeps_tail: bool | None = None
    kept: Sequence[Message] = ()
    spill_dir: str | None = None
    identity: str = ""
    effort: Effort | None = None
    next_request: Callable[[], ModelRequest] | None = None
    pending: list[Encoded] = field(default_factory=list)
    creates: list[Spawn] = field(default_factory=list)
    enqueued: list[Post] = field(default_factory=list)
    plugin: str = ""
    offer: Offer = field(default_factory=Offer)
    folder: Folder = field(default_factory=lambda: Folder(()))
    prompts: Mapping[str, str] = field(default_factory=dict)
    new_id: Callable[[], str] = field(default_factory=lambda: map("n{}".format, count()).__next__)
    admit: Callable[[Spawn], Spawn] = lambda spawn: spawn
    views: Views | None = None
    hook: str = ""
    _outer: list[Any] = field(default_factory=list)

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.state.task

    @property
    def cwd(self) -> str:
        """The config's ``cwd``, else the environment's, else the empty text."""
        return self.state.config.get("cwd") or (self.env.cwd if self.env else "")

    def ext_state(self, name: str) -> Any:
        """A plugin's folded state, None for a plugin that is not there."""
        return self.state.states.get(name)

    def folded(self, reducers: Sequence[Reducer] | None = None) -> TaskState:
        """The state with every record pending on this view folded in, on a copy; with other `reducers` if
        given.
        """
        folder = self.folder if reducers is None else Folder(reducers)
        state = self.state.copy()
        for made in self.pending:
            folder.apply(state, placed(made, state.seq + 1, state.at).envelope)
        return state

    def prompt(self, name: str, default: str) -> str:
        """The task's text for a named prompt."""
        return self.prompts.get(name, default)

    def record(self, extension: str, kind: str, data: Any = None, *, message: Message | None = None) -> None:
        """Record an entry when the hook returns; with `message` it also joins the conversation.

        Raises `NotStorable` for what no log can hold and for a message that would spoil the conversation, and
        `ValueError` for a core record that is no entry.
        """
        self._check_open("record")
        if message and (why := unfit(message)):
            raise NotStorable("the message", why)
        data = core_entry(kind, data) if extension == CORE else data
        if isinstance(data, Erased):
            data = replace(data, along=[*data.along, *quoting(self.folded().conversation, data.seqs)])
        made = encode(0, 0.0, extension, kind, data, message=message, by=self.plugin, hook=self.hook)
        self.pending.append(made)

    def enqueue(
        self, body: str | Message | NewEntry, *, dedupe_key: str | None = None, task_id: str | None = None
    ) -> None:
        """Post to this task's inbox, or another existing task's, in the same append as the hook's records."""
        self._check_open("enqueue")
        task, key = checked_key(task_id or self.task_id, "the task"), dedupe_key or self.new_id()
        self.enqueued.append(post_of(task, checked_key(key, "the dedupe key"), body))

    def spawn(
        self,
        agent: str,
        prompt: str | Message,
        *,
        config: Mapping[str, Any] | None = None,
        queue: str | None = None,
        key: str = "",
    ) -> str:
        """Start a child task outside a tool call, in the same append; its id.

        The same key gives the same id, so a child is made once. Its end comes to the inbox.
        """
        self._check_open("spawn")
        key, config = key or self.new_id(), dict(config or {})
        child = child_id(self.task_id, key)
        # What no log can hold raises here, in the plugin that made it.
        post_of(child, checked_key(key, "the dedupe key"), prompt)
        encode(0, 0.0, CORE, TaskCreated.kind, TaskCreated(task=child, agent=agent, config=config, key=key))
        made = Spawn(child=child, agent=agent, prompt=prompt, config=config, queue=queue or "", key=key)
        self.creates.append(self.admit(replace(made, background=True)))
        return child

    def find_tool(self, name: str) -> Tool | None:
        """The tool this task offers under `name`. Calling its `run` directly is not gated again."""
        return self.offer.tools.get(name, ("", None))[1]

    def deferred_tool_names(self) -> list[str]:
        """The deferred tools this task offers, sorted."""
        return sorted(name for name, (_, tool) in self.offer.tools.items() if tool_flags(tool).deferred)

    def compacted(self, event: Compacted) -> None:
        """Record a compaction.

        Raises `ValueError` when it would drop a call that is not finished, keep half of a call and its
        result, or put in a message that spoils the conversation.
        """
        self._check_open("compacted")
        made = (*event.lead, *event.summary, *event.after)
        if why := split(self.state, event) or next(filter(None, map(unfit, made)), ""):
            raise ValueError(why)
        self.pending.append(encode(0, 0.0, CORE, Compacted.kind, event, by=self.plugin, hook=self.hook))

    async def residents(
        self, *, lead: bool = False, keeps_tail: bool | None = None, kept: Sequence[Message] = ()
    ) -> list[Message]:
        """Every plugin's `resident` (or `lead_resident`) messages; a failing plugin is left out.

        The plugins' time is not the asking hook's. Raises `RuntimeError` while such a round is under way.
        """
        if not self.views:
            return []
        ask = partial(self.views.hooks.residents, self.views, lead=lead)
        return await self.views.apart("residents", ask, keeps_tail=keeps_tail, kept=kept)

    async def compact_advice(
        self, trigger: Literal["manual", "auto"], instructions: str
    ) -> list[tuple[str, str | Deny]]:
        """What every plugin's `before_compact` says, with its name; as `residents`, one round at a time."""
        if not self.views:
            return []
        ask = partial(self.views.hooks.before_compact, self.views, trigger, instructions)
        return await self.views.apart("compact_advice", ask)

    def begin(self, hook: str) -> TaskView:
        """This view, on which `hook` runs from here; what it stages is its own, also inside another one."""
        self._outer.append((self.hook, self.pending, self.creates, self.enqueued))
        self.hook, self.pending, self.creates, self.enqueued = hook, [], [], []
        return self

    def end(self) -> None:
        """The hook is over and what it staged is used or dropped."""
        self.hook, self.pending, self.creates, self.enqueued = self._outer.pop()

    def _check_open(self, method: str) -> None:
        if not self.hook:
            raise RuntimeError(f"view.{method} works only while a hook runs; keep no view for later")


class Views:
    """The views of a task while a worker holds it, one for each plugin: the desk of their hooks.

    A subclass says what becomes of staged work (`settled`) and of failures. `fields` are what all views
    share. `by_plugin` are the views made so far. `behind` are the plugins with redelivery that failed on an
    event: they get no later one first.
    """

    def __init__(self, hooks: Hooks, **fields: Any) -> None:
        self.hooks: Hooks = hooks
        self.behind: set[str] = set()
        self._apart = ""
        self._fields: dict[str, Any] = {**fields, "extensions": hooks.extensions, "views": self}
        self.by_plugin: dict[str, TaskView] = {}

    def made(self, plugin: str) -> TaskView:
        """A new view of the plugin."""
        return TaskView(**self._fields, plugin=plugin)

    def settled(self, view: TaskView) -> None:
        """Take what a hook staged on `view`."""

    def failed(self, plugin: str, hook: str, error: str, policy: str) -> None:
        """Note that a hook failed and what was done about it."""

    def view(self, plugin: str, hook: str) -> TaskView:
        """The plugin's view, ready to stage work for `hook`."""
        view = self.by_plugin.get(plugin) or self.by_plugin.setdefault(plugin, self.made(plugin))
        return view.begin(hook)

    def settle(self, plugin: str, hook: str) -> bool:
        """The hook returned: what it staged is kept. Whether it staged anything."""
        view = self.by_plugin[plugin]
        try:
            self.settled(view)
            return bool(view.pending or view.creates or view.enqueued)
        finally:
            view.end()

    def drop(self, plugin: str, hook: str) -> None:
        """The hook failed: what it staged is gone."""
        self.by_plugin[plugin].end()

    def broken(self, plugin: str) -> str:
        """Why the plugin's state is frozen, else the empty text."""
        problem = self._fields["state"].broken.get(plugin)
        return problem.why if problem else ""

    def set(self, **fields: Any) -> None:
        """Change these fields of every view."""
        self._fields |= fields
        for view in self.by_plugin.values():
            vars(view).update(fields)

    async def apart(self, method: str, ask: Callable[[], Awaitable[list[Any]]], **fields: Any) -> list[Any]:
        """Ask other plugins for a hook, in a round that stands alone and takes nothing of its time.

        Meanwhile every view has these `fields`.
        """
        if self._apart:
            raise RuntimeError(f"view.{method} was called while view.{self._apart} runs; await that first")
        self._apart = method
        self.set(**fields)
        try:
            return await ask()
        finally:
            self._apart = ""
            self.set(keeps_tail=None, kept=())


def child_id(parent: str, key: str) -> str:
    """The id of the child that `parent` spawned under `key`: the same whoever asks and however often."""
    return sha256(f"{parent}\0{key}".encode()).hexdigest()[:20]


def quoting(items: Iterable[Item], seqs: Collection[int]) -> list[int]:
    """The seqs of the items that came in for the messages at `seqs`: those about one of them, and what was
    recalled for one before the next reply.
    """
    found, recalled = [], False
    for item in sorted(items, key=lambda item: item.seq):
        message = item.message
        if item.seq in seqs:
            recalled = True
        elif message.role == "assistant":
            recalled = False
        elif message.about in seqs or (recalled and message.origin == "memory"):
            found.append(item.seq)
    return found


def split(state: TaskState, event: Compacted) -> str:
    """Why a compaction would leave half of something behind, else the empty text."""
    if event.through > state.seq:
        return f"it reaches to seq {event.through}, and the log ends at {state.seq}"
    sides: dict[str, set[bool]] = {}
    for item in state.conversation:
        message = item.message
        results = [block.call for block in message.content if isinstance(block, ToolResult)]
        for call in (*(call.id for call in message.calls), *results):
            sides.setdefault(call, set()).add(item.seq > event.through or item.seq in event.keep)
    unfinished = {call.id for call in state.open_calls}
    for call, stays in sides.items():
        if len(stays) > 1:
            return f"it would keep only one of call {call} and its result"
        if call in unfinished and False in stays:
            return f"it would drop call {call}, which is not finished"
    return ""
