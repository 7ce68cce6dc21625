"""The world of a simulation: what people do, when workers die, and what the model says."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from random import Random
from typing import Any

import anyio

from noeta.core.errors import Fenced, ProviderError, Unavailable
from noeta.core.items import NewEntry
from noeta.core.log import Claim
from noeta.core.messages import Message, Text, user
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.records import TaskCreated
from noeta.core.runner import Runner
from noeta.core.tool import ToolContext
from noeta.host.birth import new_task
from noeta.host.keeps import Keeps
from noeta.host.registry import Registry
from noeta.host.snapshot import Snapshots
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.harness import Harness
from noeta.testing.mortal import Death, Effects, MakeStore, Mortal
from noeta.testing.scripted_provider import Reply, ScriptedProvider, ScriptError, call, reply
from noeta.testing.simulation.cast import Chaos, Gates, Tools, Watcher
from noeta.testing.simulation.check import check
from noeta.toolkit.errors import Duplicate, TaskOver
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.keep import KeptClaim
from noeta.toolkit.store import Store

REGISTRY = Registry()
LEASE = 30.0
DAY = 86_400.0
MOST_REPLIES = 12
"""After so many replies the model has nothing more to call."""
MOST_TASKS = 6
SECRET = "canary"


class Fate(Effects):
    """The effects of one worker: it dies at some, and at some the world goes on meanwhile."""

    def __init__(self, world: Simulation, depth: int) -> None:
        super().__init__()
        self._world, self._depth = world, depth

    def dies(self, number: int, *, after: bool) -> bool:
        """Now and then."""
        return self._world.chance(150)

    def fails(self, name: str, *, after: bool) -> bool:
        """Now and then."""
        return self._world.chance(300)

    async def pause(self) -> None:
        """People act, or the lease runs out and another worker comes."""
        world = self._world
        if world.chance(30):
            await world.people()
        if self._depth < 2 and world.chance(100):
            world.clock.advance(LEASE + 1)
            await world.worker(self._depth + 1)


class SkewedClock(FrozenClock):
    """The clock of one worker: it shows another time, goes at another speed, and somebody sets it anew."""

    def __init__(self, world: Simulation) -> None:
        super().__init__()
        self._world, self._rate = world, world.rng.choice([0.5, 1.0, 2.0])
        self._set()

    def _set(self) -> None:
        self._off = self._world.rng.choice([0.0, -DAY, DAY, 0.25])

    def now(self) -> float:
        """Epoch seconds, as it takes them to be."""
        if self._world.chance(50):
            self._set()
        return self._world.clock.now() + self._off

    def monotonic(self) -> float:
        """Seconds, as it counts them."""
        return self._rate * self._world.clock.monotonic()


class Worker(Mortal):
    """A worker. Its runners are known to the world, so that people can stop what they do."""

    world: Simulation
    claim: Claim | None = None
    keeps: Keeps = Keeps(LEASE, lambda: None)

    async def take_up(self, claim: Claim, **context: Any) -> Runner:
        """The runner of a claim."""
        self.keeps.lose()
        world, self.claim, self.keeps = self.world, claim, Keeps(LEASE, lambda: None)
        keeps, context["keep"] = self.keeps, self.keeps.keep
        runner = await super().take_up(claim, kept=lambda: bool(keeps), **context)
        world.runners[claim.task] = runner
        snapshots = Snapshots(self.store, claim.task, runner.work.folder)
        runner.work.outside.snapshot = lambda lines, state: snapshots.take(state) if world.chance(4) else ()
        return runner

    async def _wake(self, seconds: float) -> bool:
        """A kept task waits: people act, time passes, and what it is kept for comes to its end."""
        world = self.world
        if world.chance(2):
            await world.people()
        for keep in world.keeps if not world.chance(3) else []:
            keep.release()
        return await super()._wake(seconds)


class Simulation:
    """One world. `run` lets it go on until it is at rest, and raises `AssertionError` for what is wrong."""

    def __init__(self, rng: Random, make_store: MakeStore = InMemoryStore) -> None:
        self.rng: Random = rng
        self.clock: FrozenClock = FrozenClock()
        self.ids: SeededIds = SeededIds(rng.randrange(1 << 32))
        self.store: Store = make_store(self.clock, self.ids)
        self.provider: ScriptedProvider = ScriptedProvider(respond=self._reply)
        self.wild: bool = True
        self.acts: Counter[str] = Counter()
        self.runners: dict[str, Runner] = {}
        self.erased: set[str] = set()
        self.keeps: list[KeptClaim] = []
        self.lost: Counter[int] = Counter()
        self.trace: list[str] = []
        self._replies = self._posts = 0
        self.bench: Harness = self._bench(Effects())

    def chance(self, one_in: int) -> bool:
        """Whether something that happens now and then happens now. Never when the world comes to rest."""
        return self.wild and self.rng.randrange(one_in) == 0

    def _bench(self, effects: Effects) -> Worker:
        plugins = [Tools(self), Gates(), Watcher(self), Chaos(self, self.rng)]
        world: dict[str, Any] = {"store": self.store, "clock": self.clock, "ids": self.ids}
        worker = Worker(plugins, effects, provider=self.provider, registry=REGISTRY, lease=LEASE, **world)
        worker.world = self
        worker.means.clock = SkewedClock(self)
        return worker

    async def run(self) -> None:
        """Live, come to rest, and look back. The store is closed then."""
        async with aclosing(self.store):
            await self.bench.start("go")
            for _ in range(self.rng.randrange(1, 3)):
                await self.worker()
                await self.people()
            await self.rest()
            await check(self)

    async def rest(self) -> None:
        """Let everything that was begun come to its end."""
        self.wild = False
        for _ in range(100):
            self.clock.advance(1_000)
            await self.worker()
            rows = await self.store.tasks(limit=1_000)
            asking = [row.task for row in rows if row.status == "waiting" and row.reason == "question"]
            for task in asking:
                await self._answers(task, everything=True)
            moving = [row for row in rows if row.status in ("ready", "running")]
            if not asking and not moving and await self.store.next_wake() is None:
                return
        raise AssertionError(f"It does not come to rest: {[(r.task, r.status, r.reason) for r in rows]}.")

    async def worker(self, depth: int = 0) -> None:
        """Let a new worker run until nothing is ready, or until it dies or has lost what it held."""
        while True:
            fate = Fate(self, depth)
            bench = self._bench(fate)
            try:
                await bench.run(limit=300)
            except Fenced:
                self.trace.append("fenced")
                bench.keeps.lose()
            except Unavailable:
                # What it had claimed it gives up, if it knows of that; else the lease has to run out.
                self.trace.append("unavailable")
                bench.keeps.lose()
                if bench.claim:
                    await self.store.release(bench.claim)
                self.clock.advance(LEASE + 1)
            except (Death, BaseExceptionGroup):
                if not fate.dead:
                    raise
                self.trace.append(f"died at {fate.names[-1]}")
                self.clock.advance(LEASE + 1)
                if self.chance(2):
                    return
            else:
                return

    async def started(self, ctx: ToolContext, name: str) -> None:
        """A call acts. What may not be repeated has to be durable by then."""
        self.acts[ctx.idempotency_key] += 1
        kinds = [record.data.call for record in await self.bench.log(ctx.task_id, "tool_started")]
        assert name == "again" or ctx.call_id in kinds, f"{name} started before that was durable"

    def kept(self, keep: KeptClaim) -> None:
        """A call keeps the claim of its task."""
        number = len(self.keeps)
        self.keeps.append(keep)
        keep.on_lost(lambda: self.lost.update([number]))

    # ---- people

    async def people(self) -> None:
        """Somebody does something."""
        tasks = [row.task for row in await self.store.tasks(limit=1_000)]
        task = self.rng.choice(tasks)
        acts = [self._posts_text] * 3 + [self._answers] * 4 + [self._interrupts] * 2
        acts += [self._erases, self._forks, self._enters, self._waits, self._tells]
        acts += [self._cancels] if self.chance(3) else []
        act = self.rng.choice(acts)
        self.trace.append(act.__name__)
        try:
            await act(task)
        except (TaskOver, Duplicate):
            self.trace.append("refused")

    async def _posts_text(self, task: str) -> None:
        await self.bench.post(task, "more")

    async def _tells(self, task: str) -> None:
        """Say what will be erased."""
        self._posts += 1
        await self.bench.post(task, f"{SECRET} {self._posts}.")

    async def _enters(self, task: str) -> None:
        await self.bench.post(task, NewEntry("tools", "noted", 1, self.rng.choice([None, user("look")])))

    async def _interrupts(self, task: str) -> None:
        await self.bench.interrupt(task)
        self._halt(task)

    async def _cancels(self, task: str) -> None:
        await self.bench.cancel(task)
        self._halt(task)

    def _halt(self, task: str) -> None:
        if task in self.runners and self.chance(2):
            self.runners[task].halt()

    async def _waits(self, task: str) -> None:
        self.clock.advance(self.rng.choice([1, 20, 70]))

    async def _erases(self, task: str) -> None:
        through = (await self.store.task(task)).through
        told = [it for it in await self.bench.log(task, "received") if it.message and it.seq > through]
        if told:
            gone = self.rng.choice(told)
            await self.bench.erase(task, gone.seq)
            if gone.message and SECRET in gone.message.text:
                self.erased.add(gone.message.text)

    async def _answers(self, task: str, *, everything: bool = False) -> None:
        waiting = [c for c in (await self.bench.state(task)).open_calls if c.status == "parked"]
        waiting = [c for c in waiting if c.on != "children"]
        for it in waiting if everything else waiting[: self.rng.randrange(1, 3)]:
            verdict = "deny" if self.chance(3) else "allow"
            given = {"verdict": verdict} if it.on == "approval" else {"values": {"last": everything}}
            await self.bench.answer(task, it.id, it.park, by="ann", **given)

    async def _forks(self, task: str) -> None:
        rows = await self.store.tasks(limit=1_000)
        if len(rows) >= MOST_TASKS:
            return
        through = self.rng.randrange(1, (await self.store.task(task)).last_seq + 1)
        fork = self.ids.new()
        created = TaskCreated(task=fork, agent="agent", root=fork, history_from=task, history_through=through)
        await self.store.create(new_task(created, at=self.clock.now(), prompt="go on here"))

    # ---- the model

    def _reply(self, request: ModelRequest) -> Reply:
        self._replies += 1
        if not self.wild or self._replies > MOST_REPLIES:
            return "Done."
        if self.chance(12):
            return ModelResponse(message=Message(role="assistant", content=[Text(text=" ")]))
        if self.chance(15):
            at = self.clock.now() + 60
            return self.rng.choice(
                [
                    ProviderError("overloaded", "busy", retry_at=at),
                    ProviderError("overflow", "too long"),
                    ProviderError("auth", "no key"),
                ]
            )
        names = [spec.name for spec in request.tools] + ["unknown"]
        if self.rng.randrange(3) == 0 or not names:
            return "Well."
        calls = [
            call(self.rng.choice(names), n=self.rng.randrange(40)) for _ in range(self.rng.randrange(1, 5))
        ]
        return reply(self.rng.choice(["", "I look."]), *calls)


def simulate(seed: int, make_store: MakeStore = InMemoryStore) -> Simulation:
    """Run the world of a seed, and say how to run it again when something is wrong with it."""
    world = Simulation(Random(seed), make_store)
    try:
        anyio.run(world.run)
    except (Exception, ScriptError, BaseExceptionGroup) as error:
        again = f"python tests/simulation/run.py --seed={seed}"
        raise AssertionError(f"Seed {seed}: {type(error).__name__}: {error} Again: {again}") from error
    return world
