"""`noeta export`: a task's whole log in a file."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import click

from noeta_cli.output import working
from noeta_cli.readers import Wrong, reading
from noeta_cli.stores import store_option
from noeta_cli.task_ids import find_task, task_argument


@click.command()
@task_argument
@click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@store_option
def export(task: str, file: str | None, force: bool, store: str | None) -> None:
    """Write a task's whole log to a file, as JSON lines. Prints the name of the file.

    TASK is an id, the beginning of one, or `last`. FILE is TASK.jsonl in this folder unless it is given, and
    `-` is standard output. It holds what the task goes on from too, and every blob. It is there when it is
    whole, or not at all.
    """
    from noeta.host.export import exported

    with reading(store) as opened, working("exporting"):
        id = find_task(opened.reader, task)
        lines = exported(opened.reader, id)
        if file == "-":
            for line in lines:
                sys.stdout.buffer.write(line)
            return
        target = Path(file or f"{re.sub(r'[^A-Za-z0-9._-]', '_', id)}.jsonl")
        write_whole(target, lines, force=force)
    click.echo(str(target))


def write_whole(target: Path, lines: Iterable[bytes], *, force: bool = False) -> None:
    """Write a file that is there whole, or not at all. Raises `Wrong` when one is there and not forced."""
    if not target.parent.is_dir():
        raise Wrong(f"there is no folder {str(target.parent)!r}; make it, or name another file.")
    if target.exists() and not force:
        raise Wrong(f"{str(target)!r} is there already; name another file, or add --force.")
    number, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        with os.fdopen(number, "wb") as opened:
            opened.writelines(lines)
            opened.flush()
            os.fsync(opened.fileno())
        if force:
            part.replace(target)
        else:
            # Unlike a replacement it fails when somebody else was quicker.
            target.hardlink_to(part)
            part.unlink()
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, FileExistsError):
            raise Wrong(f"{str(target)!r} is there already; name another file, or add --force.") from None
        raise
