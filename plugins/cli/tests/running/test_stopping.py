"""Stopping a run: Ctrl-C, SIGTERM and SIGKILL, at a reply and at a tool, and going on afterwards."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from noeta_cli.sitting import LEAVING_SECONDS


def kinds(doer: Any) -> list[str]:
    """The kinds of the records of the newest task."""
    import noeta_sqlite

    reader = noeta_sqlite.SqliteReader(doer.home / "noeta.db")
    return [line.name.removeprefix("core.") for line in reader.read(reader.tasks()[-1].task)]


def in_a_reply(doer: Any) -> Any:
    """A run whose model has said something and waits."""
    doer.says("It goes (waits) on.")
    process = doer.start("run", "go")
    said = ""
    while "(waits)" not in said:
        said += process.stdout.read(1)
    return process


def in_a_tool(doer: Any) -> Any:
    """A run whose tool has done something and waits for what comes of it."""
    doer.says(["", ["press", {"times": 1}]], "Done.")
    process = doer.start("run", "go")
    pressed = doer.go.with_name("pressed")
    while not (pressed.exists() and pressed.read_text()):
        assert process.poll() is None
    return process


PLACES = {"a reply": in_a_reply, "a tool": in_a_tool}


@pytest.mark.parametrize("place", PLACES)
def test_ctrl_c_interrupts_the_turn_for_good(doer: Any, place: str) -> None:
    process = PLACES[place](doer)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "noeta: interrupting the turn; Ctrl-C again leaves at once." in err
    assert "noeta: the turn was interrupted. Go on with: noeta run --resume " in err
    assert "interrupted" in kinds(doer)
    assert "Traceback" not in err
    # It is no open turn any more, and takes another message.
    doer.go.touch()
    doer.says("Done.", "Done too.")
    assert doer("run", "-p", "-c", "on").returncode == 0


@pytest.mark.parametrize("place", PLACES)
def test_sigterm_leaves_and_the_task_goes_on(doer: Any, place: str) -> None:
    process = PLACES[place](doer)
    process.send_signal(signal.SIGTERM)
    if place == "a tool":
        # A call that would be cut off is waited for.
        while "terminated" not in process.stderr.readline():
            assert process.poll() is None
        doer.go.touch()
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert {"interrupted", "turn_done"}.isdisjoint(kinds(doer))
    doer.go.touch()
    ran = doer("run", "-p", "--resume", "last")
    assert ran.returncode == 0
    assert ran.stdout == {"a reply": "It goes (waits) on.\n", "a tool": "Done.\n"}[place]
    assert kinds(doer)[-1] == "turn_done"


@pytest.mark.parametrize("place", PLACES)
def test_a_run_that_is_killed_goes_on_with_resume(doer: Any, place: str) -> None:
    process = PLACES[place](doer)
    process.kill()
    process.communicate(timeout=60)
    doer.go.touch()
    # Others wait until its lease is over.
    ran = doer("run", "--resume", "last")
    assert ran.returncode == 0, ran.stderr
    if place == "a reply":
        assert ran.stdout == "It goes (waits) on.\n"
    else:
        assert ran.stdout == "Done.\n"
        # Nobody knows what came of the first press, so it is not done again.
        assert doer.go.with_name("pressed").read_text() == "pressed\n"
        assert "  press -> " in ran.stderr


def test_a_second_ctrl_c_leaves_at_once(doer: Any) -> None:
    doer.plugin(
        "stubborn",
        """
        import os, pathlib, time
        from noeta import Extension, function_tool

        @function_tool
        def hold(times: int) -> str:
            '''Hold on, whatever happens.'''
            pathlib.Path(os.environ["GO"]).with_name("pressed").touch()
            while True:
                time.sleep(0.01)

        class Stubborn(Extension):
            name = "stubborn"
            add_to = ("doer",)

            def tools(self, view):
                return [hold]
        """,
    )
    doer.says(["", ["hold", {"times": 1}]], "Done.")
    process = doer.start("run", "go")
    while not doer.go.with_name("pressed").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    while "interrupting the turn" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LEAVING_SECONDS + 5)
    assert process.returncode == 130


def test_a_run_takes_up_no_task_of_another_run(doer: Any) -> None:
    import noeta_sqlite

    process = in_a_reply(doer)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    reader = noeta_sqlite.SqliteReader(doer.home / "noeta.db")
    [left] = reader.tasks()
    assert left.status == "ready"
    doer.says("Done.")
    assert doer("run", "-p", "go").stdout == "Done.\n"
    assert reader.task(left.task) == left
