"""Whatever a tool gives and a model says, the call has one result and the next request is sound."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from noeta.core.extension import Extension
from noeta.core.messages import Image, Text, ToolResult
from noeta.core.tool import Display, Park, ToolContext, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import call, reply

pytestmark = pytest.mark.anyio


class Gives:
    """Gives what a test says, at once or when it is resumed."""

    name, description, read_only, clearable = "give", "A tool.", False, False
    input_schema: ClassVar[Any] = {"type": "object"}

    def __init__(self, output: Any, later: Any = None) -> None:
        self._output, self._later = output, later

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output: ToolOutput = self._output
        return output

    async def resume(self, input: dict[str, Any], ctx: ToolContext, outcome: Any) -> ToolOutput:
        output: ToolOutput = self._later
        return output


class Tools(Extension):
    name = "tools"

    def __init__(self, tool: Any) -> None:
        self._tool = tool

    def tools(self, view: TaskView) -> Any:
        return [self._tool]


async def result(bench: Harness, task: str) -> str:
    [finished] = await bench.log(task, "tool_finished")
    assert finished.message
    [block] = finished.message.content
    assert isinstance(block, ToolResult)
    return "".join(inner.text for inner in block.content)


BAD = "a\ud800b"
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
JUNK: dict[str, Any] = {
    "a question no log can hold": ToolOutput(park=Park(on="question", detail={"q": BAD})),
    "a question of objects": ToolOutput(park=Park(on="question", detail={"q": object()})),
    "an answer no log can hold": ToolOutput(end_turn=BAD),
    "content that is a text": ToolOutput(content="text"),  # type: ignore[arg-type]
    "no content": ToolOutput(content=None),  # type: ignore[arg-type]
    "content of objects": ToolOutput(content=[object()]),  # type: ignore[list-item]
    "a text that is none": ToolOutput(content=[Text(text=5)]),  # type: ignore[arg-type]
    "a display without end": ToolOutput(display=Display(kind="kv", data=ENDLESS)),
    "a display of objects": ToolOutput(display=Display(kind="kv", data=object())),
}


@pytest.mark.parametrize("output", JUNK.values(), ids=JUNK)
async def test_what_no_log_can_hold_is_an_error_result_and_the_task_goes_on(output: ToolOutput) -> None:
    bench = Harness([Tools(Gives(output))], [reply("", call("give")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert "give gave what no log can hold" in await result(bench, task)
    assert [record.data.text for record in await bench.log(task, "turn_done")] == ["Done."]


async def test_junk_given_at_an_interrupt_does_not_stop_the_interrupt() -> None:
    waits = ToolOutput(park=Park(on="question"))
    bench = Harness([Tools(Gives(waits, ToolOutput(end_turn=BAD)))], [reply("", call("give"))])
    task = await bench.start("go")
    await bench.run()
    await bench.interrupt(task)
    await bench.run()
    assert (await bench.kinds(task))[-1] == "interrupted"
    assert "no log can hold" in await result(bench, task)


async def test_a_result_of_blanks_is_sent_as_an_empty_one() -> None:
    bench = Harness([Tools(Gives(text_output(" \n")))], [reply("", call("give")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert await result(bench, task) == ""
    bench.provider.assert_done()


async def test_an_image_without_bytes_is_left_out() -> None:
    empty = Image(media_type="image/png")
    bench = Harness(
        [Tools(Gives(ToolOutput(content=[empty, Text(text="a")])))], [reply("", call("give")), "Done."]
    )
    task = await bench.start("go")
    await bench.run()
    assert await result(bench, task) == "a"


async def test_a_call_under_a_name_that_no_model_may_use_is_recorded_under_one_that_it_may() -> None:
    bench = Harness([Tools(Gives(text_output("x")))], [reply("", call("no such.tool")), "Done."])
    task = await bench.start("go")
    await bench.run()
    assert (await result(bench, task)).startswith("There is no tool 'no_such_tool'")
    bench.provider.assert_done()
