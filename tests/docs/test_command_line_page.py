"""The page about the command line has every command as it is, every exit code and every variable."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import click
import pytest

from noeta.host.model_choice import KEYS
from noeta_cli import exits
from noeta_cli.commands import COMMANDS, SHORT
from noeta_cli.main import cli

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(Path(__file__).parent / "command_line.py"))
PAGE = SCRIPT["PAGE"].read_text()
SOURCES = [
    path
    for folder in (ROOT / "kernel" / "noeta", ROOT / "plugins" / "cli" / "src")
    for path in folder.rglob("*.py")
    # The kit sets variables of its own for what it tries.
    if "testing" not in path.parts
]
TOP = click.Context(cli, info_name="noeta")


def rows(title: str) -> list[str]:
    """The first cells of the table in a section."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, flags=re.MULTILINE)


def command(name: str) -> click.Command:
    found = cli.get_command(TOP, name)
    assert found is not None
    return found


def inside(found: click.Command) -> list[click.Command]:
    if not isinstance(found, click.Group):
        return [found]
    ctx = click.Context(found)
    inner = [found.get_command(ctx, name) for name in found.list_commands(ctx)]
    return [found, *(each for one in inner if one is not None for each in inside(one))]


def test_the_commands_on_the_page_are_those_there_are() -> None:
    assert SCRIPT["page"]() == PAGE, "Run: python tests/docs/command_line.py"


def test_every_command_is_listed_in_help_with_a_sentence() -> None:
    assert COMMANDS.keys() == SHORT.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_says_what_it_does(name: str) -> None:
    for each in inside(command(name)):
        assert (each.help or "").strip(), each.name
        silent = [
            option.name for option in each.params if isinstance(option, click.Option) and not option.help
        ]
        assert (each.name, silent) == (each.name, [])


def test_every_exit_code_is_listed() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper()}
    assert {int(code) for code in rows("Exit codes")} == codes


def test_every_variable_is_listed() -> None:
    named = {name for path in SOURCES for name in re.findall(r"\bNOETA_[A-Z_]+\b", path.read_text())}
    assert named | {*KEYS} <= {*rows("Environment")}
    assert "NOETA_HOME" in named
