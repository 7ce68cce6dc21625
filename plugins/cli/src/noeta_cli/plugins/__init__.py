"""`noeta plugins`: see what is on offer and why, trust what a project brings, make a plugin and check it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from noeta_cli.plugins.checking import check
from noeta_cli.plugins.conflicts import conflicts
from noeta_cli.plugins.listing import list_
from noeta_cli.plugins.making import new
from noeta_cli.plugins.reasons import why
from noeta_cli.plugins.showing import show
from noeta_cli.plugins.trusting import trust

if TYPE_CHECKING:
    from click import Context

ORDER: Mapping[str, click.Command] = {
    "list": list_,
    "show": show,
    "why": why,
    "conflicts": conflicts,
    "trust": trust,
    "new": new,
    "check": check,
}


class Plugins(click.Group):
    """The group, which lists its commands in the order in which people need them."""

    def list_commands(self, ctx: Context) -> Sequence[str]:  # type: ignore[override]
        """Every name."""
        return list(ORDER)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name, with the one that may be meant in the error."""
        name = args[0]
        if name not in ORDER and not name.startswith("-"):
            from noeta.toolkit.errors import meant

            ctx.fail(f"there is no command 'plugins {name}'{meant(name, ORDER)}.")
        return super().resolve_command(ctx, args)


@click.group(cls=Plugins, commands=dict(ORDER), no_args_is_help=False)
def plugins() -> None:
    """List, check, make and trust plugins."""
