"""What each hook says, one at a time."""

import pytest

from noeta import Deny, ToolUse
from noeta.testing import Rehearsal, call
from noeta.toolkit.records import ToolStarted
from noeta_checklist import Checklist

pytestmark = pytest.mark.anyio


def rehearsal() -> Rehearsal:
    return Rehearsal(Checklist(items=["One.", "Two."], tools=["Deploy*"]))


async def refusal(task: Rehearsal, tool: str, id: str = "c9_0") -> str:
    answers = await task.hooks.before_tool(task, ToolUse(id=id, name=tool, input={}))
    return "".join(gate.reason for _, gate in answers if isinstance(gate, Deny))


async def test_a_tool_waits_until_the_list_is_done() -> None:
    task = rehearsal()
    assert await refusal(task, "deploy_all") == "First do this and tick it off: One. Two."
    output = await task.run(call("tick", item="Two.", how="I looked."))
    assert output.text == "Left: One."
    assert await refusal(task, "deploy_all") == "First do this and tick it off: One."
    output = await task.run(call("tick", item="One.", how="I looked again."))
    assert output.text == "Everything is ticked off."
    assert await refusal(task, "deploy_all") == ""


async def test_a_call_that_is_let_through_uses_the_list_up() -> None:
    task = rehearsal()
    for item in ("One.", "Two."):
        task.log.note("checklist", "ticked", {"item": item, "how": "so"})
    assert await refusal(task, "deploy", "c9_0") == ""
    assert await refusal(task, "deploy", "c9_0") == ""
    assert [(record.kind, record.data.call) for record in task.records] == [("used", "c9_0")]
    assert await refusal(task, "deploy", "c12_0") == "First do this and tick it off: One. Two."


async def test_a_call_that_somebody_else_refuses_gives_the_list_back() -> None:
    task = rehearsal()
    for item in ("One.", "Two."):
        task.log.note("checklist", "ticked", {"item": item, "how": "so"})
    [first, second] = task.log.reply("", calls=2)
    assert await refusal(task, "deploy", first) == ""
    assert "Two." in await refusal(task, "deploy", second)
    task.log.finish(first, "The person refused this call.", is_error=True)
    assert await refusal(task, "deploy", second) == ""
    task.log.run(second, "It runs.")
    assert "Two." in await refusal(task, "deploy", "c20_0")


async def test_a_call_that_fails_has_used_the_list() -> None:
    task = rehearsal()
    for item in ("One.", "Two."):
        task.log.note("checklist", "ticked", {"item": item, "how": "so"})
    [id] = task.log.reply("", calls=1)
    assert await refusal(task, "deploy", id) == ""
    task.log.put(ToolStarted(call=id))
    task.log.finish(id, "The worker was lost.", is_error=True)
    assert "Two." in await refusal(task, "deploy", "c20_0")


async def test_other_tools_do_not_wait_and_tick_never_does() -> None:
    assert await refusal(rehearsal(), "read") == ""
    assert await refusal(Rehearsal(Checklist(tools=["*"])), "tick") == ""


def test_the_prompt_names_the_list_and_the_tools() -> None:
    task = rehearsal()
    [(_, [part])] = task.hooks.context(task)
    assert part.text == "Before you call one of Deploy*, do this and tick it off with tick:\n- One.\n- Two."
