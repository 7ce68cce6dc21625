"""The workload by langgraph's prebuilt agent. Runs in an environment of its own."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from scripted import ARGUMENT, GOAL, PROMPT, RESULT, TEXT, Taken, folder, main


class Model(BaseChatModel):
    """Asks for the tool in each of the first `steps` replies, and notes each call's messages and time."""

    steps: int
    seen: ClassVar[list[tuple[int, float]]] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Model:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        self.seen.append((len(messages), time.perf_counter()))
        done = sum(isinstance(message, AIMessage) for message in messages)
        said = AIMessage(content=TEXT, tool_calls=[asked(done)]) if done < self.steps else AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _agenerate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


def asked(number: int) -> dict[str, Any]:
    return {"name": "echo", "args": {"text": ARGUMENT}, "id": f"c{number}"}


@tool
async def echo(text: str) -> str:
    """Gives back a text."""
    return RESULT


async def agent(model: Model, file: str | None, stack: AsyncExitStack) -> Any:
    """An agent that keeps its state in the file, or nowhere."""
    saver: Any = None
    if file is not None:
        saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(file))
        await saver.setup()
        # The file is in WAL mode; this makes it as durable as the others.
        await saver.conn.execute("PRAGMA synchronous = FULL")
    return create_agent(model, tools=[echo], system_prompt=PROMPT, checkpointer=saver)


async def go(working: Any, thread: str, steps: int, **more: Any) -> None:
    """Run a turn, which has to take so many steps."""
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 10 * steps + 100}
    state = await working.ainvoke({"messages": [HumanMessage(GOAL)]}, config, **more)
    results = sum(isinstance(message, ToolMessage) for message in state["messages"])
    if results != steps:
        raise ValueError(f"{results} steps were taken, and not {steps}")


async def turn(steps: int, durable: bool) -> dict[str, float]:
    """One turn of so many steps, after a short one."""
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(folder()))
        more = {"durability": "sync"} if durable else {}
        warm, file = (str(place / name) if durable else None for name in ("warm.db", "store.db"))
        await go(await agent(Model(steps=3), warm, stack), "t", 3, **more)
        working = await agent(Model(steps=steps), file, stack)
        with Taken() as taken:
            await go(working, "t", steps, **more)
    return taken.shown()


async def agents(count: int, steps: int) -> dict[str, float]:
    """So many agents at once."""
    async with AsyncExitStack() as stack:
        working = await agent(Model(steps=steps), None, stack)
        await go(working, "warm", steps)
        with Taken() as taken:
            await asyncio.gather(*(go(working, f"t{i}", steps) for i in range(count)))
    return taken.shown()


async def resume(messages: int) -> dict[str, float]:
    """Open a conversation of so many messages, and go on with it up to the next call of the model."""
    with folder() as place:
        file, config = str(Path(place) / "store.db"), {"configurable": {"thread_id": "t"}}
        async with AsyncExitStack() as stack:
            kept: list[Any] = [HumanMessage(GOAL)]
            for i in range(messages // 2):
                kept += [AIMessage(TEXT, tool_calls=[asked(i)]), ToolMessage(RESULT, tool_call_id=f"c{i}")]
            working = await agent(Model(steps=0), file, stack)
            await working.aupdate_state(config, {"messages": kept})
        async with AsyncExitStack() as stack:
            await go(await agent(Model(steps=0), None, stack), "warm", 0)
            Model.seen.clear()
            with Taken() as taken:
                began = time.perf_counter()
                working = await agent(Model(steps=0), file, stack)
                await working.ainvoke({"messages": [HumanMessage(GOAL)]}, config)
        ((seen, at),) = Model.seen
        if seen < messages:
            raise ValueError(f"the model got {seen} messages, and not {messages}")
    return taken.shown() | {"ready": at - began}


if __name__ == "__main__":
    cases = {"turn": turn, "agents": agents, "resume": resume}
    main({name: lambda _case=case, **given: asyncio.run(_case(**given)) for name, case in cases.items()})
