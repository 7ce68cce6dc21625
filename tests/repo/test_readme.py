"""The README and CI run the same suite."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def readme_commands(text: str) -> list[str]:
    """Return the lines of the README's shell blocks that start uv."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if ".ci/uv" in line]


def test_only_console_blocks_hold_commands() -> None:
    text = "python3 .ci/uv a\n```console\n$ python3 .ci/uv b\nanswer\n```\n```toml\n.ci/uv c\n```\n"
    assert readme_commands(text) == ["python3 .ci/uv b"]


def test_ci_runs_exactly_the_suite_command_of_the_readme() -> None:
    commands = readme_commands((ROOT / "README.md").read_text())
    assert len(commands) == 2
    started = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if ".ci/uv" in line]
    assert started == [commands[1]]


def test_ci_stops_at_the_first_failure() -> None:
    assert "set -eu" in (ROOT / ".ci" / "run").read_text().splitlines()
