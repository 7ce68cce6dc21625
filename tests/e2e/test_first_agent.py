"""The first command of the README: a real model on a real file, and what becomes of it when it is killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from noeta.testing import check_extension

ROOT = Path(__file__).parents[2]
QUESTION = "What is the code word in note.txt?"
SLOW = '''
from pathlib import Path

import anyio

from noeta import Extension, text_output


class Read:
    """Reads a file; the first time it takes for ever."""

    name = "Read"
    description = "Reads a file."
    input_schema = {
        "type": "object",
        "properties": {"file_path": {"type": "string"}},
        "required": ["file_path"],
    }
    read_only = True
    clearable = True

    async def run(self, input, ctx):
        began = Path("began")
        if not began.exists():
            began.touch()
            await anyio.sleep_forever()
        return text_output(Path(input["file_path"]).read_text())


class Slow(Extension):
    """Brings a tool that is killed in the middle."""

    name = "slow"
    version = "1"

    def tools(self, view):
        return [Read()]
'''


class Folder:
    """A folder with one short file, and a home of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        shutil.copy(ROOT / "docs" / "tutorial" / "note.txt", path)
        kept = ("PATH", "LANG", "PYTHONPATH")
        self._environ = {name: os.environ[name] for name in kept if name in os.environ}
        self._environ |= {"HOME": str(path / "home"), "NOETA_HOME": str(path / "home")}

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command line."""
        return subprocess.Popen(
            [sys.executable, "-m", "noeta", *arguments],
            cwd=self.path,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, exit: int = 0) -> str:
        """What a command prints, which has to end with this exit code."""
        with self.begin(*arguments) as process:
            out, err = process.communicate(timeout=240)
        assert process.returncode == exit, err
        return out

    def log(self) -> list[dict[str, Any]]:
        """The records of the newest task."""
        return [json.loads(line) for line in self.run("log", "last", "--json").splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder to ask about."""
    return Folder(tmp_path)


def kinds(log: list[dict[str, Any]]) -> list[str]:
    return [record["kind"] for record in log]


def test_a_question_about_a_file_reads_it_and_is_answered(folder: Folder) -> None:
    answer = folder.run("run", QUESTION)
    assert answer.strip()
    log = folder.log()
    finished = [record for record in log if record["kind"] == "tool_finished"]
    assert [record["data"].get("is_error", False) for record in finished] == [False]
    assert kinds(log)[-1] == "turn_done"
    shown = folder.run("show", "last")
    assert 'Read {"file_path":"note.txt"}' in shown
    assert "The code word is pelican." in shown
    assert answer.strip() in shown


def test_a_reply_that_is_killed_in_the_middle_is_made_again(folder: Folder) -> None:
    with folder.begin("run", "Tell me a long story about a king.", "--output", "stream-json") as process:
        assert process.stdout
        for line in process.stdout:
            if json.loads(line)["type"] == "delta":
                break
        process.send_signal(signal.SIGKILL)
    assert "model_replied" not in kinds(folder.log())
    assert folder.run("run", "--resume", "last").strip()
    log = folder.log()
    assert kinds(log).count("claimed") == 2
    assert kinds(log).count("model_replied") == 1
    assert kinds(log)[-1] == "turn_done"


def test_a_tool_that_is_killed_in_the_middle_is_run_again_and_the_task_explains_itself(
    folder: Folder,
) -> None:
    (folder.path / "slow.py").write_text(SLOW)
    plugin = ("--plugin", "slow.py", "--no-plugin", "fs")
    with folder.begin("run", QUESTION, *plugin) as process:
        while not (folder.path / "began").exists():
            assert process.poll() is None, process.communicate()
        # What only reads needs no start in the log, and the reply before it is written within a second.
        while kinds(folder.log())[-1] != "model_replied":
            assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)
    assert folder.run("run", "--resume", "last", *plugin).strip()
    log = folder.log()
    assert kinds(log).count("tool_finished") == 1
    assert kinds(log)[-1] == "turn_done"
    [replied] = [r for r in log if r["kind"] == "model_replied" and r["data"].get("calls")]
    call = replied["data"]["calls"][0]["id"]
    assert call in folder.run("why", "last")
    assert "Read" in folder.run("why", "last", call)
    before = json.loads(folder.run("state", "last", "--at", str(replied["seq"]), "--json"))
    assert before["calls"][call]["status"] == "open"
    after = json.loads(folder.run("state", "last", "--json"))
    assert after["turn"] is None


def blocks(page: str) -> list[str]:
    """The programs that a page shows."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def test_the_program_of_the_readme_answers_from_the_file(folder: Folder) -> None:
    (folder.path / "docs" / "tutorial").mkdir(parents=True)
    shutil.copy(folder.path / "note.txt", folder.path / "docs" / "tutorial")
    program = blocks("README.md")[0]
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=folder.path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip()
    assert 'Read {"file_path":"docs/tutorial/note.txt"}' in folder.run(
        "show", "last", "--store", f"sqlite:{folder.path / 'noeta.db'}"
    )


@pytest.mark.parametrize(("page", "number"), [("README.md", 1), ("docs/tutorial/first-agent.md", 0)])
def test_the_plugins_that_pages_show_keep_what_plugins_promise(page: str, number: int) -> None:
    names: dict[str, Any] = {}
    exec(blocks(page)[number], names)
    check_extension(names["Careful"])
