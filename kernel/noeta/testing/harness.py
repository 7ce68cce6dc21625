"""A host in a test: agents with real plugins and a scripted model over a real store, step by step.

    bench = Harness([Notes()], ["Hello."])
    task = await bench.start("hi")
    await bench.run()
    assert (await bench.row(task)).status == "waiting"

Nothing happens by itself: `run` takes up what is ready, as one worker, until nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import anyio

from noeta.core.codec import decode, recorded
from noeta.core.extension import Extension
from noeta.core.items import Cancel, Erase, Interrupt, NewEntry, Post, encode_body, post_of
from noeta.core.messages import Message
from noeta.core.ports import Delta, ModelRequest, ModelResponse
from noeta.core.records import Answer, Recorded, TaskCreated
from noeta.core.runner import Runner
from noeta.core.state import TaskState
from noeta.host.agents import Agents
from noeta.host.birth import new_task
from noeta.host.claimed import Means, take_up
from noeta.host.registry import Registry
from noeta.host.snapshot import Snapshots
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.nowhere import Nowhere
from noeta.testing.scripted_provider import Reply, Respond, ScriptedProvider
from noeta.toolkit.agent import Agent
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.history import history, whole
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.schema import check_schema
from noeta.toolkit.store import Store, TaskRow


class Harness:
    """A store, a model that says what `script` says, and a worker that runs when it is told to.

    `plugins` make up the agent ``agent``; `agents` are more. `env` is where tools act, else they are nowhere.
    `store`, `clock`, `ids`, `provider` and `env` may be shared with another harness: that is a restart. A
    shared `registry` checks each class of plugins once.
    """

    def __init__(
        self,
        plugins: Iterable[Extension] = (),
        script: Iterable[Reply | Respond] = (),
        *,
        agents: Sequence[Agent] = (),
        store: Store | None = None,
        clock: FrozenClock | None = None,
        ids: SeededIds | None = None,
        provider: ScriptedProvider | None = None,
        registry: Registry | None = None,
        env: ExecEnv | None = None,
        **fields: Any,
    ) -> None:
        self.clock: FrozenClock = clock or FrozenClock()
        self.ids: SeededIds = ids or SeededIds()
        self.store: Store = store or InMemoryStore(self.clock, self.ids)
        self.provider: ScriptedProvider = provider or ScriptedProvider(script)
        self.live: list[object] = []
        self.worker: str = self.ids.new()
        agent = Agent("agent", model="model", prompt="You are an agent.", plugins=list(plugins), **fields)
        around = {"env": env or Nowhere()}
        self.means: Means = Means(
            store=self.store,
            agents=Agents([agent, *agents], registry),
            clock=self.clock,
            ids=self.ids,
            model=self._model,
            check_schema=check_schema,
            spill=lambda text, name: f"{text[:100]} ... saved as {name}",
            view=around,
            context=around,
        )
        self._changed: Callable[[], None] = lambda: None

    async def _model(self, request: ModelRequest, live: Callable[[Delta], None]) -> ModelResponse:
        response: ModelResponse | None = None
        async for piece in self.provider.stream(request):
            if isinstance(piece, ModelResponse):
                response = piece
            else:
                live(piece)
        assert response is not None
        return response

    async def start(self, prompt: str | Message | None = None, *, agent: str = "agent", **fields: Any) -> str:
        """Create a task; its id. `fields` are further fields of `TaskCreated`."""
        task = fields.pop("task", None) or self.ids.new()
        plugins = list(self.means.agents.known(agent).plugins)
        created = TaskCreated(task=task, agent=agent, root=task, plugins=plugins, **fields)
        await self.store.create(new_task(created, at=self.clock.now(), prompt=prompt))
        return task

    async def run(self, *, limit: int = 100) -> int:
        """Run what is ready until nothing is; how many claims that took. Raises what a runner raises."""
        for count in range(limit):
            await self.means.store.fire_timers()
            claims = await self.means.store.claim(self.worker)
            if not claims:
                return count
            runner = await self.take_up(claims[0])
            await runner.run()
        raise AssertionError(f"it is not at rest after {limit} claims")

    async def take_up(self, claim: Any, **context: Any) -> Runner:
        """The runner of a claim. `context` is as for `noeta.host.claimed.take_up`."""
        runner = await take_up(self.means, claim, wake=self._wake, **context)
        runner.work.outside.live = self.live.append
        return runner

    async def _wake(self, seconds: float) -> bool:
        await anyio.lowlevel.checkpoint()
        return True

    async def post(self, task: str, body: str | Message | NewEntry, *, key: str = "") -> None:
        """Post to a task."""
        await self.store.post(post_of(task, key or self.ids.new(), body))

    async def answer(self, task: str, call: str, park: int = 1, **answer: Any) -> None:
        """Answer a call that waits."""
        given = Answer(call=call, park=park, at=self.clock.now(), **answer)
        await self._item(task, f"answer:{call}:{park}", "answer", given)

    async def interrupt(self, task: str, by: str = "ann") -> None:
        """Stop the turn that is under way."""
        state = await self.state(task)
        turn = state.turn.seq if state.turn else 0
        await self._item(task, self.ids.new(), "interrupt", Interrupt(turn=turn, by=by))

    async def cancel(self, task: str) -> None:
        """Stop and end a task."""
        await self._item(task, self.ids.new(), "cancel", Cancel(by="ann", reason="no more"))

    async def erase(self, task: str, *seqs: int) -> None:
        """Take messages out."""
        await self._item(task, self.ids.new(), "erase", Erase(seqs=list(seqs), by="ann"))

    async def _item(self, task: str, key: str, kind: str, data: object) -> None:
        await self.store.post(Post(task=task, key=key, kind=kind, body=encode_body(data)))

    async def row(self, task: str) -> TaskRow:
        """The task's row."""
        return await self.store.task(task)

    async def state(self, task: str) -> TaskState:
        """The task's folded state."""
        composed = self.means.agents.known((await self.row(task)).agent)
        return await Snapshots(self.store, task, composed.folder).load()

    async def log(self, task: str, *kinds: str) -> list[Recorded]:
        """The task's records, those of these kinds if any are named."""
        found = []
        async for lines in history(self.store, task):
            for line in lines:
                record = recorded(await whole(self.store, decode(line)))
                if not kinds or record.kind in kinds:
                    found.append(record)
        return found

    async def kinds(self, task: str) -> list[str]:
        """The kinds of the task's records, in order."""
        return [record.kind for record in await self.log(task)]

    async def children(self, task: str) -> list[str]:
        """The ids of a task's children, the oldest first."""
        return [row.task for row in await self.store.tasks(parent=task)]
