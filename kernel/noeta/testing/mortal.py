"""A worker that may die at any of its effects, and then does nothing more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any, TypeAlias

from noeta.core.errors import Unavailable
from noeta.core.extension import Extension
from noeta.core.log import Claim
from noeta.core.parts import Offer
from noeta.core.runner import Runner
from noeta.core.tool import Tool
from noeta.core.work import Work
from noeta.host.registry import Registry
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.harness import Harness
from noeta.testing.scripted_provider import ScriptedProvider
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.store import Store

MakeStore: TypeAlias = Callable[[FrozenClock, SeededIds], Store]
"""Makes an empty store on this clock and these ids."""
WRITES = ("append", "create", "post", "claim", "renew", "release", "fire_timers", "purge")
TOOL_METHODS = ("run", "resume", "recover")
ENV_METHODS = ("read", "write", "listdir", "mkdir", "remove", "rename", "process")


class Death(BaseException):
    """The worker is dead. Whatever catches it can do nothing more: every effect raises it again."""


class Effects:
    """Counts the effects of one worker, and dies before or after the one with the number `die_at`."""

    def __init__(self, die_at: int = 0, *, after: bool = False) -> None:
        self.names: list[str] = []
        self.dead: bool = False
        self._die_at, self._after = die_at, after

    def check(self) -> None:
        """Raise `Death` in a worker that is dead."""
        if self.dead:
            raise Death

    def begin(self, name: str) -> int:
        """An effect is about to happen; its number."""
        self.check()
        self.names.append(name)
        self._fail(name, after=False)
        self._die(len(self.names), after=False)
        return len(self.names)

    def end(self, number: int) -> None:
        """The effect has happened."""
        self.check()
        self._die(number, after=True)

    async def pause(self) -> None:
        """What else goes on in the world while the worker waits for the end of an effect."""

    def fails(self, name: str, *, after: bool) -> bool:
        """Whether the store says here that it cannot be reached: `after` it did what was asked, or before."""
        return False

    def dies(self, number: int, *, after: bool) -> bool:
        """Whether it dies here."""
        return (number, after) == (self._die_at, self._after)

    def _fail(self, name: str, *, after: bool) -> None:
        if name.startswith("store.") and self.fails(name, after=after):
            raise Unavailable("the connection was lost", reason="lost")

    def _die(self, number: int, *, after: bool) -> None:
        if self.dies(number, after=after):
            self.dead = True
            raise Death

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call` as an effect."""

        async def awaited(number: int, value: Awaitable[Any]) -> Any:
            result = await value
            await self.pause()
            self.end(number)
            self._fail(name, after=True)
            return result

        def effect(*args: Any, **named: Any) -> Any:
            number = self.begin(name)
            value = call(*args, **named)
            if isawaitable(value):
                return awaited(number, value)
            self.end(number)
            return value

        return effect


class Watched:
    """Anything, with some of its methods counted as effects and the others refused to a dead worker."""

    def __init__(self, inner: Any, effects: Effects, methods: Sequence[str], called: str) -> None:
        self._inner, self._effects, self._methods, self._called = inner, effects, methods, called

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name in self._methods:
            return self._effects.around(f"{self._called}.{name}", value)
        self._effects.check()
        return value


class Mortal(Harness):
    """A harness whose worker lives as `effects` has it, and holds what it claims for `lease` seconds.

    `store` stays that of the people outside, who post and look and do not die.
    """

    def __init__(
        self,
        plugins: Iterable[Extension],
        effects: Effects,
        *,
        store: Store,
        clock: FrozenClock,
        ids: SeededIds,
        provider: ScriptedProvider,
        registry: Registry,
        env: ExecEnv | None = None,
        lease: float = 30.0,
    ) -> None:
        world: dict[str, Any] = {"clock": clock, "ids": ids, "provider": provider, "registry": registry}
        acting: Any = env and Watched(env, effects, ENV_METHODS, "env")
        super().__init__(plugins, store=store, env=acting, **world)
        self.effects: Effects = effects
        watched: Any = Watched(store, effects, WRITES, "store")
        watched.claim = effects.around("store.claim", partial(store.claim, lease=lease))
        self.means.store = watched
        for composed in self.means.agents.values():
            composed.hooks.impls = {
                hook: tuple(i._replace(call=effects.around(f"{i.plugin}.{hook}", i.call)) for i in impls)
                for hook, impls in composed.hooks.impls.items()
            }

    async def take_up(self, claim: Claim, **context: Any) -> Runner:
        """The runner of a claim."""
        runner, effects = await super().take_up(claim, **context), self.effects
        outside, tools = runner.work.outside, dict[int, Any]()
        offer = outside.offer

        def watched(tool: Tool) -> Any:
            # The same one each time, since what is known of a tool is known of the object.
            if id(tool) not in tools:
                tools[id(tool)] = Watched(tool, effects, TOOL_METHODS, tool.name)
            return tools[id(tool)]

        def offered(work: Work) -> Offer:
            made = offer(work)
            pairs = {name: (by, watched(tool)) for name, (by, tool) in made.tools.items()}
            return Offer(pairs, made.withheld, made.entries)

        outside.offer = offered
        outside.model = effects.around("model", outside.model)
        outside.complete = effects.around("complete", outside.complete)
        return runner
