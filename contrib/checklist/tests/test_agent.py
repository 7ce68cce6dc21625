"""The plugin in an agent: found by its name, and the same wherever the worker dies."""

import pytest

from noeta import Agent, Extension, Host, ToolContext, ToolSet, function_tool
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


async def test_it_is_the_same_wherever_the_worker_dies() -> None:
    def plugins(outside: Outside) -> list[Extension]:
        return [Checklist(), deploying(outside)]

    await check_crashes(plugins, SCRIPT, "Deploy it.")
