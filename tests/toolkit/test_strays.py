"""A cancel or an exit that code brought about itself is a failure of that code, and stops nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar, NoReturn

import anyio
import pytest

from noeta.core.extension import Extension
from noeta.core.fold import Folder, Reducer
from noeta.core.messages import ToolResult
from noeta.core.ports import ModelRequest
from noeta.core.records import Erased, TaskCreated, TurnDoneRecord
from noeta.core.tool import ToolContext, ToolFlags, ToolOutput
from noeta.core.view import TaskView
from noeta.host.beside import beside
from noeta.host.models import Models
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.harness import Harness
from noeta.testing.log_writer import LogWriter
from noeta.testing.scripted_provider import ScriptError, call, reply
from noeta.toolkit.provider import ProviderError
from noeta.toolkit.strays import fault

pytestmark = pytest.mark.anyio


async def exits() -> NoReturn:
    raise SystemExit(3)


async def waits_for_what_is_cancelled() -> None:
    raise asyncio.CancelledError


STRAYS = [exits, waits_for_what_is_cancelled]


class Acts:
    name, description, clearable, flags = "act", "A tool.", False, ToolFlags()
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def __init__(self, does: Callable[[], Any], *, read_only: bool) -> None:
        self._does, self.read_only = does, read_only

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        output: ToolOutput = await self._does()
        return output


class Tools(Extension):
    name = "tools"

    def __init__(self, tool: Any) -> None:
        self._tool = tool

    def tools(self, view: TaskView) -> Any:
        return [self._tool]


@pytest.mark.parametrize("does", STRAYS)
@pytest.mark.parametrize("read_only", [True, False])
async def test_one_from_a_tool_is_an_error_result(does: Callable[[], Any], read_only: bool) -> None:
    bench = Harness([Tools(Acts(does, read_only=read_only))], [reply("", call("act")), "Done."])
    task = await bench.start("go")
    await bench.run()
    [finished] = await bench.log(task, "tool_finished")
    assert finished.message
    [block] = finished.message.content
    assert isinstance(block, ToolResult)
    assert block.is_error
    assert (await bench.row(task)).reason == "idle"


@pytest.mark.parametrize("does", STRAYS)
async def test_one_from_a_hook_is_a_failure_of_its_plugin(does: Callable[[], Any]) -> None:
    class Starts(Extension):
        name = "starts"

        async def on_start(self, view: TaskView) -> None:
            await does()

    bench = Harness([Starts()], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    [failed] = await bench.log(task, "plugin_failed")
    assert (failed.data.plugin, failed.data.hook) == ("starts", "on_start")
    assert (await bench.row(task)).reason == "idle"


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=["exit", "cancel"])
@pytest.mark.parametrize("part", ["initial_state", "reduce", "reduce-of-core", "erased", "continue_state"])
def test_one_from_a_fold_breaks_the_state_of_its_plugin_alone(
    log: LogWriter, part: str, error: BaseException
) -> None:
    def folds(name: str, fails: bool) -> Reducer:
        def at(place: str, value: Any = None) -> Any:
            if fails and place == part:
                raise error
            return value

        def reduce(state: Any, kind: str, data: Any) -> Any:
            return at(
                {"note": "reduce", "turn_done": "reduce-of-core", "core.erased": "erased"}.get(kind, "")
            )

        types: dict[str, Any] = {"initial": lambda: at("initial_state"), "folds": ("core", "notes")}
        return Reducer(name=name, reduce=reduce, continued=lambda state: at("continue_state", state), **types)

    log.note("notes", "note", 1)
    log.put(TurnDoneRecord())
    log.put(Erased(seqs=[1]))
    if part == "continue_state":
        log.put(TaskCreated(task="u", agent="a", root="u", history_from="t", history_through=4))
    broken = log.fold([folds("bad", True), folds("good", False)]).broken
    assert list(broken) == ["bad"]
    assert type(error).__name__ in broken["bad"].why


def test_a_person_who_stops_the_process_while_a_log_is_folded_is_heard(log: LogWriter) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Folder([Reducer(name="slow", initial=stopped)]).start()


@pytest.mark.parametrize("does", STRAYS)
async def test_one_from_a_provider_is_a_failure_of_the_call(does: Callable[[], Any]) -> None:
    class Provider:
        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            yield await does()

    models = Models({"a": Provider()}, FrozenClock(), SeededIds(), patience=0.0)  # type: ignore[dict-item]
    with anyio.fail_after(10), pytest.raises(ProviderError, match=r"CancelledError|SystemExit"):
        await models(ModelRequest(model="a:one"), lambda piece: None)


@pytest.mark.parametrize("does", STRAYS)
async def test_one_from_a_part_of_a_task_at_work_ends_it_with_an_error(does: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="was not stopped"):
        await beside(does, anyio.sleep_forever)


async def test_a_cancel_from_outside_and_a_failed_test_go_on() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            fault(error)
        raise AssertionError("the cancel was taken for a fault")
    with pytest.raises(ScriptError):
        fault(ScriptError("the script is over"))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancel_of_the_loop_itself_goes_on() -> None:
    outcome: list[BaseException] = []

    async def cancelled() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError as error:
            try:
                fault(error)
            except asyncio.CancelledError as again:
                outcome.append(again)

    task = asyncio.get_running_loop().create_task(cancelled())
    await anyio.lowlevel.checkpoint()
    task.cancel()
    await task
    assert len(outcome) == 1
