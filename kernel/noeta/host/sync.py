"""A host for callers that cannot await."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from noeta.core.items import NewEntry
from noeta.core.messages import Message
from noeta.core.records import Recorded
from noeta.core.state import TaskState
from noeta.host.following import Live
from noeta.host.host import Host
from noeta.host.outcome import Outcome
from noeta.toolkit.store import TaskRow

P = ParamSpec("P")
T = TypeVar("T")


class SyncHost:
    """The verbs of a `Host`, each of which waits until it is done. Any thread may call them.

        with Host([agent], providers=providers).sync() as host:
            outcome = host.run("coder", "Fix the failing test.")

    The host runs on an event loop in a thread of its own, so tools and plugins run there. A verb that still
    waits when the host is left raises `RuntimeError`.
    """

    def __init__(self, host: Host, *, backend: str = "asyncio") -> None:
        self._host, self._backend = host, backend
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._followed: set[Any] = set()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal(self._backend))
            # Whoever still waits when the host has stopped would wait for ever.
            stack.callback(portal.call, portal.stop, True)
            stack.callback(portal.call, self._end_following)
            stack.enter_context(portal.wrap_async_context_manager(self._host))
            self._portal, self._stack = portal, stack.pop_all()
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Nothing of the caller's runs on the loop, so nothing of its errors is passed there.
        self._portal = None
        self._stack.close()

    def start(self, agent: str, prompt: str | Message | None = None, **settings: Any) -> str:
        """As `Host.start`."""
        return self._call(self._host.start, agent, prompt, **settings)

    def run(self, agent: str, prompt: str | Message, *, output: type | None = None, **start: Any) -> Outcome:
        """As `Host.run`."""
        return self._call(self._host.run, agent, prompt, output=output, **start)

    def fork(self, task: str, through: int | None = None, *, key: str | None = None) -> str:
        """As `Host.fork`."""
        return self._call(self._host.fork, task, through, key=key)

    def rewind(self, task: str, through: int, *, key: str | None = None) -> str:
        """As `Host.rewind`."""
        return self._call(self._host.rewind, task, through, key=key)

    def post(self, task: str, body: str | Message | NewEntry, *, dedupe_key: str | None = None) -> bool:
        """As `Host.post`."""
        return self._call(self._host.post, task, body, dedupe_key=dedupe_key)

    def answer(
        self, task: str, call: str, verdict_or_values: str | Mapping[str, Any], *, by: str, **more: Any
    ) -> None:
        """As `Host.answer`."""
        self._call(self._host.answer, task, call, verdict_or_values, by=by, **more)

    def interrupt(self, task: str, *, by: str = "") -> bool:
        """As `Host.interrupt`."""
        return self._call(self._host.interrupt, task, by=by)

    def cancel(self, task: str, *, by: str = "", reason: str = "") -> bool:
        """As `Host.cancel`."""
        return self._call(self._host.cancel, task, by=by, reason=reason)

    def erase(self, task: str, seqs: Sequence[int], *, by: str = "") -> None:
        """As `Host.erase`."""
        self._call(self._host.erase, task, seqs, by=by)

    def wait(self, task: str) -> Outcome:
        """As `Host.wait`."""
        return self._call(self._host.wait, task)

    def follow(self, task: str, after: int = 0) -> Iterator[Recorded | Live]:
        """As `Host.follow`. Who stops early closes the iterator, or leaves it to be collected."""
        following: Any = self._host.follow(task, after)
        self._followed.add(following)
        try:
            while True:
                try:
                    yield self._call(following.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self._followed.discard(following)
            # One that is cut off while it waits closes itself, and all are closed with the host.
            with suppress(RuntimeError):
                self._call(following.aclose)

    def tasks(self, **filters: Any) -> list[TaskRow]:
        """As `Host.tasks`."""
        return self._call(self._host.tasks, **filters)

    def log(self, task: str, after: int = 0) -> list[Recorded]:
        """As `Host.log`."""
        return self._call(self._host.log, task, after)

    def state(self, task: str, at: int | None = None) -> TaskState:
        """As `Host.state`."""
        return self._call(self._host.state, task, at)

    async def _end_following(self) -> None:
        for following in list(self._followed):
            with suppress(RuntimeError):
                await following.aclose()

    def _call(self, verb: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._portal is None:
            raise RuntimeError("the host does not run; use it inside `with host:`")
        future = self._portal.start_task_soon(partial(verb, *args, **kwargs))
        try:
            given: T = future.result()
        except CancelledError:
            raise RuntimeError("the host was left before this was done") from None
        except BaseException:
            # Such as an interrupt from the keyboard: then nobody waits for it any more.
            future.cancel()
            raise
        return given
