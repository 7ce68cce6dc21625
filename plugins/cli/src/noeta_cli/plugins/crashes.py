"""The crash kit for a plugin of which nothing is known: a task without calls, then one for each tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import anyio

from noeta import Extension, Tool
from noeta.testing import call as call_of
from noeta.testing import check_crashes, reply
from noeta.testing.crash import CrashBench, picture
from noeta.testing.mortal import Effects
from noeta.testing.views import Rehearsal
from noeta_cli.plugins.samples import sample

PROMPT = "Begin."
REPLIES = 10
"""What the model says after the call, as often as a plugin lets it go on."""

Come = tuple[Literal["ok", "fail", "not tried"], str]


class Said(Mapping[str, Sequence[Any]]):
    """What the model says to each task: to the one that is tried the script, and "Done." to all others."""

    def __init__(self, script: Sequence[Any]) -> None:
        self._script = script

    def __getitem__(self, prompt: str) -> Sequence[Any]:
        return [*(self._script if prompt == PROMPT else ()), *["Done."] * REPLIES]

    def __iter__(self) -> Iterator[str]:
        return iter([PROMPT])

    def __len__(self) -> int:
        return 1


def crashes(make: Callable[[], Extension], at: Callable[[str], None]) -> Iterator[Come]:
    """Try each; what came of it."""
    effects, calls, faults = 0, 0, 0
    task = Rehearsal(make(), strict=False)
    tools: list[Tool] = [tool for _, given in task.hooks.tools(task) for tool in given]
    for tool in (None, *tools):
        what = f"a task that calls {tool.name!r}" if tool else "a task without calls"
        script: list[Any] = []
        if tool is not None:
            try:
                given = sample(tool.input_schema)
            except ValueError as error:
                yield "not tried", f"{what}: no input can be made up for it: {error}."
                continue
            script = [reply("", call_of(tool.name, **given))]
        at(what)
        try:
            if not _is_comparable(make, script):
                yield "not tried", f"{what}: two runs without a crash differ, so nothing can be compared."
                continue
            effects += anyio.run(_check, make, script)
        except AssertionError as error:
            faults += 1
            yield "fail", f"{what}: {error} See how to test an extension: die at every point."
        else:
            calls += tool is not None
    if not faults:
        yield (
            "ok",
            f"the same task after a crash at each of {effects} effects, with {calls} of its tools called",
        )


async def _check(make: Callable[[], Extension], script: Sequence[Any]) -> int:
    return await check_crashes(lambda outside: [make()], Said(script), PROMPT)


def _is_comparable(make: Callable[[], Extension], script: Sequence[Any]) -> bool:
    """Whether the task is the same each time when nothing happens to it."""
    return bool(anyio.run(_run, make, script) == anyio.run(_run, make, script))


async def _run(make: Callable[[], Extension], script: Sequence[Any]) -> Any:
    from noeta.host.registry import Registry

    bench = CrashBench(lambda outside: [make()], Said(script), Effects(), Registry())
    task = await bench.start(PROMPT)
    try:
        await bench.run()
    except Exception as error:
        # Told by the check itself, in its own words.
        return f"{task}: {error!r}"
    return await picture(bench, lambda name, state: state)
