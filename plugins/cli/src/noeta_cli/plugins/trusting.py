"""`noeta plugins trust`: look at what a project brings, and trust it, or trust it no more."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noeta_cli.exits import DONE, FAILED, USAGE
from noeta_cli.output import clean, note, show, show_json
from noeta_cli.stores import here, json_option

if TYPE_CHECKING:
    from noeta.host.places import Places
    from noeta.host.trust import Looked


@click.command("trust")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--withdraw", is_flag=True, help="Trust them no more.")
@click.option("--yes", is_flag=True, help="Do not ask. For scripts.")
@json_option
def trust(paths: Sequence[Path], withdraw: bool, yes: bool, as_json: bool) -> int:
    """Trust what the project brings: its settings, plugin files and other configuration.

    The files are shown, then you are asked. What is trusted are the bytes that were read for that. PATH
    names files or folders, and without one all of the project are meant. Without a terminal to ask on and
    without --yes nothing is changed, and the exit code is 2. It is 1 when you say no.
    """
    from noeta.host.places import find_places
    from noeta.host.trust import Trust

    places = find_places(os.environ, here())
    if withdraw:
        return _withdraw(places, paths, yes=yes, as_json=as_json)
    known = _known(places)
    looked = _chosen(places, Trust(places).project_files(), paths)
    wanted = [each for each in looked if not each.counts and each.sha256]
    if as_json:
        show_json([_facts(each, known) for each in looked])
    else:
        for each in looked:
            show(f"{_state(each, known):9} {each.kind:13} {each.sha256[:12]:12} {each.path}")
        if not looked:
            show(f"Nothing in {places.project} needs trust.")
    for each in looked:
        if not each.sha256:
            note(f"{each.path} cannot be trusted: {each.reason}")
    if not wanted:
        return DONE if all(each.sha256 for each in looked) else FAILED
    return _confirmed(f"Trust {_counted(wanted)}?", yes, lambda: _trust(places, wanted))


def _trust(places: Places, wanted: Sequence[Looked]) -> None:
    from noeta.host.trust import trust

    trust(places, wanted)
    note(f"trusted: {_counted(wanted)}")


def _withdraw(places: Places, paths: Sequence[Path], *, yes: bool, as_json: bool) -> int:
    """Trust files no more. They need not be there any longer."""
    from noeta.host.trust import withdraw
    from noeta.toolkit.trust import place_of

    known = _known(places)
    above = [place_of(path) for path in paths] or [os.path.realpath(places.project)]
    gone = sorted(each for each in known if any(each == at or Path(each).is_relative_to(at) for at in above))
    if missing := [at for at in above if not any(Path(each).is_relative_to(at) for each in gone)]:
        if paths:
            raise click.ClickException(
                f"{clean(missing[0])} is not trusted, so there is nothing to withdraw."
            )
        show_json([]) if as_json else show(f"Nothing in {places.project} is trusted.")
        return DONE
    if as_json:
        show_json([{"path": each} for each in gone])
    else:
        show("\n".join(gone))
    return _confirmed(
        f"Trust {_counted(gone)} no more?",
        yes,
        lambda: note(f"no longer trusted: {_counted(withdraw(places, map(Path, gone)))}"),
    )


def _confirmed(question: str, yes: bool, act: Any) -> int:
    """Act, if the person wants it."""
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            note("there is no terminal to ask on, so nothing was changed; look at the files, then add --yes.")
            return USAGE
        if not click.confirm(clean(question), err=True):
            note("nothing was changed.")
            return FAILED
    act()
    return DONE


def _chosen(places: Places, looked: Sequence[Looked], paths: Sequence[Path]) -> list[Looked]:
    """Those of the files that the paths name, in the order of the files."""
    from noeta.toolkit.errors import meant
    from noeta.toolkit.trust import place_of

    if not paths:
        return list(looked)
    by_place = {place_of(each.path): each for each in looked}
    chosen: set[str] = set()
    for path in paths:
        at = place_of(path)
        inside = {each for each in by_place if each == at or Path(each).is_relative_to(at)}
        if not inside:
            if not os.path.lexists(path):
                names = [os.path.relpath(each) for each in by_place]
                raise click.ClickException(f"there is no file {clean(str(path))}{meant(str(path), names)}.")
            raise click.ClickException(
                f"{clean(str(path))} is nothing that needs trust: that is settings, plugin files and"
                f" configuration of the project {places.project}, each at its place."
            )
        chosen |= inside
    return [each for at, each in by_place.items() if at in chosen]


def _known(places: Places) -> set[str]:
    from noeta.toolkit.trust import read_trusted

    return {each.path for each in read_trusted(places.trust_file)}


def _state(looked: Looked, known: set[str]) -> str:
    """What is to be said of a file: it is trusted, new, or another than the one that was trusted."""
    from noeta.toolkit.trust import place_of

    if looked.counts:
        return "trusted"
    if not looked.sha256:
        return "unread"
    return "changed" if place_of(looked.path) in known else "new"


def _facts(looked: Looked, known: set[str]) -> dict[str, Any]:
    return {
        "path": str(looked.path),
        "kind": looked.kind,
        "sha256": looked.sha256,
        "state": _state(looked, known),
        "reason": looked.reason,
    }


def _counted(files: Sequence[object]) -> str:
    return "1 file" if len(files) == 1 else f"{len(files)} files"
