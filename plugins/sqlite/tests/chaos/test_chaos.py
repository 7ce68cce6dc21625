"""Real processes are killed and stopped at random moments, and nothing is lost, doubled or half done."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

RIG = Path(__file__).with_name("rig.py")


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the rig. It forks, which a process of its own can do without a care."""
    command = [sys.executable, str(RIG), str(folder), *options]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def test_processes_killed_at_random_lose_and_double_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "--seconds=40")
    assert done.returncode == 0, done.stdout


BROKEN = {
    "an append does not look at its claim": "was refused|has a record of fence|nobody holds it",
    "a repeated append is not recognised": "was answered Conflict when it was repeated",
    "a post wakes nobody": "has unread mail",
    "a consumed item keeps its body": "unread items, and has|is in 1 records; unread: True",
    "a timer that fired stays": "is there: True, fired: True|timers that nothing left there|has a timer",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_store_without_a_guard_is_found_out(name: str, tmp_path: Path) -> None:
    # A busy machine may take longer until the fault shows.
    for seconds in (4, 12, 36):
        folder = tmp_path / str(seconds)
        folder.mkdir()
        said = run(folder, f"--seconds={seconds}", f"--without={name}").stdout
        if found := re.search(f"VIOLATION.*({BROKEN[name]})", said):
            break
    assert found, said
