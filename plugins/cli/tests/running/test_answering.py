"""Answering: by the command in another process, at a terminal, and what is no answer."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
from typing import Any

import pytest

from noeta.host.outcome import Asked
from noeta.host.places import find_places
from noeta.host.trust import Trust, trust
from noeta_cli.asks import answer_line, read_words, shown_ask
from noeta_cli.readers import Wrong

GATE = """
from noeta import Ask, Extension


class Gate(Extension):
    name = "gate"
    add_to = ("doer",)

    async def before_tool(self, view, call):
        return Ask(f"May {call.name} run?") if call.name == "look" else None
"""


def line_of(err: str) -> list[str]:
    """The words of the command that a run says answers it, without `noeta`."""
    [found] = re.findall(r"Answer with: noeta (.*)", err)
    return shlex.split(found)


def test_an_approval_in_another_terminal_lets_the_task_go_on(doer: Any) -> None:
    doer.plugin("gate", GATE, project=True)
    places = find_places(doer.environ, doer.project)
    trust(places, Trust(places).project_files())
    doer.says(["", ["look", {"path": "a"}]], "Done.")
    ran = doer("run", "go")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "  look(path=a): May look run?" in ran.stderr
    answered = doer(*line_of(ran.stderr), "--by", "ann")
    assert (answered.returncode, answered.stdout) == (0, "")
    assert "answered; a worker goes on with the task, or: noeta run --resume" in answered.stderr
    again = doer("run", "--resume", "last")
    assert (again.returncode, again.stdout) == (0, "Done.\n")
    assert "look -> nothing at a" in again.stderr
    assert "ann (allow)" in doer("why", "last").stdout


def test_a_worker_in_another_terminal_goes_on_too(doer: Any) -> None:
    doer.says(["", ["deploy", {"place": "live"}]], "It runs.")
    ran = doer("run", "go")
    assert ran.returncode == 3
    worker = doer.start("worker")
    assert "runs tasks of " in worker.stderr.readline()
    assert doer("answer", "last", "allow").returncode == 0
    assert doer("run", "-p", "--resume", "last").stdout == "It runs.\n"
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=60)
    assert worker.returncode == 143
    assert "stopping at safe points" in err


def test_a_refusal_and_its_reason_reach_the_model(doer: Any) -> None:
    doer.says(["", ["deploy", {"place": "live"}]], "A pity.")
    doer("run", "go")
    assert doer("answer", "last", "deny", "--reason", "Not today.").returncode == 0
    ran = doer("run", "--resume", "last")
    assert ran.stdout == "A pity.\n"
    assert "deploy -> The person refused this call. Not today." in ran.stderr


def test_a_question_is_answered_by_an_option(doer: Any) -> None:
    doer.says(["", ["colour", {}]], "Fine.")
    ran = doer("run", "--output", "json", "go")
    assert ran.returncode == 3
    outcome = json.loads(ran.stdout)
    [asked] = outcome["asks"]
    assert (outcome["status"], outcome["reason"], asked["on"]) == ("waiting", "question", "question")
    assert line_of(ran.stderr) == ["answer", asked["task"], asked["call"], "red"]
    listed = doer("answer", "last")
    assert listed.returncode == 0
    assert listed.stdout.splitlines() == [
        "Which colour?",
        "  1. red",
        "  2. blue",
        f"  noeta answer {asked['task']} {asked['call']} red",
    ]
    assert doer("answer", asked["task"], asked["call"][:6], "2").returncode == 0
    assert "colour -> the colour is blue" in doer("run", "--resume", "last").stderr


def test_several_that_wait_are_told_apart(doer: Any) -> None:
    doer.says(["", ["deploy", {"place": "here"}], ["deploy", {"place": "there"}]], "Both run.")
    ran = doer("run", "go")
    first, second = (shlex.split(line) for line in re.findall(r"Answer with: noeta (.*)", ran.stderr))
    refused = doer("answer", "last", "allow")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"noeta: 2 calls wait, so name one: noeta {shlex.join(first)}; ")
    assert doer(*first).returncode == 0
    assert doer(*second).returncode == 0
    assert doer("run", "-p", "--resume", "last").stdout == "Both run.\n"


WRONG: dict[str, tuple[list[str], str]] = {
    "a task that is not there": (["abc", "allow"], "there is no task 'abc' in this store"),
    "a verdict that is none": (["last", "alow"], "'alow' is no verdict (did you mean 'allow'?)"),
    "two verdicts": (["last", "allow", "deny"], "is no verdict"),
    "a call that does not wait": (
        ["last", "c99_0_abcdef12", "allow"],
        "does not wait for an answer; these wait: c",
    ),
    "no task": ([], "Missing argument 'TASK'"),
}


def test_what_is_wrong_with_an_answer_is_one_sentence(doer: Any, here: Any) -> None:
    doer.says(["", ["deploy", {"place": "live"}]])
    assert here("run", "go").returncode == 3
    for words, says in WRONG.values():
        ran = here("answer", *words)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.startswith("noeta: ")
        assert says in ran.stderr
    assert here("answer", "last", "allow").returncode == 0
    ran = here("answer", "last", "allow")
    assert ran.returncode == 2
    assert "somebody answered" in ran.stderr or "nothing of task" in ran.stderr


def asked(*questions: dict[str, Any], on: str = "question", **detail: Any) -> Asked:
    detail = {"questions": list(questions)} if questions else detail
    return Asked(task="t", call="c1_0_aa", park=1, name="tool", on=on, detail=detail)


ONE = {"question": "Where?"}
OPTIONS = {"question": "Which?", "options": [{"label": "red"}, {"label": "dark blue"}]}
MANY = {**OPTIONS, "multiSelect": True}
BOTH = {"Which?": ["red", "dark blue"]}
READ: dict[str, tuple[Asked, list[str], Any]] = {
    "free text": (asked(ONE), ["over there"], {"Where?": "over there"}),
    "an option": (asked(OPTIONS), ["RED"], {"Which?": "red"}),
    "its number": (asked(OPTIONS), ["2"], {"Which?": "dark blue"}),
    "own words": (asked(OPTIONS), ["the one of the sky"], {"Which?": "the one of the sky"}),
    "a number as free text": (asked(ONE), ["2"], {"Where?": "2"}),
    "a refusal": (asked(OPTIONS), ["deny"], "deny"),
    "several options": (asked(MANY), ["1", "dark blue"], BOTH),
    "two questions": (
        asked(ONE, MANY),
        ["here", "red, 2"],
        {"Where?": "here", "Which?": ["red", "dark blue"]},
    ),
    "values of a tool's own": (asked(token="?"), ["token=a=b"], {"token": "a=b"}),
    "a verdict": (asked(on="approval"), ["deny"], "deny"),
}


@pytest.mark.parametrize("case", READ)
def test_words_are_read_as_an_answer(case: str) -> None:
    given, words, expected = READ[case]
    assert read_words(given, words) == expected


UNFIT: dict[str, tuple[Asked, list[str], str]] = {
    "a slip": (asked(OPTIONS), ["dark bleu"], "did you mean 'dark blue'?"),
    "a number too high": (asked(OPTIONS), ["3"], "there is no option 3; there are 2: red, dark blue"),
    "too many words": (asked(ONE), ["over", "there"], "asks 1 question and got 2 answers"),
    "nothing": (asked(ONE), [" "], "an answer is empty"),
    "no pair": (asked(token="?"), ["abc"], "write KEY=VALUE"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_words_that_are_no_answer_are_refused(case: str) -> None:
    given, words, says = UNFIT[case]
    with pytest.raises(Wrong, match=re.escape(says)):
        read_words(given, words)


def test_the_line_that_answers_is_quoted_for_a_shell() -> None:
    assert answer_line(asked(MANY, ONE), "sqlite:a b.db") == (
        "noeta answer t c1_0_aa red ... --store 'sqlite:a b.db'"
    )
    assert answer_line(asked(on="approval")) == "noeta answer t c1_0_aa allow"


def test_what_is_asked_cannot_draw_on_the_terminal() -> None:
    evil = asked(on="approval", prompt="ok\x1b[2J\nnext", name="tool", input={"a": "\x1b]0;x\x07b"})
    assert shown_ask(evil) == ["tool(a=b): ok next"]


class Terminal:
    """A run at a terminal."""

    def __init__(self, doer: Any, *words: str) -> None:
        self.number, theirs = pty.openpty()
        self.process = doer.start(*words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        self.seen = ""

    def until(self, text: str) -> None:
        while text not in self.seen:
            try:
                data = os.read(self.number, 4096)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"{text!r} did not come: {self.seen}")
            self.seen += data.decode()

    def type(self, text: str) -> None:
        os.write(self.number, text.encode())

    def end(self) -> int:
        try:
            while data := os.read(self.number, 4096):
                self.seen += data.decode()
        except OSError:
            pass
        os.close(self.number)
        code: int = self.process.wait(60)
        return code


def test_a_question_is_asked_at_the_terminal(doer: Any) -> None:
    doer.says(["", ["deploy", {"place": "live"}]], ["", ["colour", {}]], "Done.")
    terminal = Terminal(doer, "run", "go")
    terminal.until("allow or deny?")
    terminal.type("maybe\n")
    terminal.until("'maybe' is no verdict")
    terminal.type("y\n")
    terminal.until("Your answer:")
    terminal.type("2\n")
    assert terminal.end() == 0
    assert "the colour is blue" in terminal.seen
    assert "Done." in terminal.seen


def test_an_answer_from_elsewhere_ends_the_asking(doer: Any) -> None:
    doer.says(["", ["deploy", {"place": "live"}]], "Done.")
    terminal = Terminal(doer, "run", "go")
    terminal.until("allow or deny?")
    assert doer("answer", "last", "allow").returncode == 0
    assert terminal.end() == 0
    assert "Done." in terminal.seen


def test_who_ends_the_input_leaves_the_question_open(doer: Any) -> None:
    doer.says(["", ["deploy", {"place": "live"}]], "Done.")
    terminal = Terminal(doer, "run", "go")
    terminal.until("allow or deny?")
    terminal.type("\x04")
    assert terminal.end() == 3
    assert "Answer with: noeta answer" in terminal.seen


def test_ctrl_c_at_a_question_interrupts_the_turn(doer: Any) -> None:
    doer.says(["", ["deploy", {"place": "live"}]], "Done.")
    terminal = Terminal(doer, "run", "go")
    terminal.until("allow or deny?")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "the turn was interrupted" in terminal.seen


def test_print_mode_asks_nothing_at_a_terminal(doer: Any) -> None:
    doer.says(["", ["deploy", {"place": "live"}]], "Done.")
    terminal = Terminal(doer, "run", "-p", "go")
    assert terminal.end() == 3


def test_the_model_cannot_draw_on_the_terminal(noeta: Any) -> None:
    noeta.says("A\x1b[2J\x1b]0;title\x07B")
    terminal = Terminal(noeta, "run", "-p", "go")
    assert terminal.end() == 0
    assert terminal.seen == "AB\r\n"
