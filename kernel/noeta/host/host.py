"""The host: a store, agents, models and a worker in one process, and the verbs to use them by."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import anyio
import msgspec
from msgspec.structs import replace

from noeta.core.codec import encode
from noeta.core.items import Cancel, Erase, Interrupt, NewEntry, Post, encode_body, post_of
from noeta.core.messages import Message
from noeta.core.ports import Clock, Ids
from noeta.core.records import CORE, Answer, Answered, Recorded, TaskCreated
from noeta.core.state import TaskState
from noeta.core.view import child_id
from noeta.host.agents import Agents
from noeta.host.bell import Bell
from noeta.host.beside import beside
from noeta.host.birth import new_task
from noeta.host.catalog import Catalog
from noeta.host.claimed import Means
from noeta.host.coder import lend
from noeta.host.erasure import check_erasable
from noeta.host.following import Followers, Live, follow
from noeta.host.given import check_models, check_ports, nonsense
from noeta.host.models import Models
from noeta.host.outcome import Outcome, outcome_of, why_not
from noeta.host.ports import Ports, chosen_ports
from noeta.host.reading import Reader
from noeta.host.settings import Settings, as_settings
from noeta.host.waiting import Waiting
from noeta.host.worker import Worker
from noeta.toolkit.agent import Agent
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.errors import ComposeError, Duplicate, NotWaiting, TaskOver
from noeta.toolkit.provider import Provider
from noeta.toolkit.results import PREVIEW_CHARS, cut_middle, spill_to
from noeta.toolkit.schema import check_schema
from noeta.toolkit.store import Store, TaskRow
from noeta.toolkit.system import RandomIds, SystemClock

if TYPE_CHECKING:
    from noeta.host.sync import SyncHost

LOOK_SECONDS = 1.0


class Host:
    """Runs agents over a store.

        async with Host([agent], store=store, providers={"anthropic": provider}) as host:
            task = await host.start("coder", "Fix the failing test.")
            outcome = await host.wait(task)

    `store` is a `Store`, or the URL of one: ``sqlite:noeta.db``, or ``memory:`` for one that is gone with the
    host. `providers` are models' APIs by the prefix of their models; others are looked up when they are first
    needed. `env` is where tools act, or the name of such a place. What the caller made, the caller closes;
    what the host opened, the host closes.

    `settings` are what `load_settings` read, or tables such as ``{"plugins": {"fs": {"root": "/srv"}}}``: for
    plugins, providers, stores and environments that are named. Those that were read also say which store and
    `spill_dir` to use, unless the program does, and have plugin files, which join agents.

    Names, also those in an agent's list of plugins, are looked up in `catalog`. Raises `ComposeError` for
    agents that cannot be put together and for names that lead to nothing that works, `SettingsError` for a
    named plugin or port that needs settings, `TypeError` for what is no agent and no port, `ValueError` for a
    store without a scheme, two agents of one name and a number that makes no sense, and what a store raises
    that cannot be opened. Entering raises `ComposeError` for an agent's model whose provider nobody has.

    Between entering and leaving, a worker runs up to `capacity` tasks at once, of `queues` (None: of all); a
    host that `works` not only posts and reads. It is entered once. Leaving stops it at safe points: what
    runs goes on with another host, or the next one. `lease` is how many seconds others wait for this host
    when it is gone, `grace` how many it waits for its own calls when it stops. Long results are saved in
    `spill_dir`.

    Every verb may also raise the errors of the store, and `UnknownTask` for a task that is not in it.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        *,
        store: str | Store | None = None,
        providers: Mapping[str, Provider] | None = None,
        env: str | ExecEnv | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        capacity: int = 16,
        queues: Collection[str] | None = None,
        lease: float = 30.0,
        grace: float = 10.0,
        works: bool = True,
        spill_dir: str | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
    ) -> None:
        if why := nonsense(capacity, queues, lease, grace):
            raise ValueError(why)
        providers = {} if providers is None else providers
        self._clock, self._ids = clock or SystemClock(), ids or RandomIds()
        self.settings: Settings = as_settings(settings, os.environ)
        self.catalog: Catalog = Catalog(self.settings)
        store, env, spill_dir = chosen_ports(self.settings, store, env, spill_dir)
        check_ports(store, env, providers)
        self._agents = Agents(agents, catalog=self.catalog)
        # Last of what may fail, since nobody closes the ports of a host that was never made.
        self._ports = Ports(self.catalog, store, env, self._clock, self._ids)
        self._store, self._env = self._ports.store, self._ports.env
        self._reader, self._followers = Reader(self._store, self._agents), Followers()
        self._waiting = Waiting()
        self._providers = dict(providers)
        more: dict[str, Any] = {"more": self._ports.provider, "names": self.settings.models}
        self._models = Models(providers, self._clock, self._ids, **more)
        lend(self._agents, self._models.info)
        around = {"env": self._env, "spill_dir": spill_dir}
        means = Means(
            store=self._store,
            agents=self._agents,
            clock=self._clock,
            ids=self._ids,
            model=self._models,
            check_schema=check_schema,
            spill=spill_to(spill_dir) if spill_dir else _cut,
            view=around,
            context=around,
        )
        work: dict[str, Any] = {"capacity": capacity, "queues": queues, "lease": lease, "grace": grace}
        self._worker = Worker(means, tell=self._followers.tell, **work)
        self._works, self._entered = works, False

    async def __aenter__(self) -> Self:
        if self._entered:
            raise RuntimeError("a host is entered once: what it opened is closed by now; make another one")
        self._entered = True
        if self._works:
            try:
                check_models(self._agents.by_name.values(), self._providers, self.catalog)
            except ComposeError:
                await self._ports.aclose()
                raise
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        if self._works:
            self._tasks.start_soon(beside, self._worker.run, self._models.watch)
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._worker.stop()
        # What the block raised is the caller's, and comes out in no group.
        ours = isinstance(error, anyio.get_cancelled_exc_class())
        try:
            handled = await self._tasks.__aexit__(*((type_, error, trace) if ours else (None, None, None)))
            return handled if ours else None
        finally:
            self._waiting.leave()
            await self._ports.aclose()

    def sync(self) -> SyncHost:
        """The same host for callers that cannot await, on an event loop of its own in another thread."""
        from noeta.host.sync import SyncHost

        return SyncHost(self)

    # ---- beginning

    async def start(
        self,
        agent: str,
        prompt: str | Message | None = None,
        *,
        cwd: str | None = None,
        config: Mapping[str, Any] | None = None,
        one_shot: bool = False,
        queue: str = "",
        key: str | None = None,
    ) -> str:
        """Begin a task; its id. With `one_shot` its first turn ends it.

        With a `key` that was used before, the task begun then is the answer, whatever the rest says. Raises
        `ValueError` for an unknown agent, `TypeError` for a prompt that is no message, and `NotStorable` for
        one that is blank or a config that no log can hold.
        """
        plugins = list(self._agents.known(agent).plugins)
        if prompt is not None:
            _check(prompt)
        place = {} if cwd is None else {"cwd": self._env.path(cwd) if self._env else cwd}
        task = self._name("start", key)
        created = TaskCreated(
            task=task,
            agent=agent,
            config={**(config or {}), **place},
            root=task,
            queue=queue,
            one_shot=one_shot,
            plugins=plugins,
        )
        return await self._create(created, key, prompt)

    async def run(
        self, agent: str, prompt: str | Message, *, output: type | None = None, **start: Any
    ) -> Outcome:
        """Start a task as `start` does and wait for it.

        With `output`, a type that msgspec knows, the model is asked for JSON of that form, and `data` of the
        outcome is the value. An answer that is none makes the outcome ``failed`` (``invalid_output``).
        """
        if output is not None:
            schema = msgspec.json.schema(output)
            start["config"] = {**(start.get("config") or {}), "output_schema": schema}
        outcome = await self.wait(await self.start(agent, prompt, **start))
        if output is None or outcome.status != "done":
            return outcome
        try:
            return replace(outcome, data=msgspec.json.decode(outcome.text, type=output))
        except ValueError:
            return replace(outcome, status="failed", reason="invalid_output")

    async def fork(self, task: str, through: int | None = None, *, key: str | None = None) -> str:
        """A new task that continues `task` behind the record `through` (None: its last one); its id.

        It waits for a message. `key` is as for `start`. Raises `ValueError` when there is no such record.
        """
        row = await self._store.task(task)
        through = row.last_seq if through is None else through
        if not 1 <= through <= row.last_seq:
            raise ValueError(f"task {task!r} has no record {through}; its last one is {row.last_seq}")
        while through < row.through:
            row = await self._store.task(row.base)
        state, new = await self._reader.state(task), self._name(f"fork {task}", key)
        here = self._agents.get(state.agent)
        created = TaskCreated(
            task=new,
            agent=state.agent,
            config=state.config,
            root=new,
            queue=state.queue,
            one_shot=state.one_shot,
            history_from=row.task,
            history_through=through,
            plugins=list(here.plugins) if here else state.plugins,
        )
        return await self._create(created, key, None)

    async def rewind(self, task: str, through: int, *, key: str | None = None) -> str:
        """A new task that continues `task` from an earlier record; the old one stays. As `fork`."""
        return await self.fork(task, through, key=key)

    # ---- speaking to a task

    async def post(self, task: str, body: str | Message | NewEntry, *, dedupe_key: str | None = None) -> bool:
        """Put a message, or a plugin's entry, into a task's inbox.

        False when something was posted with this `dedupe_key` before: that stands. Raises `TaskOver`,
        `TypeError` for a body that is no message, and `NotStorable` for one that is blank.
        """
        _check(body)
        return await self._post(post_of(task, dedupe_key or self._ids.new(), body))

    async def answer(
        self,
        task: str,
        call: str,
        verdict_or_values: str | Mapping[str, Any],
        *,
        by: str,
        park: int | None = None,
        reason: str = "",
        end_turn: bool = False,
        remember: dict[str, Any] | None = None,
    ) -> None:
        """Answer a call that waits: ``allow`` or ``deny`` an approval, or give a question's values.

        `park` says which wait is meant, None the one that waits now. `reason` is told to the model,
        `end_turn` ends the turn with this call, and `remember` is for permission plugins. Raises `NotWaiting`
        for a call that does not wait, `Duplicate` when somebody was quicker, and `ValueError` for a verdict
        that is neither and for values that no log can hold.
        """
        state = await self._reader.state(task)
        given = state.calls.get(call)
        park = given.park if given and park is None else park
        if given is None or given.status != "parked" or given.on == "children" or given.park != park:
            raise NotWaiting(task, call, why_not(state, call, given, park))
        is_verdict = isinstance(verdict_or_values, str)
        if is_verdict and verdict_or_values not in ("allow", "deny"):
            raise ValueError(f"the verdict is {verdict_or_values!r}; it can be 'allow' or 'deny'")
        answer = Answer(
            call=call,
            park=given.park,
            verdict=str(verdict_or_values) if is_verdict else "",
            values={} if isinstance(verdict_or_values, str) else dict(verdict_or_values),
            by=by,
            at=self._clock.now(),
            reason=reason,
            end_turn=end_turn,
            remember=remember,
        )
        # One that no log can hold would take the place of another for good.
        encode(0, 0.0, CORE, Answered.kind, Answered(n=0, key="", answer=answer))
        try:
            await self._store.post(_item(task, f"answer:{call}:{park}", "answer", answer))
        except Duplicate as error:
            why = f"somebody answered call {call!r} of task {task!r} before"
            raise Duplicate(why, reason=error.reason) from error

    async def interrupt(self, task: str, *, by: str = "") -> bool:
        """Stop the turn that is under way, and no later one. False when there is none."""
        turn = (await self._reader.state(task)).turn
        return turn is not None and await self._item(task, "interrupt", Interrupt(turn=turn.seq, by=by))

    async def cancel(self, task: str, *, by: str = "", reason: str = "") -> bool:
        """Stop a task and end it, with its children. False when it has ended."""
        return await self._item(task, "cancel", Cancel(by=by, reason=reason))

    async def erase(self, task: str, seqs: Sequence[int], *, by: str = "") -> None:
        """Take the person's messages at these seqs out of a task and its forks, also of one that has ended.

        It is done when the task's worker comes to it. Raises `ValueError` for a seq at which the task has no
        record, or one that holds no such message: a reply and a result stay.
        """
        await check_erasable(self._store, task, seqs)
        await self._item(task, "erase", Erase(seqs=list(seqs), by=by))

    # ---- looking

    async def wait(self, task: str) -> Outcome:
        """Wait until a task has ended or does not go on by itself, and say where it is.

        Raises `RuntimeError` when the host is left before.
        """
        bell = Bell()
        async with self._store.watch(task, log=False) as watch:
            while True:
                row = await self._store.task(task)
                if (outcome := await outcome_of(self._store, self._reader, row)) is not None:
                    return outcome
                await self._waiting.on(bell, watch, LOOK_SECONDS)

    def follow(self, task: str, after: int = 0) -> AsyncGenerator[Recorded | Live, None]:
        """The task's records behind `after`, each once, and what is told live between them, until its end.

        Pieces of a reply (`Delta`), `Reset` and `Progress` come only from tasks that this host runs. Close it
        to stop early (`contextlib.aclosing`). Raises `RuntimeError` when the host is left before the end.
        """
        return follow(self._store, self._reader, self._followers, self._waiting, task, after)

    async def tasks(self, **filters: Any) -> list[TaskRow]:
        """Rows of tasks, oldest first. The filters are those of `Store.tasks`."""
        return await self._store.tasks(**filters)

    async def log(self, task: str, after: int = 0) -> list[Recorded]:
        """The records of a task behind `after`, those of the history that it continues included."""
        return await self._reader.log(task, after)

    async def state(self, task: str, at: int | None = None) -> TaskState:
        """The folded state of a task after the record `at`, or after its last one."""
        return await self._reader.state(task, at)

    def _name(self, what: str, key: str | None) -> str:
        return self._ids.new() if key is None else child_id(what, key)

    async def _create(self, created: TaskCreated, key: str | None, prompt: str | Message | None) -> str:
        try:
            await self._store.create(new_task(created, at=self._clock.now(), prompt=prompt))
        except Duplicate:
            if key is None:
                raise
        return created.task

    async def _item(self, task: str, kind: str, data: object) -> bool:
        with suppress(TaskOver):
            return await self._post(_item(task, self._ids.new(), kind, data))
        return False

    async def _post(self, post: Post) -> bool:
        try:
            await self._store.post(post)
        except Duplicate:
            return False
        return True


def _item(task: str, key: str, kind: str, data: object) -> Post:
    return Post(task=task, key=key, kind=kind, body=encode_body(data))


def _cut(text: str, name: str) -> str:
    return cut_middle(text, PREVIEW_CHARS, "The whole was not saved.")


def _check(body: object) -> None:
    if not isinstance(body, str | Message | NewEntry):
        raise TypeError(f"a message is a text, a Message or a NewEntry, not a {type(body).__name__}")
