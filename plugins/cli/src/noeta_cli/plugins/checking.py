"""`noeta plugins check`: whether a plugin keeps what noeta builds on. Its code runs in other processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noeta_cli.exits import DONE, FAILED
from noeta_cli.output import show, show_json, working
from noeta_cli.stores import json_option

if TYPE_CHECKING:
    from noeta_cli.plugins.results import Result
    from noeta_cli.plugins.source import Source

STAGES = ("import", "conformance", "crashes")
"""What runs the plugin's code, each in a process of its own."""
LIMIT = 120.0


@click.command("check")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--set", "given", metavar="KEY=VALUE", multiple=True, help="A setting to make the plugin with.")
@click.option("--no-calls", is_flag=True, help="Leave out the crash kit, which calls each tool for real.")
@click.option(
    "--limit",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=LIMIT,
    show_default=f"{LIMIT:g}",
    help="How long each stage may take.",
)
@json_option
def check(path: Path, given: Sequence[str], no_calls: bool, limit: float, as_json: bool) -> int:
    """Check the plugin at PATH: the folder of a package, or a plugin file.

    It is read, imported, tried on drawn tasks, and killed at every point of a task that calls each of its
    tools. A tool is called many times, with an input that is made up and in an empty environment. What it
    does past that environment, it does. Ends with 1 when a check fails.
    """
    from noeta_cli.plugins.source import read_source
    from noeta_cli.plugins.static import static

    source, settings = read_source(path), dict(map(_setting, given))
    results = static(source)
    stages = STAGES[:-1] if no_calls else STAGES
    for plugin in source.plugins:
        results += _run(source, plugin, settings, stages, limit)
    failed = [each for each in results if each.state == "fail"]
    if as_json:
        show_json({"path": str(source.path), "ok": not failed, "checks": results})
    else:
        show("\n".join(_lines(source, results)))
    return FAILED if failed else DONE


def _run(
    source: Source, plugin: str, settings: dict[str, Any], stages: Sequence[str], limit: float
) -> list[Result]:
    """The stages of one plugin. What cannot be imported is not tried further."""
    from noeta_cli.plugins.child import run_stage
    from noeta_cli.plugins.results import Result

    results: list[Result] = []
    for stage in stages:
        if any(each.state == "fail" and each.check == "import" for each in results):
            results.append(Result(stage, plugin, "not tried", "It cannot be imported."))
            continue
        with working(f"checking {plugin}: {stage}"):
            results += run_stage(source, plugin, stage, settings, limit)
    return results


def _setting(text: str) -> tuple[str, Any]:
    """A setting of the command line: its value is TOML, or a text. Raises `ClickException`."""
    import tomllib

    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise click.UsageError(f"--set {text!r} sets nothing; write KEY=VALUE, such as --set most=3.")
    try:
        return key, tomllib.loads(f"it = {value}")["it"]
    except tomllib.TOMLDecodeError:
        return key, value


def _lines(source: Source, results: Sequence[Result]) -> Iterator[str]:
    yield f"{', '.join(source.plugins) or 'No plugin'} in {source.path}"
    for each in results:
        of = f" {each.plugin}" if each.plugin and len(source.plugins) > 1 else ""
        yield f"  {each.state:9}  {f'{each.check}{of}':12} {each.text}"
    failed = sum(each.state == "fail" for each in results)
    untried = sum(each.state == "not tried" for each in results)
    rest = f", {untried} not tried" if untried else ""
    yield f"{len(results) - failed - untried} ok, {failed} failed{rest}"
