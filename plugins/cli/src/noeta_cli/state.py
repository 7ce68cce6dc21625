"""`noeta state`: the folded state of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from noeta_cli.output import note, show_json
from noeta_cli.readers import Opened, Wrong, reading
from noeta_cli.stores import json_option, store_option
from noeta_cli.task_ids import find_task, task_argument

if TYPE_CHECKING:
    from noeta import TaskState
    from noeta.host.agents import Agents


@click.command()
@task_argument
@click.option("--at", type=click.IntRange(min=1), metavar="SEQ", help="The state after this record.")
@click.option("--plugin", metavar="NAME", help="The state of this plugin alone.")
@json_option
@store_option
def state(task: str, at: int | None, plugin: str | None, as_json: bool, store: str | None) -> None:
    """Show the folded state of a task, that of its plugins included.

    TASK is an id, the beginning of one, or `last`. The states of plugins are there when the task's agent is
    among those of the settings, and its plugins are installed.
    """
    from noeta.host.at_once import at_once, looking
    from noeta.host.reading import Reader

    with reading(store) as opened:
        row = opened.reader.task(find_task(opened.reader, task))
        if at is not None and at > row.last_seq:
            raise Wrong(f"task {row.task!r} has no record {at}; its last one is {row.last_seq}.")
        agents = _agents(opened, row.agent)
        folded = at_once(Reader(looking(opened.reader), agents).state(row.task, at))
    if plugin is None:
        value = _whole(folded)
    elif plugin in folded.states:
        value = folded.states[plugin]
    else:
        from noeta.toolkit.errors import meant

        there = ", ".join(folded.states)
        has = f"; there are {there}" if there else ""
        hint = meant(plugin, folded.states) or has
        raise Wrong(f"the state of task {row.task!r} has no plugin {plugin!r}{hint}.")
    for name, problem in folded.broken.items():
        note(f"the state of plugin {name!r} is frozen at record {problem.seq}: {problem.why}")
    show_json(value, pretty=not as_json)


def _agents(opened: Opened, agent: str) -> Agents:
    """The agent of a task, if it can be put together here, so that its plugins' states are folded too."""
    from noeta import NoetaError
    from noeta.host.agents import Agents
    from noeta.host.settings_agents import agents_from

    try:
        found = [each for each in agents_from(opened.catalog) if each.name == agent]
        if not found:
            note(f"agent {agent!r} is not among those of the settings, so its plugins' states are left out.")
        return Agents(found, catalog=opened.catalog)
    except NoetaError as error:
        note(f"the states of plugins are left out: {error}")
        return Agents([])


def _whole(state: TaskState) -> dict[str, Any]:
    from msgspec.structs import asdict

    conversation = [{"seq": item.seq, "message": item.message} for item in state.conversation]
    return {**asdict(state), "conversation": conversation}
