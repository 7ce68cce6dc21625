"""The command `worker`: runs whatever is ready in a store until it is told to stop."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import click

from noeta_cli import exits
from noeta_cli.output import note
from noeta_cli.stores import read_settings, store_option, store_url

if TYPE_CHECKING:
    from anyio import CancelScope

    from noeta.host.settings import Settings


@click.command(short_help="Run tasks until stopped.")
@store_option
@click.option("--capacity", type=click.IntRange(min=1), default=16, show_default=True, help="Tasks at once.")
@click.option("--queue", "queues", metavar="NAME", multiple=True, help="Only tasks of it. Repeatable.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0, max=86_400),
    default=10.0,
    show_default=True,
    help="Seconds to wait for running calls at the end.",
)
def worker(store: str | None, capacity: int, queues: tuple[str, ...], grace: float) -> int:
    """Run what is ready, and what becomes ready, until SIGTERM or Ctrl-C. A second one leaves at once.

    Tasks run with the agents, plugins and settings of the folder that the worker is started in.
    """
    from noeta_cli.opening import alone
    from noeta_cli.outlet import told

    with told(times=True):
        settings = read_settings()
        return alone(_work, settings, store_url(settings, store), capacity, queues, grace)


async def _work(settings: Settings, url: str, capacity: int, queues: tuple[str, ...], grace: float) -> int:
    import anyio

    from noeta.host.catalog import Catalog
    from noeta.host.host import Host
    from noeta_cli.opening import opening
    from noeta_cli.team import place_to_act, team_of

    catalog, leaving, code = Catalog(settings), anyio.CancelScope(), exits.DONE
    team, env = team_of(catalog), place_to_act(settings, catalog)
    with leaving:
        async with opening(catalog, url) as store:
            host = Host(
                team,
                store=store,
                env=env,
                settings=settings,
                capacity=capacity,
                queues=queues or None,
                grace=grace,
            )
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async with anyio.create_task_group() as group:
                    async with host:
                        names = ", ".join(agent.name for agent in team)
                        note(f"worker {os.getpid()} runs tasks of {names}; Ctrl-C or SIGTERM stops it")
                        first = await anext(signals)
                        code = _code(first)
                        note("stopping at safe points; once more leaves at once")
                        group.start_soon(_again, signals, leaving)
                    group.cancel_scope.cancel()
    return code


async def _again(signals: object, leaving: CancelScope) -> None:
    await anext(signals)  # type: ignore[call-overload]
    leaving.cancel()


def _code(number: signal.Signals) -> int:
    return exits.TERMINATED if number == signal.SIGTERM else exits.INTERRUPTED
