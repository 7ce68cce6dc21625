"""The command `run`: an agent works on a prompt, begins a task or goes on with one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
from msgspec import Struct

from noeta_cli.output import working
from noeta_cli.stores import here, read_settings, store_option, store_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from noeta import Agent, Extension
    from noeta.host.catalog import Catalog
    from noeta.host.host import Host
    from noeta.host.settings import Settings
    from noeta.toolkit.store import Store
    from noeta_cli.outlet import Outlet
    from noeta_cli.showing import Shown

LEASE_SECONDS = 10.0
"""Shorter than a worker's: a person who goes on after a crash waits for it."""
MAX_INPUT = 10_000_000
"""The longest prompt that is read from standard input."""


class Wish(Struct, frozen=True, kw_only=True):
    """What the command line asks for. `how` and `task` say which task; a new one is ``new``."""

    prompt: str | None
    how: Literal["new", "continue", "resume", "fork"]
    task: str
    agent: str | None
    model: str
    plugins: Sequence[str]
    no_plugins: Sequence[str]
    flags: Sequence[str]
    cwd: Path
    store: str | None
    output: str
    quiet: bool
    max_turns: int | None
    safe: bool


class Which(NamedTuple):
    """A task to go on with, empty for a new one, its agent and its queue."""

    task: str
    agent: str
    queue: str


@click.command(short_help="Run an agent on a prompt.")
@click.argument("prompt", required=False)
@click.option("-p", "--print", "quiet", is_flag=True, help="Print the answer alone, and ask nothing.")
@click.option("--agent", metavar="NAME", help="The agent to run, instead of coder.")
@click.option("--model", metavar="MODEL", default="", help="The model, as PROVIDER:MODEL.")
@click.option("--plugin", "plugins", metavar="NAME|FILE", multiple=True, help="One more plugin. Repeatable.")
@click.option("--no-plugin", "no_plugins", metavar="NAME", multiple=True, help="Leave one out. Repeatable.")
@click.option("--set", "flags", metavar="KEY=VALUE", multiple=True, help="A setting. Repeatable.")
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder to work in, instead of this one.",
)
@store_option
@click.option(
    "--output",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="text as it comes, one JSON object at the end, or a JSON object for all that happens.",
)
@click.option("--max-turns", type=click.IntRange(min=1), help="Fail the turn after so many model calls.")
@click.option("-c", "--continue", "newest", is_flag=True, help="Go on with the newest task of this folder.")
@click.option("--resume", metavar="TASK", help="Go on with a task, and without PROMPT finish what is open.")
@click.option("--fork", metavar="TASK", help="Begin a task that continues another one.")
@click.option("--safe", is_flag=True, help="Leave out the project's settings and all plugins of strangers.")
def run(
    prompt: str | None,
    cwd: Path | None,
    newest: bool,
    resume: str | None,
    fork: str | None,
    **options: Any,
) -> int:
    """Run an agent on PROMPT, and on what standard input brings.

    The answer goes to standard output. The exit code is 0 when the turn is done, 1 when it failed, 3 when the
    task waits for a person, 4 when it waits for a provider or a timer, 130 and 143 when it was stopped.
    """
    ways = {"--continue": newest, "--resume": resume is not None, "--fork": fork is not None}
    chosen = [way for way, given in ways.items() if given]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other")
    if chosen and options["agent"]:
        raise click.UsageError(f"--agent begins a new task, and with {chosen[0]} the task has its agent")
    text = _prompt(prompt)
    if text is None and (not chosen or fork is not None):
        raise click.UsageError('there is no prompt; write noeta run "..."')
    wish = Wish(
        prompt=text,
        how="continue"
        if newest
        else "resume"
        if resume is not None
        else "fork"
        if fork is not None
        else "new",
        task=resume or fork or "",
        cwd=here(cwd),
        **options,
    )
    return _run(wish)


def _prompt(given: str | None) -> str | None:
    """The argument, what standard input brings when that is no terminal, or both; None for neither."""
    if given is not None and not given.strip():
        raise click.UsageError("the prompt is empty")
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return given
    # A program that starts this one may leave an input open to which it never writes.
    with working("reading the prompt from standard input; </dev/null gives none", always=True):
        data = sys.stdin.buffer.read(MAX_INPUT + 1)
    if len(data) > MAX_INPUT:
        raise click.UsageError(
            f"standard input is longer than {MAX_INPUT // 1_000_000} MB; name a file instead"
        )
    try:
        piped = data.decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"standard input is no text in UTF-8 (byte {error.start})") from None
    parts = [part for part in (given, piped.rstrip("\n")) if part and part.strip()]
    return "\n\n".join(parts) or None


