"""The commands by name, and where each is. A command is imported when it is run, or when help lists it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

import click

GROUP = "noeta.cli_commands"
"""The entry-point group in which other packages offer commands."""

COMMANDS: Mapping[str, str] = {
    "run": "noeta_cli.run:run",
    "tasks": "noeta_cli.tasks:tasks",
    "log": "noeta_cli.log:log",
    "show": "noeta_cli.show:show",
    "state": "noeta_cli.state:state",
    "why": "noeta_cli.why:why",
    "answer": "noeta_cli.answer:answer",
    "interrupt": "noeta_cli.steer:interrupt",
    "cancel": "noeta_cli.steer:cancel",
    "fork": "noeta_cli.steer:fork",
    "erase": "noeta_cli.steer:erase",
    "export": "noeta_cli.export:export",
    "worker": "noeta_cli.worker:worker",
    "agents": "noeta_cli.agents:agents",
    "plugins": "noeta_cli.plugins:plugins",
    "store": "noeta_cli.store:store",
    "doctor": "noeta_cli.doctor:doctor",
}
SHORT: Mapping[str, str] = {
    "run": "Run an agent on a prompt.",
    "tasks": "List tasks.",
    "log": "Show the records of a task.",
    "show": "Show a task as a conversation.",
    "state": "Show the folded state of a task.",
    "why": "Say who decided about a call.",
    "answer": "Answer a question that a task waits with.",
    "interrupt": "Stop the turn of a task.",
    "cancel": "End a task.",
    "fork": "Start a task that continues another one.",
    "erase": "Take messages out of a task for good.",
    "export": "Write a task's whole log to a file.",
    "worker": "Run tasks until stopped.",
    "agents": "List the agents there are.",
    "plugins": "List, check, make and trust plugins.",
    "store": "Look after the store.",
    "doctor": "Check the installation.",
}
"""What help says of each, so that it imports none of them."""


class Commands(click.Group):
    """The group of all commands, those of other packages included."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, ours in their order."""
        return [*COMMANDS, *sorted(self._others().keys() - COMMANDS.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is none."""
        if place := COMMANDS.get(cmd_name):
            module, _, name = place.partition(":")
            command: click.Command = getattr(import_module(module), name)
            return command
        entry = self._others().get(cmd_name)
        return None if entry is None else entry.load()  # type: ignore[attr-defined]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name, with the one that may be meant in the error."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from noeta.toolkit.errors import meant

            ctx.fail(f"there is no command {name!r}{meant(name, self.list_commands(ctx))}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing ours."""
        rows: Sequence[tuple[str, str]] = [*SHORT.items()]
        others = sorted(self._others().keys() - COMMANDS.keys())
        rows = [*rows, *((name, "(another package's)") for name in others)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _others(self) -> dict[str, object]:
        from importlib_metadata import entry_points

        return {entry.name: entry for entry in entry_points(group=GROUP)}
