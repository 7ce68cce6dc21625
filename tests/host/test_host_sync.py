"""A host for callers that cannot await has the same verbs."""

from __future__ import annotations

import inspect

import pytest

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
