"""What a step asks of the store and how much of the history it touches: counts that do not grow."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest

from noeta.core import conversation
from noeta.core.conversation import Item
from noeta.core.extension import Extension
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.tool import ToolContext, ToolOutput, text_output
from noeta.core.view import TaskView
from noeta.host.host import Host
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.scripted_provider import ScriptedProvider, call, reply
from noeta.toolkit.agent import Agent
from noeta.toolkit.in_memory import InMemoryStore

pytestmark = pytest.mark.anyio


class Echo:
    name = "echo"
    description = "Gives back a text."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    clearable = False

    def __init__(self, read_only: bool) -> None:
        self.read_only = read_only

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return text_output("text")


class Tools(Extension):
    name = "tools"

    def __init__(self, read_only: bool) -> None:
        self.offers: list[object] = []
        self._tools = [Echo(read_only)]
        self.asked = 0

    def tools(self, view: TaskView) -> Any:
        self.asked += 1
        return list(self._tools)

    async def before_tool(self, view: TaskView, call: Any) -> None:
        self.offers.append(view.offer)


class Model(ScriptedProvider):
    """Asks for the tool as often as it has to, and looks at no message: what is counted is the kernel's.

    `marks` are the counts at each of its calls.
    """

    def __init__(self, steps: int, counts: Counter[str]) -> None:
        super().__init__()
        self.marks: list[Counter[str]] = []
        self._steps, self._counts = steps, counts

    async def stream(self, request: ModelRequest) -> Any:
        going = len(self.marks) < self._steps
        self.marks.append(self._counts.copy())
        message = reply("again", call("echo")) if going else reply("done")
        yield ModelResponse(message=message, stop_reason="tool_use" if going else "end_turn")

    def between(self, first: int, last: int) -> dict[str, int]:
        """What was counted from one call to another."""
        counted = self.marks[last].copy()
        counted.subtract(self.marks[first])
        return {name: count for name, count in counted.items() if count}


class Counting(InMemoryStore):
    """Counts what it is asked for, by name."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._asked: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            self._asked[name] += 1
        return super().__getattribute__(name)


async def turn(steps: int, tools: Tools, counts: Counter[str] | None = None) -> Model:
    """A turn of so many steps, with the counts at each call of its model: the store's; or `counts`."""
    clock, ids = FrozenClock(), SeededIds()
    store = Counting(clock, ids)
    model: Any = Model(steps, store._asked if counts is None else counts)
    agent = Agent("agent", model="model", plugins=[tools])
    async with Host([agent], providers={"": model}, clock=clock, ids=ids, store=store) as host:
        assert (await host.run("agent", "go")).text == "done"
        model.marks.append(store._asked)
    return model


@pytest.mark.parametrize(("read_only", "appends"), [(False, 2), (True, 1)])
async def test_a_step_is_two_appends_or_one_when_it_only_reads_and_nothing_else(
    read_only: bool, appends: int
) -> None:
    model = await turn(25, Tools(read_only))
    assert model.between(5, 25) == {"append": 20 * appends}


async def test_plugins_are_asked_for_their_tools_once_a_step() -> None:
    tools = Tools(False)
    await turn(25, tools)
    assert tools.asked == 26


async def test_a_claim_that_came_to_rest_is_not_given_up_again() -> None:
    asked = (await turn(1, Tools(False))).marks[-1]
    assert asked["claim"]
    assert not asked["release"]


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often messages were decoded, and items of conversations were read."""
    counts: Counter[str] = Counter()
    decode, data = conversation.decode_message, Item.data.fget
    assert data

    def decoding(raw: bytes) -> Any:
        counts["decoded"] += 1
        return decode(raw)

    def reading(item: Item) -> bytes:
        counts["read"] += 1
        given: bytes = data(item)
        return given

    monkeypatch.setattr(conversation, "decode_message", decoding)
    monkeypatch.setattr(Item, "data", property(reading))
    return counts


async def test_a_step_touches_as_many_messages_late_in_a_turn_as_early(touched: Counter[str]) -> None:
    model = await turn(125, Tools(False), touched)
    early, late = model.between(5, 25), model.between(105, 125)
    assert early == late
    assert set(early) == {"read"}
    assert max(early.values()) <= 20 * 8


async def test_what_is_offered_stays_one_object_while_it_stays_the_same() -> None:
    tools = Tools(False)
    await turn(5, tools)
    assert len(tools.offers) == 5
    assert len({id(offer) for offer in tools.offers}) == 1
