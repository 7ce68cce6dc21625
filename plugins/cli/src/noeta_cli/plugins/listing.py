"""`noeta plugins list`: everything that is on offer, and how far it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from noeta_cli.output import note, show, show_json, show_table, working
from noeta_cli.plugins.here import USABLE, agents_here, catalog_here, kind, of_agent, place
from noeta_cli.stores import json_option

if TYPE_CHECKING:
    from noeta.host.catalog import Catalog, Entry


@click.command("list")
@click.option("--import", "import_", is_flag=True, help="Import each, and measure how long that takes.")
@json_option
def list_(import_: bool, as_json: bool) -> None:
    """List what is on offer: plugins, providers, stores, environments.

    Nothing is imported, unless you say --import. What cannot be used is listed with the reason.
    """
    catalog = catalog_here()
    if import_:
        _import_all(catalog)
    having: dict[str, list[str]] = {}
    for agent in agents_here(catalog):
        for name in of_agent(catalog, agent):
            having.setdefault(name, []).append(agent.name)
    entries = catalog.entries()
    if as_json:
        show_json([_facts(entry, having) for entry in entries])
        return
    if not entries:
        show("Nothing is on offer. Install a plugin, such as: pip install noeta-sqlite")
        return
    heads = ["name", "kind", "state", "version", "agents", *(["import"] if import_ else []), "from"]
    show_table(heads, [_row(entry, having, timed=import_) for entry in entries])
    for entry in entries:
        if entry.reason:
            note(f"{kind(entry)} {entry.name!r} is {entry.state}: {entry.reason}.")


def _import_all(catalog: Catalog) -> None:
    """Import what may be imported. What fails is an entry with the reason from then on."""
    from noeta.toolkit.errors import ComposeError

    for entry in catalog.entries():
        if entry.state in USABLE:
            with working(f"importing {entry.name}"):
                try:
                    catalog.thing(entry.name, entry.group)
                except ComposeError:
                    # Told by its entry.
                    continue


def _agents(entry: Entry, having: dict[str, list[str]]) -> list[str]:
    return having.get(entry.name, []) if kind(entry) == "plugin" and entry.state in USABLE else []


def _facts(entry: Entry, having: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": kind(entry),
        "state": entry.state,
        "reason": entry.reason,
        "version": entry.version,
        "distribution": entry.distribution,
        "path": entry.path,
        "agents": _agents(entry, having),
        "seconds": entry.seconds,
    }


def _row(entry: Entry, having: dict[str, list[str]], *, timed: bool) -> list[str]:
    took = [f"{entry.seconds * 1000:.0f} ms" if entry.seconds is not None else ""] if timed else []
    agents = ", ".join(_agents(entry, having))
    return [entry.name, kind(entry), entry.state, entry.version, agents, *took, place(entry)]
