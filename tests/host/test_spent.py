"""What a task spends is told by plugin and model."""

from __future__ import annotations

import pytest

from noeta.core.extension import Extension
from noeta.core.messages import Usage, user
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.view import TaskView
from noeta.host.spent import Spent, spent
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import reply
from noeta.toolkit.errors import UnknownTask

pytestmark = pytest.mark.anyio


class Titles(Extension):
    name = "titles"

    async def on_start(self, view: TaskView) -> None:
        assert view.complete
        await view.complete(ModelRequest(model="small", messages=[user("A title?")]))


async def test_steps_and_plugins_are_counted_apart() -> None:
    def answer(text: str, tokens: int) -> ModelResponse:
        return ModelResponse(message=reply(text), usage=Usage(uncached=tokens, output=1))

    bench = Harness(
        [Titles()], [answer("Title", 5), answer("One.", 100), answer("T", 6), answer("Two.", 200)]
    )
    task = await bench.start("a")
    await bench.run()
    await bench.post(task, "b")
    await bench.run()
    assert await spent(bench.store, task) == [
        Spent(plugin="titles", model="small", calls=2, usage=Usage(uncached=11, output=2)),
        Spent(plugin="", model="model", calls=2, usage=Usage(uncached=300, output=2)),
    ]
    assert (
        sum((one.usage for one in await spent(bench.store, task)), Usage()) == (await bench.state(task)).usage
    )
    fork = await bench.start(history_from=task, history_through=(await bench.row(task)).last_seq)
    assert await spent(bench.store, fork) == []
    with pytest.raises(UnknownTask):
        await spent(bench.store, "nobody")
