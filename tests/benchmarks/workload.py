"""The work that frameworks are compared by: turns of trivial steps, through a `Host`.

A step is one model call and the one call it asks for: an argument of 100 bytes, a result of 200, 100 bytes of
text beside the call. The model is a script in this process. The agent has one plugin with the tool, and as
many idle ones as are asked for.
"""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from sqlite_writes import place

from noeta import Agent, Extension, Host, TaskView, ToolContext, ToolOutput
from noeta.core.messages import Message, Text, ToolUse, Usage
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.tool import text_output
from noeta.toolkit.store import Store
from noeta_sqlite import SqliteStore

ARGUMENT, RESULT, TEXT = "x" * 100, "y" * 200, "z" * 100
AGENT, GOAL = "worker", "Do the scripted work."
IDLE = 10
USAGE = Usage(uncached=100, output=50)


class Echo:
    """The trivial tool. With `seconds` it takes that long."""

    name = "echo"
    description = "Gives back a text."
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    clearable = False

    def __init__(self, *, read_only: bool = False, wait: Callable[[], Any] | None = None) -> None:
        self.read_only = read_only
        self._wait = wait

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        """Give the result."""
        if self._wait:
            await self._wait()
        return text_output(RESULT)


class Tools(Extension):
    """The plugin that offers the tool."""

    name = "tools"

    def __init__(self, tool: Echo) -> None:
        self._tools = [tool]

    def tools(self, view: TaskView) -> Sequence[Any]:
        """The one."""
        return self._tools


def idle(count: int) -> list[Extension]:
    """Plugins that have a state, records and commands of their own, and nothing to do with a step."""

    def make(number: int) -> Extension:
        class Idle(Extension):
            name = f"idle{number}"

            def initial_state(self) -> dict[str, int]:
                return {}

            def reduce(self, state: dict[str, int], kind: str, data: Any) -> dict[str, int]:
                return state | {kind: state.get(kind, 0) + 1}

            async def commands(self, ctx: Any) -> Sequence[Any]:
                return ()

        return Idle()

    return [make(number) for number in range(count)]


class Model:
    """Asks for the tool, `wide` times, in each of the first `steps` replies of a conversation.

    `called` is told of every request.
    """

    def __init__(
        self, steps: int, *, wide: int = 1, called: Callable[[ModelRequest], object] | None = None
    ) -> None:
        calls = [ToolUse(id="", name="echo", input={"text": ARGUMENT})] * wide
        self._asks = ModelResponse(
            message=Message(role="assistant", content=[Text(text=TEXT), *calls]),
            stop_reason="tool_use",
            usage=USAGE,
        )
        self._ends = ModelResponse(
            message=Message(role="assistant", content=[Text(text="done")]), usage=USAGE
        )
        self.steps, self._wide, self._called = steps, wide, called

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelResponse]:
        """The reply, at once."""
        if self._called:
            self._called(request)
        # The goal, and for each step a reply and its results.
        done = (len(request.messages) - 1) // (1 + self._wide)
        yield self._asks if done < self.steps else self._ends

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Nobody asks."""
        return None

    def model_info(self, model: str) -> Any:
        """Nobody asks."""
        return None

    async def aclose(self) -> None:
        """Nothing is open."""


def host(model: Model, *, tool: Echo | None = None, plugins: int = IDLE, **settings: Any) -> Host:
    """A host with the agent."""
    offering = Tools(tool or Echo())
    agent = Agent(AGENT, model="m", prompt="You are a benchmark agent.", plugins=[offering, *idle(plugins)])
    return Host([agent], providers={"scripted": model}, **settings)


@asynccontextmanager
async def stored(where: str) -> AsyncIterator[dict[str, Any]]:
    """The store of a host, in ``memory``, or in a file on ``disk`` or on ``tmpfs``; with its `folder`."""
    if where == "memory":
        yield {}
        return
    with place(where == "disk") as folder:
        store = SqliteStore(folder / "noeta.db")
        try:
            yield {"store": store}
        finally:
            await store.aclose()


class Took:
    """Seconds by the clock and of CPU that a block took."""

    def __enter__(self) -> Self:
        gc.collect()
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu


async def turn(working: Host, model: Model, steps: int) -> Took:
    """Run one turn of so many steps."""
    model.steps = steps
    with Took() as took:
        outcome = await working.run(AGENT, GOAL)
    if outcome.status != "done" or outcome.usage.output != (steps + 1) * USAGE.output:
        raise ValueError(f"the turn was not what it should be: {outcome}")
    return took


def file_of(store: Store) -> Path:
    """The file of an SQLite store."""
    assert isinstance(store, SqliteStore)
    return store.path
