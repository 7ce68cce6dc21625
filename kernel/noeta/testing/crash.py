"""Dying at every point: a plugin set must give the same task wherever its worker is lost.

    async def test_mail_is_sent_once_wherever_the_worker_dies():
        def plugins(outside):
            return [Mail(send=outside.act)]

        script = [reply("", call("send", to="ann")), "Done."]
        await check_crashes(plugins, script, "write to ann")

An effect is a call that reaches beyond the kernel: a write to the store, a model call, a hook, a method of a
tool, what a tool does in the place where it acts. The task is run once to count them. Then, for each effect,
it is run again and dies right before it, and again right after it; another worker takes it up on the same
store and runs it to rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import zip_longest
from typing import Any, TypeAlias

from msgspec.structs import replace

from noeta.core.codec import decode
from noeta.core.extension import Extension
from noeta.core.fold import fold
from noeta.core.log import Claim
from noeta.core.messages import Text, ToolResult, decode_message
from noeta.core.ports import ModelRequest
from noeta.core.runner import Runner
from noeta.core.state import TaskState
from noeta.core.tool import MAX_ATTEMPTS
from noeta.host.registry import Registry
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.harness import Harness
from noeta.testing.mortal import Death, Effects, MakeStore, Mortal
from noeta.testing.nowhere import Nowhere
from noeta.testing.scripted_provider import Reply, ScriptedProvider, ScriptError
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.history import history
from noeta.toolkit.in_memory import InMemoryStore

LEASE = 0.000_001
"""The lease of a worker in seconds, so that a restart lets hardly any time pass."""
UNKNOWN = "so the outcome of the call is unknown"
"""Stands in the result of a call that was lost and may not be repeated."""
ENDS = ("turn_done", "turn_failed", "interrupted", "child_ended", "task_ended")

Script: TypeAlias = Sequence[Reply] | Mapping[str, Sequence[Reply]]
"""What the model says to the task, reply by reply; or to each task, by the text it begins with."""
MakePlugins: TypeAlias = "Callable[[Outside], Sequence[Extension]]"
Drive: TypeAlias = "Callable[[CrashBench, str], Awaitable[None]]"


class Outside:
    """The world beyond the store, where tools and plugins of a test act."""

    def __init__(self) -> None:
        self.acts: list[tuple[str, str]] = []
        self.alive: Callable[[], None] = lambda: None

    def act(self, key: str, what: object = "") -> None:
        """Do `what`. `key` is the idempotency key: a real service would drop a second act with it."""
        self.alive()
        self.acts.append((key, _plain(repr(what))))

    def done(self) -> list[str]:
        """What happened to a service that drops a key it has seen, sorted."""
        return sorted(dict(reversed(self.acts)).values())


class CrashBench(Mortal):
    """A harness whose worker dies at one effect. `run` goes on with the next worker."""

    def __init__(
        self,
        make_plugins: MakePlugins,
        script: Script,
        effects: Effects,
        registry: Registry,
        make_store: MakeStore = InMemoryStore,
        make_env: Callable[[], ExecEnv] = Nowhere,
    ) -> None:
        self.outside: Outside = Outside()
        self._make, self._script = make_plugins, script
        self._prompts: dict[str, str] = {}
        self._says: Reply | None = None
        store = make_store(clock := FrozenClock(), ids := SeededIds())
        self._world: dict[str, Any] = {"store": store, "clock": clock, "ids": ids, "lease": LEASE}
        self._world |= {"provider": ScriptedProvider(respond=self._respond), "registry": registry}
        self._world["env"] = make_env()
        self._begin(effects)

    def _begin(self, effects: Effects) -> None:
        """Be a new worker, with new plugins, in the same world."""
        self.outside.alive = effects.check
        super().__init__(self._make(self.outside), effects, **self._world)

    async def run(self, *, limit: int = 100) -> int:
        """Run until nothing is ready; when the worker dies, the next one goes on."""
        try:
            return await super().run(limit=limit)
        except (Death, BaseExceptionGroup):
            if not self.effects.dead:
                raise
        self.clock.advance(2 * LEASE)
        self._begin(Effects())
        return await super().run(limit=limit)

    async def take_up(self, claim: Claim, **context: Any) -> Runner:
        """The runner of a claim, with a model that knows the task."""
        runner = await super().take_up(claim, **context)
        model = runner.work.outside.model

        async def said(request: ModelRequest, live: Any) -> Any:
            self._says = await self._reply(claim.task)
            try:
                return await model(request, live)
            finally:
                self._says = None

        runner.work.outside.model = said
        return runner

    def _respond(self, request: ModelRequest) -> Reply:
        # A hook that calls the model itself is told what it asked.
        return request.messages[-1].text if self._says is None else self._says

    async def _reply(self, task: str) -> Reply:
        """What the model says next to a task: a reply that was lost is said again."""
        script: Sequence[Reply] | None
        if isinstance(self._script, Mapping):
            script = self._script.get(await self._prompt(task))
        else:
            script = self._script if not (await self.store.task(task)).parent else None
        number = len(await self.store.read(task, only=["core.model_replied"]))
        if script is None or number >= len(script):
            raise ScriptError(f"The script has no reply {number + 1} for {await self._prompt(task)!r}.")
        return script[number]

    async def _prompt(self, task: str) -> str:
        """The text that a task began with."""
        if task not in self._prompts:
            [line, *_] = await self.store.read(task, only=["core.received"])
            self._prompts[task] = decode_message(bytes(decode(line).message)).text
        return self._prompts[task]


async def check_crashes(
    make_plugins: MakePlugins,
    script: Script,
    prompt: str,
    *,
    drive: Drive | None = None,
    seen: Callable[[str, Any], Any] = lambda name, state: state,
    make_store: MakeStore = InMemoryStore,
    make_env: Callable[[], ExecEnv] = Nowhere,
) -> int:
    """Run the task once, then again with a death before and after each effect; how many effects there are.

    `make_plugins(outside)` makes the plugins of one worker, which share nothing with those of the next one
    but what they do through `outside.act(key, what)`. `drive(bench, task)` is what people do: it posts,
    answers, lets time pass (`bench.clock.advance`) and runs the task to rest (`await bench.run()`), as with
    a `Harness`. Without it the task is run once. `seen(name, state)` is what has to be the same of a plugin's
    state: leave out of it what counts claims or holds seqs. `make_store(clock, ids)` makes an empty store,
    and `make_env()` the place where tools act, as it is before; nowhere without it.

    Raises `AssertionError`, with one sentence that names the effect and what differs, unless after each death

    - every task is in the same state: its messages, its plugins' states, its turns' ends, what it waits for;
    - the same was done outside, once for each key, and no key was used more than `MAX_ATTEMPTS` times;
    - every request was sound;
    - every log is dense and folds twice to the same state.

    A call that may not be repeated (no `retry_safe`, no `recover`) and is lost while it runs has an unknown
    outcome: then its result, its act and the plugins' states may differ.
    """

    registry = Registry()

    async def whole(effects: Effects) -> tuple[CrashBench, dict[str, list[str]]]:
        bench = CrashBench(make_plugins, script, effects, registry, make_store, make_env)
        async with aclosing(bench.store):
            task = await bench.start(prompt)
            await drive(bench, task) if drive else await bench.run()
            return bench, await picture(bench, seen)

    try:
        bench, expected = await whole(effects := Effects())
    except (Exception, ScriptError) as error:
        raise AssertionError(f"Without any death: {type(error).__name__}: {error}") from error
    for k, name in enumerate(effects.names, 1):
        for after in (False, True):
            place = f"Dying right {'after' if after else 'before'} effect {k} ({name})"
            try:
                again, found = await whole(Effects(k, after=after))
            except (Exception, ScriptError, BaseExceptionGroup) as error:
                raise AssertionError(f"{place}: {type(error).__name__}: {error}") from error
            if fault := difference(expected, found) or _acted(bench.outside, again.outside, found):
                raise AssertionError(f"{place}: {fault}")
    return len(effects.names)


async def picture(bench: Harness, seen: Callable[[str, Any], Any]) -> dict[str, list[str]]:
    """Every task of a bench in words, by the path to it, without ids, times and seqs.

    Raises AssertionError for a log that is not dense, or that folds to two states.
    """
    found: dict[str, list[str]] = {}
    roots = [row.task for row in await bench.store.tasks(limit=10_000) if not row.parent]
    places = [(f"/{number}", task) for number, task in enumerate(roots)]
    while places:
        name, task = places.pop(0)
        spawned = await bench.log(task, "child_spawned")
        places += [(f"{name}/{number}", record.data.child) for number, record in enumerate(spawned)]
        row = await bench.row(task)
        reducers = bench.means.agents.known(row.agent).folder.reducers
        lines = [line async for page in history(bench.store, task) for line in page]
        if [line.seq for line in lines] != list(range(1, len(lines) + 1)):
            raise AssertionError(f"The log of task {name} has a gap: {[line.seq for line in lines]}.")
        first, second = (fold(map(decode, lines), reducers) for _ in range(2))
        if first != second or first != await bench.state(task):
            raise AssertionError(f"The log of task {name} does not fold to the same state twice.")
        ends = await bench.log(task, *ENDS)
        found[name] = [
            f"it is {row.status} ({row.reason})",
            *_words(first, seen),
            # Children end in any order.
            *sorted(_plain(f"{end.kind}: {replace(end.data, **_unnumbered(end.data))}") for end in ends),
        ]
    return found


def difference(expected: Mapping[str, Sequence[str]], found: Mapping[str, Sequence[str]]) -> str:
    """What is not the same in two pictures, in a sentence; the empty text when nothing is."""
    if missing := expected.keys() ^ found.keys():
        return f"task {min(missing)} is there in one of the runs only."
    unknown = any(UNKNOWN in line for lines in found.values() for line in lines)
    for name, lines in expected.items():
        pairs = zip_longest(lines, found[name], fillvalue="nothing")
        for line, other in pairs:
            lost = UNKNOWN in other or (unknown and line.startswith("plugin "))
            if line != other and not lost:
                return f"task {name} has {other!r} and not {line!r}."
    return ""


def _acted(expected: Outside, found: Outside, tasks: Mapping[str, Sequence[str]]) -> str:
    """What was done outside that should not have been, or was not done."""
    for key, times in Counter(key for key, _ in found.acts).items():
        if times > MAX_ATTEMPTS:
            return f"key {key!r} was used {times} times outside."
    wanted, done = Counter(expected.done()), Counter(found.done())
    if more := done - wanted:
        return f"{min(more)} was done outside under one key more."
    lost = sum(line.count(UNKNOWN) for lines in tasks.values() for line in lines)
    if (less := wanted - done).total() > lost:
        return f"{min(less)} was not done outside."
    return ""


def _words(state: TaskState, seen: Callable[[str, Any], Any]) -> Iterator[str]:
    for item in state.conversation:
        message = item.message
        results = [block for block in message.content if isinstance(block, ToolResult)]
        said = "".join(inner.text for block in results for inner in block.content if isinstance(inner, Text))
        yield _plain(f"{message.role}: {said or message.text} {[(c.name, c.input) for c in message.calls]}")
    for call in state.open_calls:
        yield _plain(f"call {call.name} is {call.status} on {call.on!r} with {call.detail}")
    for name, own in state.states.items():
        broken = state.broken.get(name)
        yield _plain(f"plugin {name}: {f'broken: {broken.why}' if broken else repr(seen(name, own))}")
    yield f"timers {[(timer.name, timer.text) for timer in state.timers.values()]}"
    yield f"{len(state.live_children)} children live"
    yield f"a turn is under way: {state.turn is not None}"


_ID = re.compile(r"\bc\d+_(\d+)_[0-9a-f]{8}\b|\b[0-9a-f]{16,20}\b|\b(\d{9,}\.\d+)")


def _plain(text: str) -> str:
    """`text` without ids, and with times of the epoch to the millisecond."""

    def put(found: re.Match[str]) -> str:
        index, time = found.groups()
        return f"{float(time):.3f}" if time else f"call {index}" if index else "id"

    return _ID.sub(put, text)


def _unnumbered(data: Any) -> dict[str, Any]:
    """The fields of a fact that count where it stands."""
    return {name: 0 for name in ("n",) if name in data.__struct_fields__}
