"""The readers of the host run without an event loop over a reader of a store, with the same answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from noeta import Agent, Host, ToolSet, function_tool
from noeta.host.agents import Agents
from noeta.host.at_once import at_once, each_at_once, looking
from noeta.host.explain import why
from noeta.host.goal import goal
from noeta.host.prefix import prefix_breaks
from noeta.host.reading import Reader as Reading
from noeta.host.reading import records
from noeta.host.rebuild import rebuilt
from noeta.host.spent import spent
from noeta.testing import ScriptedProvider, call, reply
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.store import Reader, UnknownTask


class Sync:
    """A reader over a store in memory, whose methods do wait, each on a loop of its own."""

    def __init__(self, store: InMemoryStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            async def wait() -> Any:
                return await method(*args, **kwargs)

            return anyio.run(wait)

        return call


@function_tool(read_only=True)
def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is green"


def made() -> tuple[InMemoryStore, str, str]:
    """Return a store with a task that made a call, and a task that continues it."""
    store = InMemoryStore()
    script = [reply("", call("look", place="The hill")), "It is green.", "Still."]

    async def run() -> tuple[str, str]:
        agent = Agent("scout", model="test:model", plugins=[ToolSet([look])])
        async with Host([agent], store=store, providers={"test": ScriptedProvider(script)}) as host:
            task = (await host.run("scout", "How is the hill?")).task
            fork = await host.fork(task)
            await host.post(fork, "And now?")
            await host.wait(fork)
            return task, fork

    return store, *anyio.run(run)


def test_each_reader_says_the_same_with_and_without_a_loop() -> None:
    store, _, fork = made()
    reader: Reader = Sync(store)  # type: ignore[assignment]
    at, agents = looking(reader), Agents([])

    async def awaited() -> list[Any]:
        log = [each async for each in records(store, fork)]
        requests = [each.encoded async for each in rebuilt(store, fork)]
        state = await Reading(store, agents).state(fork)
        breaks, used = await prefix_breaks(store, fork), await spent(store, fork)
        return [log, requests, state, breaks, used]

    found = [
        list(each_at_once(records(at, fork))),
        [each.encoded for each in each_at_once(rebuilt(at, fork))],
        at_once(Reading(at, agents).state(fork)),
        at_once(prefix_breaks(at, fork)),
        at_once(spent(at, fork)),
    ]
    assert found == anyio.run(awaited)
    [made_call] = [ref.id for each in found[0] if each.kind == "model_replied" for ref in each.data.calls]
    assert at_once(why(at, fork, made_call)).status == "done"


def test_the_goal_is_the_first_message_of_the_task_itself() -> None:
    store, task, fork = made()
    reader: Reader = Sync(store)  # type: ignore[assignment]
    assert goal(reader, reader.task(task)) == "How is the hill?"
    assert goal(reader, reader.task(fork)) == "And now?"


def test_the_goal_of_a_task_that_nobody_took_up_is_in_its_inbox() -> None:
    store = InMemoryStore()

    async def start() -> str:
        async with Host([Agent("scout")], store=store, works=False) as host:
            return await host.start("scout", "Wait for me.")

    task = anyio.run(start)
    reader: Reader = Sync(store)  # type: ignore[assignment]
    assert goal(reader, reader.task(task)) == "Wait for me."


def test_what_waits_is_no_work_for_at_once() -> None:
    async def items() -> AsyncIterator[int]:
        yield 1
        await Never()

    class Never:
        def __await__(self) -> Any:
            yield

    found = each_at_once(items())
    assert next(found) == 1
    with pytest.raises(RuntimeError, match="it needs an event loop"):
        next(found)


def test_what_it_raises_comes_out() -> None:
    reader: Reader = Sync(InMemoryStore())  # type: ignore[assignment]
    with pytest.raises(UnknownTask):
        at_once(Reading(looking(reader), Agents([])).state("nobody"))
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = looking(reader).nothing_like_it  # type: ignore[attr-defined]
