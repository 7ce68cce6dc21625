"""A host for callers that cannot await has the same verbs."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from noeta.core.ports import ModelRequest
from noeta.core.records import Recorded
from noeta.host.host import Host
from noeta.host.sync import SyncHost
from noeta.testing.scripted_provider import ScriptedProvider
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import UnknownTask


def host(*script: str) -> SyncHost:
    agent = Agent("agent", model="test:model")
    return Host([agent], providers={"test": ScriptedProvider(script)}).sync()


def verbs(class_: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(class_, inspect.isfunction) if not name.startswith("_")}


def test_it_has_every_verb_of_a_host() -> None:
    assert verbs(SyncHost) == verbs(Host) - {"sync"}


def test_a_task_runs_while_the_caller_waits() -> None:
    with host("Hello.", "Fine.") as here:
        outcome = here.run("agent", "hi")
        assert outcome.text == "Hello."
        assert here.post(outcome.task, "how are you?")
        assert here.wait(outcome.task).text == "Fine."
        assert [row.task for row in here.tasks()] == [outcome.task]
        assert here.state(outcome.task).turn is None
        fork = here.rewind(outcome.task, 1)
        assert fork == here.fork(outcome.task) or here.log(fork)[0].seq == 1
        assert here.cancel(outcome.task)


def test_following_ends_with_the_task() -> None:
    with host("Hello.") as here:
        task = here.start("agent", "hi", one_shot=True)
        records = [piece for piece in here.follow(task) if isinstance(piece, Recorded)]
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        assert records[-1].kind == "task_ended"


def test_who_stops_following_early_leaves_nothing_behind() -> None:
    with host("Hello.") as here:
        pieces = here.follow(here.start("agent", "hi"))
        assert next(pieces)
        pieces.close()  # type: ignore[attr-defined]


def test_errors_come_to_the_caller_as_they_are() -> None:
    with host() as here, pytest.raises(UnknownTask):
        here.wait("nobody")
    with pytest.raises(LookupError, match="mine"), host():
        raise LookupError("mine")


def test_a_host_that_does_not_run_says_so() -> None:
    with pytest.raises(RuntimeError, match="with host"):
        host().tasks()


class Silent(ScriptedProvider):
    """A model that never says a word. `asked` is set once somebody waits for one."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        self.asked.set()
        await anyio.sleep_forever()
        yield


def in_a_thread(verb: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            verb()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors


@pytest.mark.parametrize("verb", ["wait", "follow"])
def test_who_still_waits_when_the_host_is_left_is_told_so(verb: str) -> None:
    model = Silent()
    with Host([Agent("agent", model="test:model")], providers={"test": model}).sync() as here:
        task = here.start("agent", "hi")
        waiting = {"wait": lambda: here.wait(task), "follow": lambda: list(here.follow(task))}
        thread, errors = in_a_thread(waiting[verb])
        assert model.asked.wait(10)
    thread.join(10)
    [error] = errors
    assert isinstance(error, RuntimeError)
    assert "the host was left" in str(error) or "the host does not run" in str(error)


@pytest.mark.parametrize("verb", ["wait", "follow"])
def test_an_interrupt_from_the_keyboard_ends_the_verb_and_the_host(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Silent()

    def left() -> None:
        with Host([Agent("agent", model="test:model")], providers={"test": model}).sync() as here:
            task = here.start("agent", "hi")
            assert model.asked.wait(10)
            monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
            here.wait(task) if verb == "wait" else list(here.follow(task))

    def interrupted(future: Any, timeout: float | None = None) -> Any:
        monkeypatch.undo()
        raise KeyboardInterrupt

    thread, errors = in_a_thread(left)
    thread.join(20)
    assert [type(error) for error in errors] == [KeyboardInterrupt]


def test_what_is_followed_longer_than_the_host_runs_ends_with_it() -> None:
    with host("Hello.") as here:
        pieces = here.follow(here.start("agent", "hi"))
        next(pieces)
    with pytest.raises(RuntimeError, match="does not run"):
        next(pieces)
    pieces.close()  # type: ignore[attr-defined]
