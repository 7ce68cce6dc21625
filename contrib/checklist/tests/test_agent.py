"""The plugin in an agent: found by its name, and the same wherever the worker dies."""

import pytest

from noeta import (
    Agent,
    Ask,
    Extension,
    Gate,
    Host,
    TaskView,
    ToolContext,
    ToolSet,
    ToolUse,
    function_tool,
)
from noeta.testing import Outside, ScriptedProvider, call, check_crashes, reply
from noeta_checklist import Checklist

pytestmark = pytest.mark.anyio

SCRIPT = [
    reply("", call("deploy", place="live")),
    reply("", call("tick", item="The tests pass.", how="I ran them.")),
    reply("", call("tick", item="The change was read once more.", how="I read it.")),
    reply("", call("deploy", place="live")),
    reply("", call("deploy", place="test")),
    "Done.",
]


def deploying(outside: Outside) -> ToolSet:
    @function_tool
    async def deploy(place: str, ctx: ToolContext) -> str:
        """Put the program into service."""
        outside.act(ctx.idempotency_key, place)
        return "It runs."

    return ToolSet([deploy])


async def test_an_agent_names_it_and_deploys_once_the_list_is_done() -> None:
    outside, provider = Outside(), ScriptedProvider(SCRIPT)
    agent = Agent("shipper", model="test:model", plugins=["checklist", deploying(outside)])
    async with Host([agent], providers={"test": provider}) as host:
        outcome = await host.run("shipper", "Deploy it.")
        assert outcome.text == "Done."
    assert outside.done() == ["'live'"]
    provider.assert_done()


async def test_a_call_that_a_person_refuses_leaves_the_list_done() -> None:
    class AsksFirst(Extension):
        name = "asks-first"

        async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
            return Ask("Deploy now?") if call.name == "deploy" else None

    outside, provider = Outside(), ScriptedProvider([*SCRIPT[1:4], SCRIPT[3], "Done."])
    agent = Agent("shipper", model="test:model", plugins=["checklist", AsksFirst(), deploying(outside)])
    async with Host([agent], providers={"test": provider}) as host:
        outcome = await host.run("shipper", "Deploy it.")
        for verdict in ("deny", "allow"):
            [asked] = outcome.asks
            await host.answer(asked.task, asked.call, verdict, by="ann")
            outcome = await host.wait(asked.task)
    assert outcome.text == "Done."
    assert outside.done() == ["'live'"]


async def test_it_is_the_same_wherever_the_worker_dies() -> None:
    def plugins(outside: Outside) -> list[Extension]:
        return [Checklist(), deploying(outside)]

    await check_crashes(plugins, SCRIPT, "Deploy it.")
