"""Tools: what one is, what it may declare, what it gives back, and what it sees while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from noeta.core.messages import Image, Text, ToolReference
from noeta.core.ports import Effort, ModelRequest, ModelResponse
from noeta.core.records import CoreNotices, Recorded

if TYPE_CHECKING:
    from noeta.toolkit.env import ExecEnv
    from noeta.toolkit.keep import KeptClaim

MAX_ATTEMPTS = 3
"""How often a `retry_safe` call is started at most."""
RESULT_CEILING_CHARS = 50_000
"""The longest text of a result that is sent as it is; `ToolFlags.max_result_chars` may only lower it."""


@dataclass(frozen=True)
class ToolFlags:
    """What a tool declares besides its form. Each default is the careful one.

    - `deferred`: named to the model by name only and sent with defer_loading, until it is loaded.
    - `search_hint`: words by which a search for tools also finds it; never sent.
    - `loaded_description`: sent instead of the description while the tool goes with defer_loading.
    - `listed_last`: sent after the other tools: a changing set at the end of the cached prefix.
    - `run_last`: runs after the reply's other calls.
    - `past_agent_lists`: offered whatever the agent's allow and deny lists say.
    - `retry_safe`: running it again changes nothing outside, so a call that a crash left unfinished runs
      again, up to `MAX_ATTEMPTS` starts.
    - `silent_reply_after`: an empty reply after a ``call``, or a ``success``, of this tool since the person's
      last message ends the turn.
    - `unchecked_input`: input goes to the tool unchecked.
    - `safe_while_planning`: not read-only, yet it changes no file and nothing outside the task.
    - `max_result_chars`: a longer text result is saved to a file and sent as a preview; None exempts a tool
      that bounds its own result.
    """

    deferred: bool = False
    search_hint: str = ""
    loaded_description: str | None = None
    listed_last: bool = False
    run_last: bool = False
    past_agent_lists: bool = False
    retry_safe: bool = False
    silent_reply_after: Literal["call", "success"] | None = None
    unchecked_input: bool = False
    safe_while_planning: bool = False
    max_result_chars: int | None = RESULT_CEILING_CHARS


NO_FLAGS = ToolFlags()


class Park(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call waits for.

    With ``question`` a person answers and `detail` is what front ends show; with ``children`` the call waits
    until the child tasks with the ids `keys` have all ended. The tool needs a `resume`.
    """

    on: Literal["question", "children"]
    keys: list[str] = []
    detail: dict[str, Any] = {}


class Display(Struct, frozen=True, kw_only=True):
    """How a front end may show a result.

    `kind` is ``markdown``, ``code``, ``diff``, ``table``, ``progress`` or ``kv`` and says what `data` holds.
    `fallback` is plain text for a front end that does not know the kind.
    """

    kind: str
    data: Any = None
    fallback: str = ""


class ToolOutput(Struct, kw_only=True):
    """What a call gives back.

    `content` is what the model gets. `meta` is recorded for front ends and plugins and never sent. With
    `park` there is no result yet: the call waits. `end_turn` ends the turn once this reply's results have
    landed, with that text as the answer. `block_list`: sent as a list of blocks even when it is plain text.
    """

    content: list[Text | Image | ToolReference] = []
    is_error: bool = False
    meta: dict[str, Any] = {}
    display: Display | None = None
    park: Park | None = None
    end_turn: str | None = None
    block_list: bool = False

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, Text))


def text_output(text: str, *, is_error: bool = False, **meta: Any) -> ToolOutput:
    """An output of one text, with `meta` recorded beside it."""
    return ToolOutput(content=[Text(text=text)], is_error=is_error, meta=meta)


class Tool(Protocol):
    """Something a model can call.

    A tool may also have `flags` (`ToolFlags`) and these methods:

    - ``async resume(input, ctx, outcome) -> ToolOutput``: required of a tool that parks. `outcome` is the
      `Answer` to a question, ``{child_id: ChildEnded}`` for children, None when the wait was withdrawn.
    - ``async recover(input, ctx) -> ToolOutput | None``: for a call that a crash left unfinished, its result,
      looked up by `ctx.idempotency_key`; None when it cannot be told. Asked before `retry_safe` counts.
    - ``async rule_inputs(input, view) -> Sequence[(input, allow_too)]``: other inputs that permission rules
      also judge the call as; those with `allow_too` count for allowing as well.
    """

    @property
    def name(self) -> str:
        """The name the model calls it by."""

    @property
    def description(self) -> str:
        """What the model is told. The prompt ``tool/<name>`` overrides it."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the input; checked before any gate, unless `unchecked_input`."""

    @property
    def read_only(self) -> bool:
        """It only reads and holds no shared state: it may run beside other read-only calls of a reply."""

    @property
    def clearable(self) -> bool:
        """Its result can be fetched again, so an old one may be cleared from the context."""

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        """Run the call. An exception becomes an error result that names it."""


def tool_flags(tool: Tool) -> ToolFlags:
    """The flags of `tool`, `NO_FLAGS` when it has none."""
    flags: ToolFlags = getattr(tool, "flags", NO_FLAGS)
    return flags


@dataclass
class ToolContext(CoreNotices):
    """What a running tool sees.

    `state` holds every plugin's folded state by name, read only. `record(extension, kind, data)` records an
    entry right before the call's end; `spawn` stages a child task, created atomically with that. Both are
    dropped when the tool raises, and kept when it parks. A field that is None is not there: the tool runs
    outside a task's step.

    `spill_dir` is where full outputs too large to return go. `keep` keeps the task's claim with this worker.
    `tasks` and `task` read rows of the store, `read_log` another task's records. `by_model` is False when a
    plugin runs the tool itself. `approved`: a person allowed this call; `allowed_outright`: a permission
    layer did, with nobody asked. `complete` calls the model, retried, and is no step. `progress` tells who
    watches live what the call is doing; it is never recorded.
    """

    task_id: str
    call_id: str
    env: ExecEnv
    record: Callable[..., None]
    _: KW_ONLY
    state: Mapping[str, Any]
    root_id: str = ""
    model: str = ""
    identity: str = ""
    effort: Effort | None = None
    by_model: bool = True
    approved: bool = False
    allowed_outright: bool = False
    spill_dir: str | None = None
    spawn: Callable[..., str] | None = None
    post: Callable[..., Awaitable[None]] | None = None
    keep: Callable[[], KeptClaim] | None = None
    tasks: Callable[..., Awaitable[Any]] | None = None
    task: Callable[..., Awaitable[Any]] | None = None
    read_log: Callable[..., Awaitable[Sequence[Recorded]]] | None = None
    prompt: Callable[[str, str], str] = lambda name, default: default
    count_tokens: Callable[[str], Awaitable[int | None]] | None = None
    complete: Callable[[ModelRequest], Awaitable[ModelResponse]] | None = None
    progress: Callable[[str], None] | None = None

    @property
    def idempotency_key(self) -> str:
        """The same for every run of this call, on any worker."""
        return f"{self.task_id}:{self.call_id}"
