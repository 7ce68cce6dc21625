"""The commands that steer tasks, and the worker that runs them."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest


def begun(noeta: Any, *script: Any) -> str:
    """A task with one turn."""
    noeta.says(*script)
    task: str = json.loads(noeta("run", "--output", "json", "go").stdout)["task"]
    return task


def reader(noeta: Any) -> Any:
    import noeta_sqlite

    return noeta_sqlite.SqliteReader(noeta.home / "noeta.db")


WRONG: dict[str, tuple[list[str], str]] = {
    "interrupt no task": (
        ["interrupt", "abc"],
        "there is no task 'abc' in this store; `noeta tasks`",
    ),
    "interrupt nothing": (["interrupt"], "Missing argument 'TASK'"),
    "interrupt no word": (["interrupt", ""], "there is no task ''"),
    "cancel no task": (["cancel", "abc"], "there is no task 'abc'"),
    "fork no task": (["fork", "abc"], "there is no task 'abc'"),
    "fork behind the end": (["fork", "last", "--through", "99"], "has no record 99; its last one is 6"),
    "fork at nothing": (["fork", "last", "--through", "0"], "0 is not in the range x>=1"),
    "erase without asking": (["erase", "last", "3"], "say --yes where nobody can be asked"),
    "erase nothing": (["erase", "last", "--yes"], "Missing argument 'SEQ...'"),
    "erase no number": (["erase", "last", "x", "--yes"], "'x' is not a valid integer range"),
    "erase what is not there": (["erase", "last", "99", "--yes"], "has no record 99; its last one is 6"),
    "erase a reply": (["erase", "last", "5", "--yes"], "is a model_replied, which stays"),
    "a worker without room": (["worker", "--capacity", "0"], "0 is not in the range x>=1"),
    "a worker without patience": (["worker", "--grace", "-1"], "-1.0 is not in the range"),
    "a worker on no store": (["worker", "--store", "x"], "'x' names no store"),
}


def test_what_is_wrong_with_a_command_is_one_sentence(noeta: Any, here: Any) -> None:
    noeta.says("One.")
    assert here("run", "go").returncode == 0
    for words, says in WRONG.values():
        ran = here(*words)
        first, *rest = ran.stderr.splitlines()
        assert (ran.returncode, ran.stdout) == (2, ""), words
        assert first.startswith("noeta: ")
        assert says in first
        assert rest in ([], [f"Try 'noeta {words[0]} --help'."])


def test_a_task_may_be_named_by_the_beginning_of_its_id(noeta: Any, here: Any) -> None:
    task = begun(noeta, "One.")
    assert here("cancel", task[:3]).returncode == 2
    assert here("cancel", task[:10]).returncode == 0


def test_an_interrupt_stops_the_turn_that_another_process_runs(noeta: Any) -> None:
    noeta.says("It goes (waits) on.")
    process = noeta.start("run", "go")
    said = ""
    while "(waits)" not in said:
        said += process.stdout.read(1)
    stopped = noeta("interrupt", "last")
    assert (stopped.returncode, stopped.stdout) == (0, "")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the turn was interrupted" in err
    again = noeta("interrupt", "last")
    assert again.returncode == 0
    assert "is at no turn, so there is nothing to interrupt" in again.stderr


def test_a_cancelled_task_ends_and_is_not_gone_on_with(noeta: Any) -> None:
    task = begun(noeta, "One.")
    assert noeta("cancel", task, "--reason", "enough").returncode == 0
    # It takes a worker to end it.
    ran = noeta("run", "--resume", task)
    assert ran.returncode == 1
    assert "was cancelled" in ran.stderr
    assert "has ended already" in noeta("cancel", task).stderr
    refused = noeta("run", "-c", "on")
    assert refused.returncode == 2
    assert "there is no task of" in refused.stderr


def test_a_fork_is_printed_and_goes_on_from_its_record(noeta: Any) -> None:
    task = begun(noeta, "One.", "Two.")
    made = noeta("fork", task, "--through", "6")
    assert made.returncode == 0
    [fork] = made.stdout.splitlines()
    assert f"it waits for a message: noeta run --resume {fork} PROMPT" in made.stderr
    assert noeta("run", "-p", "--resume", fork, "on").stdout == "Two.\n"
    assert reader(noeta).task(fork).base == task


def test_what_is_erased_is_gone_when_a_worker_came_to_it(noeta: Any) -> None:
    noeta.says("One.")
    secret = "the password is swordfish"
    task = json.loads(noeta("run", "--output", "json", secret).stdout)["task"]
    assert any(b"swordfish" in line.data for line in reader(noeta).read(task))
    told = noeta("erase", task, "3", "3", "--yes")
    assert (told.returncode, told.stdout) == (0, "")
    assert noeta("run", "--resume", task).returncode == 0
    assert not any(b"swordfish" in line.data for line in reader(noeta).read(task))


STOPS = {signal.SIGTERM: 143, signal.SIGINT: 130}


@pytest.mark.parametrize("number", STOPS)
def test_a_worker_runs_what_is_ready_until_it_is_stopped(noeta: Any, number: signal.Signals) -> None:
    task = begun(noeta, "One.", "Two.")
    process = noeta.start("worker", "--capacity", "2")
    assert "runs tasks of coder; Ctrl-C or SIGTERM stops it" in process.stderr.readline()
    noeta("cancel", task)
    deadline = time.monotonic() + 60
    while reader(noeta).task(task).status != "ended":
        assert time.monotonic() < deadline
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (STOPS[number], "")
    assert err.splitlines() == ["noeta: stopping at safe points; once more leaves at once"]


def test_a_worker_leaves_other_queues_alone(noeta: Any) -> None:
    task = begun(noeta, "One.")
    noeta("cancel", task)
    process = noeta.start("worker", "--queue", "mine", "--queue", "yours")
    process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert reader(noeta).task(task).status == "ready"


# ---- agents


def test_agents_say_where_they_are_from_and_why_they_are_as_they_are(doer: Any, here: Any) -> None:
    settings = (doer.home / "noeta.toml").read_text()
    doer.settings(f'{settings}tools = ["look"]\n[agents.broken]\nplugins = ["nowhere"]\n')
    ran = here("agents", "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    found = {each["name"]: each for each in json.loads(ran.stdout)}
    assert found.keys() == {"coder", "doer", "broken"}
    assert found["coder"]["from"] == "noeta"
    assert found["doer"]["from"] == str(doer.home / "noeta.toml")
    assert found["doer"]["tools"] == ["look"]
    assert [each["name"] for each in found["doer"]["plugins"]] == ["tools"]
    assert "tools.py adds it" in found["doer"]["plugins"][0]["why"]
    assert "no installed plugin has this name" in found["broken"]["fault"]
    assert found["doer"]["reason"].startswith("The model is scripted:model, since ")
    text = here("agents").stdout
    assert "  tools    look\n" in text
    assert "  fault    Plugin 'nowhere'" in text
