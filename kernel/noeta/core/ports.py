"""What the kernel needs from its host: time, randomness, a model, a place to act."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from noeta.core.messages import Message, Usage

Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
"""How hard a model should think, where it can be told."""


class Clock(Protocol):
    """The only source of time for the kernel and for stores."""

    def now(self) -> float:
        """Epoch seconds. May jump; used for what people see and for timers."""

    def monotonic(self) -> float:
        """Seconds that never go back, from an arbitrary start; used for leases."""

    async def sleep(self, seconds: float) -> None:
        """Wait that long by `monotonic`."""


class Ids(Protocol):
    """The only source of randomness for the kernel and for stores."""

    def token(self) -> bytes:
        """16 random bytes, never given out before."""

    def new(self) -> str:
        """A short text for a new id, never given out before."""


class ToolSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as a request names it.

    `input_schema` is a JSON Schema. `deferred`: the model knows the name alone until a result refers to it.
    `extra` holds a vendor's own keys; an entry that is no tool, such as a mode switch, has only those.
    """

    name: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    deferred: bool = False
    extra: dict[str, Any] = {}


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One call of a model, in no vendor's terms.

    `messages` decodes as it is read; giving the same object on costs nothing. `tool_choice` is ``auto``,
    ``none``, ``any`` or a tool's name. With `output_schema` (JSON Schema) the reply is JSON of that form.
    `max_tokens` bounds the reply. `thinking` is ``adaptive``, ``disabled`` or empty for the model's own way.
    `cache_at` are the indexes of messages behind which the prompt should be cached. `extra` goes to the
    vendor as it is.
    """

    model: str
    system: str = ""
    messages: Sequence[Message] = ()
    tools: Sequence[ToolSpec] = ()
    tool_choice: str = "auto"
    output_schema: dict[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    effort: Effort | None = None
    thinking: str = ""
    cache_at: Sequence[int] = ()
    extra: Mapping[str, Any] = {}


class ModelResponse(Struct, frozen=True, kw_only=True):
    """A complete reply.

    `stop_reason` is ``end_turn``, ``tool_use``, ``max_tokens``, ``refusal`` or a vendor's word.
    """

    message: Message
    stop_reason: str = "end_turn"
    usage: Usage = Usage()
    model: str = ""
    request_id: str = ""


class Delta(Struct, frozen=True, kw_only=True):
    """A piece of a reply under way: of the `index`-th block, for a tool the name and a piece of its input."""

    kind: Literal["text", "thinking", "tool"]
    index: int = 0
    text: str = ""
    name: str = ""


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What is known of a model: its window and longest reply in tokens, None where nobody knows.

    `features` are words such as ``tools``, ``images``, ``thinking``, ``deferred``. `prices` are dollars for a
    million tokens, by the fields of `Usage`.
    """

    window: int | None = None
    max_output: int | None = None
    features: frozenset[str] = frozenset()
    prices: Mapping[str, float] = {}


class Provider(Protocol):
    """A model API.

    Raises only `ProviderError`, and never in the middle of a message it has given.
    """

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta | ModelResponse]:
        """Call the model. The `ModelResponse` comes last, once; closing early ends the call."""

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """The exact number of input tokens of `request`, None when the API cannot tell."""

    def model_info(self, model: str) -> ModelInfo:
        """What is known of `model`. Never raises."""

    async def aclose(self) -> None:
        """Close. Idempotent."""


class FileStat(Struct, frozen=True, kw_only=True):
    """What is at a path: ``file``, ``dir`` or ``other``, with its size in bytes and last change in epoch
    seconds.

    `mode` is that of POSIX, without the type.
    """

    kind: Literal["file", "dir", "other"]
    size: int
    changed: float
    mode: int = 0


class DirEntry(Struct, frozen=True, kw_only=True):
    """One name in a directory; a link is what it points to, or ``other`` when that is not there."""

    name: str
    kind: Literal["file", "dir", "other"]
    link: bool = False


class Process(Protocol):
    """A process that runs, in a group of its own."""

    def output(self) -> AsyncIterator[bytes]:
        """What it writes to standard output and standard error, as it comes."""

    async def wait(self) -> int:
        """Its exit status once it has ended; minus the signal that ended it."""

    async def stop(self, grace: float = 5.0) -> None:
        """End the whole group: TERM, and KILL after `grace` seconds."""


class ExecEnv(Protocol):
    """Where tools act: this machine, a container, another machine.

    Paths are text. Methods raise `OSError` as the system does, besides what is said here.
    """

    cwd: str

    def path(self, text: str) -> str:
        """The absolute path that `text` names from `cwd`; ``~`` and ``..`` resolved, links not."""

    async def real(self, path: str) -> str:
        """The path with all links resolved, also where its last parts do not exist: what gates compare."""

    async def stat(self, path: str) -> FileStat | None:
        """What is there, None when nothing is."""

    async def read(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Up to `limit` bytes from `offset`."""

    async def write(
        self, path: str, data: bytes, *, if_sha256: str | None = None, create: bool = False
    ) -> None:
        """Replace the whole file at once, keeping its mode.

        Raises `Changed` when its bytes no longer have the sha-256 `if_sha256` (hex), and `FileNotFoundError`
        for a new file without `create`.
        """

    async def listdir(self, path: str) -> list[DirEntry]:
        """The entries of a directory, by name."""

    async def mkdir(self, path: str) -> None:
        """Make a directory and those above it. Idempotent."""

    async def remove(self, path: str) -> None:
        """Remove a file or an empty directory."""

    async def rename(self, old: str, new: str) -> None:
        """Rename, replacing a file at `new`."""

    async def which(self, name: str) -> str | None:
        """The path of a program, None when there is none."""

    def process(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> AbstractAsyncContextManager[Process]:
        """Run a program; leaving the context stops its group. `env` comes on top of a clean environment."""


class CheckSchema(Protocol):
    """Says whether a value fits a JSON Schema: None, or what is wrong with it, in a sentence."""

    def __call__(self, schema: dict[str, Any], value: object) -> str | None: ...


class Spill(Protocol):
    """Saves a text too long to be sent: the preview that stands in for it. `name` begins the file's name."""

    def __call__(self, text: str, name: str) -> str: ...
