"""The program: its commands, and what becomes of errors, interrupts and closed pipes."""

from __future__ import annotations

import os
import sys

import click

from noeta_cli.commands import Commands
from noeta_cli.exits import FAILED, INTERRUPTED, USAGE
from noeta_cli.output import note


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Run agents that have to keep running."""


def main() -> int:
    """Run the command line; its exit code. Never shows a traceback for what a person did."""
    try:
        status = cli.main(prog_name="noeta", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except click.ClickException as error:
        note(error.format_message())
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # Who reads has seen enough. Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if not _is_of_a_person(error):
            raise
        note(str(error))
        return USAGE
    return status if isinstance(status, int) else 0


def _is_of_a_person(error: Exception) -> bool:
    """Whether an error says what a person did, or met, in a sentence of its own."""
    from noeta import NoetaError

    return isinstance(error, NoetaError | OSError | ValueError)
