"""A program with a worker, that may be killed at any time: `office.py DATABASE FOLDER`.

What its tools do outside lands in files of the folder, one line for each time. A file named ``deadly`` in it
makes the model's client, or a tool, end the process.
"""

from __future__ import annotations

import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar

import anyio

from noeta import (
    Agent,
    Ask,
    Extension,
    Gate,
    Host,
    Park,
    TaskView,
    ToolContext,
    ToolFlags,
    ToolOutput,
    ToolUse,
    text_output,
)
from noeta.testing import ScriptedProvider, call, reply
from noeta_sqlite import SqliteStore

DATABASE, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])


def deadly(what: str) -> bool:
    named = FOLDER / "deadly"
    return named.exists() and named.read_text() == what


class Tool:
    description = "A tool of the office."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    read_only = clearable = False
    flags = ToolFlags(retry_safe=True)


class Order(Tool):
    """Orders something, once for each key."""

    name = "order"

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        book = FOLDER / "orders"
        known = book.read_text().splitlines() if book.exists() else []
        line = f"{ctx.idempotency_key} {input['item']}"
        with (FOLDER / "starts").open("a") as starts:
            starts.write(f"{line}\n")
        await anyio.sleep(0.05)
        if deadly("tool"):
            os._exit(1)
        if line not in known:
            with book.open("a") as orders:
                orders.write(f"{line}\n")
        await anyio.sleep(0.05)
        return text_output(f"ordered {input['item']}", item=input["item"])


class Delegate(Tool):
    name = "delegate"

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        assert ctx.spawn
        return ToolOutput(park=Park(on="children", keys=[ctx.spawn("clerk", "Order the paper.")]))

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        return text_output(" ".join(end.text for end in (outcome or {}).values()))


class Remind(Tool):
    name = "remind"

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        ctx.set_timer("later", float(input["at"]), "Time is up.")
        return text_output("set")


class Office(Extension):
    """Tools, and how many orders they made, which is a fold."""

    name = "office"

    def initial_state(self) -> int:
        return 0

    def reduce(self, state: int, kind: str, data: Any) -> int:
        return state + 1

    def tools(self, view: TaskView) -> Any:
        return [Order(), Delegate(), Remind()]

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        if output.meta.get("item"):
            view.record("office", "ordered", output.meta["item"])
        return output


class Approvals(Extension):
    """What the boss orders, a person has to approve."""

    name = "approvals"

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        return (
            Ask(f"Order {call.input['item']}?")
            if call.name == "order" and view.state.agent == "boss"
            else None
        )


BOSS = [
    call("order", item="desk"),
    call("delegate"),
    call("remind", at=0),
    "I wait.",
    call("order", item="lamp"),
    "All is ordered.",
]
CLERK = [call("order", item="paper"), "The paper is ordered."]


def answer(request: Any) -> Any:
    """Say what comes next, by how often the model has spoken."""
    if deadly("model"):
        os._exit(1)
    messages = list(request.messages)
    script = CLERK if "Order the paper." in messages[0].text else BOSS
    said = script[sum(message.role == "assistant" for message in messages)]
    return said if isinstance(said, str) else reply("", said)


async def main() -> None:
    async with aclosing(SqliteStore(DATABASE)) as store:
        agents = [Agent(name, model="m:m", plugins=[Office(), Approvals()]) for name in ("boss", "clerk")]
        providers = {"m": ScriptedProvider(respond=answer)}
        async with Host(agents, store=store, providers=providers, lease=1.0):
            await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main)
