"""`noeta plugins new`: a package of a plugin, from the template that ships."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from noeta_cli.output import note, show

if TYPE_CHECKING:
    from noeta_cli.plugins.template import Names


@click.command("new")
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    metavar="FOLDER",
    default=".",
    type=click.Path(path_type=Path),
    help="Where to make it; by default here.",
)
def new(name: str, folder: Path) -> None:
    """Make the package of a plugin called NAME, in a new folder noeta-NAME.

    It is a working plugin with settings, a tool, a gate, records and tests, to be changed into yours. NAME
    is of small letters, digits and hyphens, such as my-plugin.
    """
    from noeta_cli.plugins.template import Names, write

    names = Names(name)
    if why := names.fault() or _taken(names):
        raise click.ClickException(why)
    if not folder.is_dir():
        raise click.ClickException(f"there is no folder {folder}; make it first, or name another with --dir.")
    target = folder / names.distribution
    if os.path.lexists(target):
        raise click.ClickException(f"{target} is there already; choose another name, or remove it.")
    write(names, target)
    show(str(target))
    note(f"made {name!r}. Read its README.md, run its tests, then: noeta plugins check {target}")


def _taken(names: Names) -> str:
    """Why the name cannot be had here, as a sentence; the empty text when it can."""
    from importlib.util import find_spec

    from noeta_cli.plugins.here import catalog_here, kind, place

    way_out = "choose another name"
    for entry in catalog_here().entries():
        if entry.name == names.name and kind(entry) == "plugin":
            return f"there is a plugin {names.name!r} here already, of {place(entry)}; {way_out}."
        if entry.distribution.lower().replace("_", "-") == names.distribution:
            return f"there is a package {names.distribution} here already; {way_out}."
    if find_spec(names.package) is not None:
        return f"there is a module {names.package} here already; {way_out}."
    return ""