def _run(wish: Wish) -> int:
    from noeta.host.catalog import Catalog
    from noeta_cli.opening import alone
    from noeta_cli.outlet import Outlet, told

    with told() as handler:
        off: list[Any] = [{"plugins": {name: {"enabled": False}}} for name in wish.no_plugins]
        settings = read_settings(str(wish.cwd), (*wish.flags, *off), safe=wish.safe)
        catalog = Catalog(settings)
        which = _which(wish, catalog, store_url(settings, wish.store))
        outlet = handler.outlet = Outlet()
        try:
            code = alone(_go, wish, catalog, which, outlet)
        except BrokenPipeError:
            raise
        except BaseException:
            handler.outlet = None
            _close(outlet)
            raise
        outlet.close()
        handler.outlet = None
        return code


def _close(outlet: Outlet) -> None:
    """Write what is there, whoever reads it. There is an error to be told already."""
    from contextlib import suppress

    with suppress(BrokenPipeError):
        outlet.close()


async def _go(wish: Wish, catalog: Catalog, which: Which, outlet: Outlet) -> int:
    from noeta.host.host import Host
    from noeta_cli.opening import opening
    from noeta_cli.showing import Begun
    from noeta_cli.sitting import Sitting
    from noeta_cli.team import check_off, place_to_act

    settings, (task, agent, queue) = catalog.settings, which
    async with opening(catalog, store_url(settings, wish.store)) as store:
        team = _team(wish, catalog, agent)
        own = next(each for each in team if each.name == agent)
        check_off(catalog, wish.no_plugins, own)
        env = place_to_act(settings, catalog)
        host = Host(team, store=store, env=env, settings=settings, queues=[queue], lease=LEASE_SECONDS)
        shown = _shown(wish, outlet)

        async def begin(host: Host) -> tuple[str, int]:
            made, seq = await _begin(wish, host, store, task, agent, queue)
            calls = (await host.state(made)).calls.values() if seq else ()
            begun = Begun(
                task=made,
                agent=agent,
                model=own.model,
                reason=_reason(wish, settings, catalog, agent),
                calls={call.id: call.name for call in calls},
            )
            shown.begin(begun)
            return made, seq

        talks = wish.output == "text" and not wish.quiet and sys.stdin.isatty() and sys.stdout.isatty()
        sitting = Sitting(store, shown, outlet, talks=talks, store_flag=wish.store)
        return await sitting.go(host, begin)


def _which(wish: Wish, catalog: Catalog, url: str) -> Which:
    """The task to go on with, its agent and its queue.

    A new task has a queue of its own, so that no other run takes it up, and this one takes up no other.
    """
    from noeta.toolkit.store import Unavailable
    from noeta.toolkit.system import RandomIds
    from noeta_cli.opening import check_store, newest_in
    from noeta_cli.readers import Wrong, reader_of
    from noeta_cli.task_ids import find_task

    if wish.how == "new":
        name = wish.agent or catalog.settings.get("agent", default="coder")
        return Which("", name, f"run:{RandomIds().new()}")
    check_store(catalog, url)
    try:
        with reader_of(catalog, url) as reader:
            continues = wish.how == "continue"
            task = newest_in(reader, str(wish.cwd)) if continues else find_task(reader, wish.task)
            row = reader.task(task)
    except Unavailable as error:
        if error.reason != "missing" or wish.store:
            raise
        raise Wrong("there is no task yet; begin one with: noeta run PROMPT") from None
    return Which(task, row.agent, row.queue)


def _team(wish: Wish, catalog: Catalog, agent: str) -> list[Agent]:
    from noeta_cli.team import plugins_of, team_of

    more: list[str | Extension] = plugins_of(catalog, wish.plugins)
    if wish.max_turns is not None:
        from noeta_cli.turns import MaxTurns

        more.append(MaxTurns(wish.max_turns))
    return team_of(catalog, main=agent, model=wish.model, plugins=more)


async def _begin(wish: Wish, host: Host, store: Store, task: str, agent: str, queue: str) -> tuple[str, int]:
    """Begin or go on; the task, and the seq behind which it is of interest."""
    if wish.how == "new":
        return await host.start(agent, wish.prompt, cwd=str(wish.cwd), queue=queue), 0
    if wish.how == "fork":
        task = await host.fork(task)
    seq = (await store.task(task)).last_seq
    if wish.prompt is not None:
        await host.post(task, wish.prompt)
    return task, seq


def _reason(wish: Wish, settings: Settings, catalog: Catalog, agent: str) -> str:
    from noeta.host.catalog import PROVIDERS
    from noeta.host.model_choice import choose_model

    providers = {entry.name for entry in catalog.entries() if entry.group == PROVIDERS}
    return choose_model(settings, agent, flag=wish.model, providers=providers).reason


def _shown(wish: Wish, outlet: Outlet) -> Shown:
    from noeta_cli import showing

    if wish.output == "json":
        return showing.AsJson(outlet)
    if wish.output == "stream-json":
        return showing.AsLines(outlet)
    return showing.Quiet(outlet) if wish.quiet else showing.AsText(outlet)
