"""The workload by noeta-sdk. Runs in that package's environment: it takes the import name `noeta` too."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from noeta.sdk import (
    Client,
    HostConfig,
    LLMRequest,
    LLMResponse,
    Options,
    TextBlock,
    ToolResult,
    ToolUseBlock,
    Usage,
    tool,
)
from noeta.sdk.providers import ModelSpec
from scripted import ARGUMENT, DESCRIPTION, GOAL, PROMPT, RESULT, SCHEMA, TEXT, Taken, folder, main

MODEL = "scripted"


class Model:
    """Asks for the tool in each of the first `steps` replies of a conversation."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def complete(self, request: LLMRequest) -> LLMResponse:
        usage = Usage(uncached=100, output=50)
        done = sum(message.role == "assistant" for message in request.messages)
        if done >= self._steps:
            return LLMResponse(stop_reason="end_turn", content=[TextBlock(text="done")], usage=usage)
        call = ToolUseBlock(call_id=f"c{done}", tool_name="echo", arguments={"text": ARGUMENT})
        return LLMResponse(stop_reason="tool_use", content=[TextBlock(text=TEXT), call], usage=usage)


@tool(name="echo", version="1", input_schema=SCHEMA, description=DESCRIPTION)
def echo(arguments: dict[str, str], ctx: object) -> ToolResult:
    return ToolResult(success=True, output=RESULT)


def client(steps: int, durable: bool, stack: ExitStack) -> Client:
    place = Path(stack.enter_context(folder()))
    options = Options(
        system_prompt=PROMPT, allowed_tools=(echo,), plugins=(), permission_mode="bypassPermissions"
    )
    # A window that no conversation here fills: a compaction would be other work.
    spec = ModelSpec(real_model_id=MODEL, context_window=10**9, max_output_tokens=10_000)
    path = str(place / "store.db") if durable else ":memory:"
    config = HostConfig(storage_path=path, extra_models={MODEL: spec})
    return stack.enter_context(
        Client(
            options,
            provider=Model(steps),
            workspace_dir=place,
            host_config=config,
            model=MODEL,
            allowed_models=[MODEL],
        )
    )


def turn(steps: int, durable: bool) -> dict[str, float]:
    """One turn of so many steps, after a short one."""
    with ExitStack() as stack:
        client(3, durable, stack).start(goal=GOAL)
        working = client(steps, durable, stack)
        with Taken() as taken:
            outcome = working.start(goal=GOAL)
        check(working, outcome.task_id, steps)
    return taken.shown()


def agents(count: int, steps: int) -> dict[str, float]:
    """So many agents, one after the other: its core is not concurrent."""
    with ExitStack() as stack:
        client(3, False, stack).start(goal=GOAL)
        working = client(steps, False, stack)
        with Taken() as taken:
            for _ in range(count):
                outcome = working.start(goal=GOAL)
        check(working, outcome.task_id, steps)
    return taken.shown()


def check(working: Client, task: str, steps: int) -> None:
    results = sum(type(item).__name__ == "ToolResultView" for item in working.messages(task))
    if results != steps:
        raise ValueError(f"{results} steps were taken, and not {steps}")


if __name__ == "__main__":
    main({"turn": turn, "agents": agents})
