"""The command `run`: prompts, streams, exit codes, and which task it is that goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


# ---- prompts


PROMPTS = {
    "the argument": (["go"], None, "go"),
    "standard input": ([], "from a pipe\n", "from a pipe"),
    "both": (["go"], "from a pipe\nin two lines\n", "go\n\nfrom a pipe\nin two lines"),
    "an argument and an empty pipe": (["go"], "", "go"),
}


@pytest.mark.parametrize("case", PROMPTS)
def test_the_prompt_is_the_argument_and_what_is_piped_in(noeta: Any, case: str) -> None:
    words, piped, prompt = PROMPTS[case]
    noeta.says("Done.")
    ran = noeta("run", "--output", "stream-json", *words, input=piped)
    assert ran.returncode == 0, ran.stderr
    [received] = [
        each["record"]["message"]
        for each in lines(ran.stdout)
        if each["type"] == "record" and each["record"]["kind"] == "received"
    ]
    assert received["content"] == [{"type": "text", "text": prompt}]


def test_input_that_is_no_text_is_refused(noeta: Any) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "noeta", "run"],
        input=b"abc\xff",
        env=noeta.environ,
        cwd=noeta.project,
        capture_output=True,
        check=False,
    )
    assert process.returncode == 2
    assert process.stderr.startswith(b"noeta: standard input is no text in UTF-8 (byte 3)\n")


WRONG: dict[str, tuple[list[str], str]] = {
    "no prompt": ([], "there is no prompt; write noeta run"),
    "a blank prompt": (["  "], "the prompt is empty"),
    "an agent that is not there": (
        ["--agent", "codr", "go"],
        "there is no agent 'codr' (did you mean 'coder'?)",
    ),
    "a plugin that is not there": (
        ["--plugin", "toolz", "go"],
        "no installed plugin has this name (did you mean 'tools'?)",
    ),
    "a plugin file that is not there": (
        ["--plugin", "./a.py", "go"],
        "--plugin a.py: it cannot be read: No such file",
    ),
    "a plugin left out that is not there": (
        ["--no-plugin", "toolz", "go"],
        "there is no plugin 'toolz' (did you mean 'tools'?)",
    ),
    "a provider that is not there": (["--model", "scriptd:x", "go"], "(did you mean 'scripted'?)"),
    "a model without a provider": (["--model", "x", "go"], "names no provider"),
    "a setting without a value": (["--set", "plugins", "go"], "'plugins' sets nothing; write KEY=VALUE"),
    "a setting that is not there": (["--set", "modle=x", "go"], "did you mean 'model'?"),
    "a folder that is not there": (["--cwd", "nowhere", "go"], "'nowhere' does not exist"),
    "a store without a scheme": (["--store", "noeta.db", "go"], "'noeta.db' names no store"),
    "a store that nobody has": (["--store", "paper:x", "go"], "no installed store has this name"),
    "no turns": (["--max-turns", "0", "go"], "0 is not in the range x>=1"),
    "two ways to go on": (["-c", "--fork", "x", "go"], "--continue and --fork exclude each other"),
    "another agent for a task": (["--resume", "x", "--agent", "coder"], "the task has its agent"),
    "a fork without a prompt": (["--fork", "last"], "there is no prompt"),
    "a task that is not there": (
        ["--resume", "abc"],
        "there is no task yet; begin one with: noeta run PROMPT",
    ),
    "the last task of none": (["--resume", "last"], "there is no task yet"),
    "the task of a folder without one": (["-c", "go"], "there is no task yet"),
    "an output that is none": (["--output", "xml", "go"], "'xml' is not one of"),
    "an environment that is not there": (["--set", "env=desc", "go"], "(did you mean 'desk'?)"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_with_a_run_is_one_sentence(doer: Any, here: Any, wrong: str) -> None:
    words, says = WRONG[wrong]
    ran = here("run", *words)
    assert (ran.returncode, ran.stdout) == (2, "")
    first, *rest = ran.stderr.splitlines()
    assert first.startswith("noeta: ")
    assert says in first
    assert rest in ([], ["Try 'noeta run --help'."])


def test_a_usual_part_that_is_not_installed_is_named_with_its_package(noeta: Any) -> None:
    ran = noeta("run", "--model", "openai:gpt-5", "go")
    assert ran.returncode == 2
    assert "provider 'openai' is not installed; this installs it: pip install noeta-openai" in ran.stderr


# ---- what is shown


def test_the_answer_is_on_standard_output_and_all_else_on_standard_error(doer: Any) -> None:
    doer.says(["I look.", ["look", {"path": "a\nb"}]], "Nothing there.")
    ran = doer("run", "go")
    assert ran.returncode == 0
    assert ran.stdout == "I look.\nNothing there.\n"
    head, call, result = ran.stderr.splitlines()
    assert head.startswith("noeta: task ")
    assert "The model is scripted:model, since " in head
    assert (call, result) == ("  look(path=a b)", "  look -> nothing at a b")


def test_print_mode_gives_the_answer_alone(doer: Any, here: Any) -> None:
    doer.says(["I look.", ["look", {"path": "a"}]], "Nothing there.")
    ran = here("run", "-p", "go")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Nothing there.\n", "")


def test_json_is_one_object(doer: Any, here: Any) -> None:
    doer.says(["I look.", ["look", {"path": "a"}]], "Nothing there.")
    ran = here("run", "--output", "json", "go")
    [given] = lines(ran.stdout)
    assert given.keys() == {"v", "task", "status", "reason", "text", "usage", "asks"}
    assert (given["status"], given["text"], given["asks"], ran.stderr) == ("done", "Nothing there.", [], "")


def test_a_stream_of_json_holds_every_record_and_pieces_as_they_come(doer: Any) -> None:
    doer.says(text := "It goes (waits) on.")
    process = doer.start("run", "--output", "stream-json", "go")
    said, found = "", []
    while "(waits)" not in said:
        found.append(json.loads(process.stdout.readline()))
        said += found[-1]["text"] if found[-1]["type"] == "delta" else ""
    assert text.startswith(said)
    doer.go.touch()
    out, err = process.communicate(timeout=60)
    first, *between, last = [*found, *lines(out)]
    assert (first["type"], first["v"], last["type"], last["text"]) == ("run", 1, "outcome", text)
    seqs = [each["record"]["seq"] for each in between if each["type"] == "record"]
    assert (seqs, err) == (list(range(1, len(seqs) + 1)), "")


def test_a_turn_that_fails_is_exit_code_1(noeta: Any, here: Any) -> None:
    noeta.says(["content", "It will not say that."])
    ran = here("run", "go")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "noeta: the turn failed (content): It will not say that" in ran.stderr


def test_a_provider_that_is_down_is_exit_code_4(noeta: Any, here: Any) -> None:
    noeta.says(["network", "The line is dead.", 3600])
    ran = here("run", "go")
    assert (ran.returncode, ran.stdout) == (4, "")
    [line] = [line for line in ran.stderr.splitlines() if "waits for the provider" in line]
    assert "The line is dead. Later: noeta run --resume " in line


def test_too_many_turns_fail_the_turn_and_the_task_goes_on(doer: Any, here: Any) -> None:
    doer.says(*[["", ["look", {"path": str(n)}]] for n in range(3)], "There.")
    ran = here("run", "--max-turns", "2", "go")
    assert ran.returncode == 1
    assert "The run made 2 model calls, as many as --max-turns allows." in ran.stderr
    assert "  look(path=1)" in ran.stderr
    assert "  look(path=2)" not in ran.stderr
    assert here("run", "-c", "-p", "on").stdout == "There.\n"


def test_a_reader_who_leaves_ends_it_quietly(noeta: Any) -> None:
    noeta.says("word " * 50_000)
    process = noeta.start("run", "go")
    assert process.stdout.read(4) == "word"
    process.stdout.close()
    assert process.wait(60) == 1
    assert "Error" not in process.stderr.read()


def test_a_reader_who_pauses_holds_up_no_task(noeta: Any) -> None:
    noeta.says(text := " ".join(["word"] * 50_000))
    process = noeta.start("run", "go")
    assert process.stdout.read(4) == "word"
    # It comes back when the task is done, of which hardly anything was read.
    assert noeta("run", "-p", "--resume", "last").stdout == f"{text}\n"
    assert process.stdout.read() == f"{text[4:]}\n"
    assert process.wait(60) == 0


# ---- plugins


def test_a_file_on_the_command_line_joins_and_a_plugin_can_be_left_out(doer: Any, tmp_path: Path) -> None:
    more = tmp_path / "more.py"
    more.write_text(
        "from noeta import Extension\n\n\nclass More(Extension):\n    name = 'more'\n\n"
        "    async def on_start(self, view):\n        view.notify('more is here')\n"
    )
    doer.says("Done.")
    assert "  more is here" in doer("run", "--plugin", str(more), "go").stderr.splitlines()
    doer.says(["", ["look", {"path": "a"}]], "Done.")
    assert "look -> " in doer("run", "go").stderr
    assert "nothing at a" not in doer("run", "--no-plugin", "tools", "go").stderr
    assert "safe leaves plugin files out" in doer("run", "--safe", "--plugin", str(more), "go").stderr


def test_files_of_a_project_that_are_not_trusted_are_named_once_each(doer: Any, here: Any) -> None:
    doer.plugin("theirs", "no one runs this", project=True)
    (doer.project / "noeta.toml").write_text('model = "scripted:theirs"\n')
    doer.says("Done.")
    ran = here("run", "go")
    skipped = [line for line in ran.stderr.splitlines() if "not trusted" in line]
    assert len(skipped) == 2
    assert "noeta.toml" in skipped[0]
    assert "theirs.py" in skipped[1]
    assert "scripted:model" in ran.stderr


def test_an_agent_that_cannot_be_put_together_is_left_out(doer: Any, here: Any) -> None:
    settings = (doer.home / "noeta.toml").read_text()
    doer.settings(f'{settings}[agents.broken]\nplugins = ["nowhere"]\n')
    doer.says("Done.")
    ran = here("run", "go")
    assert ran.returncode == 0
    assert "noeta: agent 'broken' is left out: Plugin 'nowhere'" in ran.stderr
    assert here("run", "--agent", "broken", "go").returncode == 2


# ---- going on


def test_a_run_goes_on_with_the_newest_task_of_its_folder(noeta: Any, tmp_path: Path) -> None:
    noeta.says("One.", "Two.", "Three.")
    assert noeta("run", "-p", "go").stdout == "One.\n"
    other = tmp_path / "other"
    other.mkdir()
    assert noeta("run", "-p", "--cwd", str(other), "go").stdout == "One.\n"
    assert noeta("run", "-p", "-c", "on").stdout == "Two.\n"
    assert noeta("run", "-p", "-c", "on", cwd=other).stdout == "Two.\n"
    assert noeta("run", "-p", "-c", "on").stdout == "Three.\n"


def test_a_fork_leaves_the_task_as_it_was(noeta: Any, here: Any) -> None:
    noeta.says("One.", "Two.", "Three.")
    task = json.loads(here("run", "--output", "json", "go").stdout)["task"]
    fork = json.loads(here("run", "--output", "json", "--fork", task[:12], "on").stdout)
    assert (fork["text"], fork["task"] == task) == ("Two.", False)
    assert here("run", "-p", "--resume", task, "on").stdout == "Two.\n"
    assert here("run", "-p", "--resume", fork["task"], "on").stdout == "Three.\n"


def test_a_task_with_nothing_open_says_its_answer_again(noeta: Any, here: Any) -> None:
    noeta.says("One.")
    here("run", "go")
    ran = here("run", "-p", "--resume", "last")
    assert (ran.returncode, ran.stdout) == (0, "One.\n")
