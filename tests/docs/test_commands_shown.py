"""The commands that pages show are commands that there are, with options that they have."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from noeta_cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(ROOT.glob("plugins/*/README.md")),
]


def commands(text: str) -> list[str]:
    """The lines of console blocks that run `noeta`, from that word on."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    found = [re.search(r"(?:^\$ |run )(?:[A-Z_]+=\S+ )?(noeta .*)", line) for line in lines]
    return [match.group(1) for match in found if match]


SHOWN = sorted({(page.name, line) for page in PAGES for line in commands(page.read_text())})


def test_pages_show_commands() -> None:
    assert {name for name, _ in SHOWN} >= {"README.md", "first-agent.md"}


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=[f"{page}: {line}" for page, line in SHOWN])
def test_a_command_that_is_shown_can_be_run(page: str, line: str) -> None:
    words = [word for word in shlex.split(line, comments=True) if word not in ("…", "...")][1:]
    words = words[: next((i for i, word in enumerate(words) if word in ("|", "<", ">", "2>")), len(words))]
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found, f"{page} shows {words[0]!r}"
        command, context, words = found, click.Context(found, parent=context), words[1:]
    # Takes the words apart and runs nothing; what is missing may stand on the page in words.
    command.make_parser(click.Context(command, resilient_parsing=True)).parse_args(args=list(words))
