"""`noeta doctor`: whether the installation is in order."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

from noeta_cli.exits import DONE, FAILED
from noeta_cli.output import one_line, show_json, working
from noeta_cli.stores import json_option, store_option

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@json_option
@store_option
def doctor(as_json: bool, store: str | None) -> int:
    """Check the installation: versions, settings, plugins, model, store, disk. Exit code 1 when one fails.

    With --json, one finding a line.
    """
    from noeta_cli.checks import findings

    failed = False
    with working("looking"), _silent():
        for finding in findings(store):
            failed |= finding.status == "fail"
            if as_json:
                show_json(finding)
                continue
            status = click.style(f"{finding.status:<4}", fg=COLOURS[finding.status])
            click.echo(f"{status}  {finding.check:<11}  {one_line(finding.text)}")
            if finding.way_out:
                click.echo(f"{'':19}{one_line(finding.way_out)}")
    return FAILED if failed else DONE


@contextmanager
def _silent() -> Iterator[None]:
    """Keep the log of noeta quiet: what it warns of stands among the findings."""
    log = logging.getLogger("noeta")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
