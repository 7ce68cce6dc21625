"""Writes the commands on the page about the command line, from the commands themselves.

    python tests/docs/command_line.py

Run it after a change of a command. A test compares the two.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from noeta_cli.commands import COMMANDS
from noeta_cli.main import cli

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
BEGIN = "<!-- The commands: python tests/docs/command_line.py writes this part. -->\n"
END = "<!-- The end of the commands. -->\n"


def page() -> str:
    """The page, its part about the commands made anew."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} has lost a mark: {BEGIN.strip()} or {END.strip()}")
    return f"{before}{BEGIN}\n{commands()}\n{END}{after}"


def commands() -> str:
    """Every command of ours in its order, and after a group its own."""
    top = click.Context(cli, info_name="noeta")
    parts: list[str] = []
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        parts += _command(command, click.Context(command, parent=top, info_name=name))
    return "\n".join(parts)


def _command(command: click.Command, ctx: click.Context) -> Iterator[str]:
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    yield f"### `{ctx.command_path}`\n\n```text\n{usage}\n```\n"
    yield f"{_prose(command.help or '')}\n"
    yield from _arguments([each for each in command.params if isinstance(each, click.Argument)], ctx)
    yield from _options([each for each in command.get_params(ctx) if isinstance(each, click.Option)], ctx)
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            assert inner is not None
            yield from _command(inner, click.Context(inner, parent=ctx, info_name=name))


def _arguments(arguments: Sequence[click.Argument], ctx: click.Context) -> Iterator[str]:
    rows = []
    for each in arguments:
        name = each.make_metavar(ctx).strip("[].")
        number = "any number" if each.nargs == -1 else str(each.nargs)
        rows.append(f"| `{name}` | {number} | {'yes' if each.required else 'no'} |\n")
    if rows:
        yield f"| argument | how many | needed |\n|---|---|---|\n{''.join(rows)}"


def _options(options: Sequence[click.Option], ctx: click.Context) -> Iterator[str]:
    rows = []
    for each in options:
        if each.hidden or "--help" in each.opts:
            continue
        names = ", ".join(f"`{name}`" for name in [*each.opts, *each.secondary_opts])
        # In code, a line in a cell of a table is escaped all the same.
        value = "" if each.is_flag or each.count else f"`{_cell(each.make_metavar(ctx))}`"
        told = "repeat" in (each.help or "").lower()
        again = " May be given more than once." if each.multiple and not told else ""
        variable = each.envvar if isinstance(each.envvar, str) else ""
        variable = f" Also the variable `{variable}`." if variable else ""
        needed = " Needed." if each.required else ""
        about = f"{_prose(each.help or '')}{needed}{again}{variable}"
        rows.append(f"| {names} | {value} | {_default(each, ctx)} | {_cell(about)} |\n")
    if rows:
        yield f"| option | value | default | what it does |\n|---|---|---|---|\n{''.join(rows)}"


def _default(option: click.Option, ctx: click.Context) -> str:
    if isinstance(option.show_default, str):
        return f"`{_cell(option.show_default)}`"
    default = option.get_default(ctx)
    shown = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return f"`{_cell(str(default))}`" if shown else ""


def _prose(text: str) -> str:
    """Help as Markdown: options and commands in code, which leaves their hyphens alone."""
    text = inspect.cleandoc(text).replace("\b\n", "").replace("\f", "")
    text = re.sub(r"'(noeta(?: [^'\n]*)?)'", r"`\1`", text)
    pieces = text.split("`")
    for number in range(0, len(pieces), 2):
        pieces[number] = re.sub(r"(?<![\w-])(--?[a-z][\w-]*)", r"`\1`", _escaped(pieces[number]))
    return "`".join(pieces)


def _escaped(text: str) -> str:
    return re.sub(r"([\[\]<>*_])", r"\\\1", text)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(page())
