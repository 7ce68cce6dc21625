"""Putting agents together, and what calling their hooks costs, in bare calls of the same methods."""

from __future__ import annotations

import time
from collections.abc import Sequence

import anyio
from measure import Value, ratios, rounds, spread

from noeta import Extension, TaskState, TaskView, ToolUse
from noeta.core.parts import ContextPart
from noeta.core.view import Views
from noeta.host.registry import Registry
from noeta.toolkit.dispatch import Hooks

PLUGINS = 30
CALL = ToolUse(id="c", name="x", input={})


def plugins(count: int) -> list[Extension]:
    """As many plugins, each of a class of its own with five hooks."""

    def make(i: int) -> Extension:
        class Plugin(Extension):
            name = f"plugin{i}"

            def context(self, view: TaskView) -> Sequence[ContextPart]:
                return ()

            async def on_start(self, view: TaskView) -> None: ...

            async def before_tool(self, view: TaskView, call: ToolUse) -> None: ...

            async def on_event(self, view: TaskView, recorded: object) -> None: ...

            def delivered_through(self, view: TaskView) -> None: ...

        return Plugin()

    return [make(i) for i in range(count)]


class Desk(Views):
    """Views that nothing is staged on."""

    def settled(self, view: TaskView) -> None:
        """Nothing."""


def _first(batches: list[list[Extension]]) -> tuple[float, float]:
    """Seconds to put a first agent together, and a further one with the same plugins."""
    registry, extensions = Registry(), batches.pop()
    start = time.process_time()
    registry.compose(extensions)
    middle = time.process_time()
    registry.compose(extensions)
    return middle - start, time.process_time() - middle


def _sync(hooks: Hooks, desk: Desk, loops: int) -> None:
    for _ in range(loops):
        hooks.context(desk)


def _bare(extensions: Sequence[Extension], loops: int) -> None:
    methods, view = [extension.context for extension in extensions], TaskView(TaskState())
    for _ in range(loops):
        for method in methods:
            method(view)


def measure(quick: bool) -> list[Value]:
    """Values of this subject."""
    batches = [plugins(PLUGINS) for _ in range(3 if quick else 9)]
    taken = [_first(batches) for _ in range(len(batches))]
    loops = 200 if quick else 1_000
    extensions = plugins(PLUGINS)
    hooks, none = Registry().compose(extensions), Registry().compose([])
    desk, empty = Desk(hooks, state=TaskState()), Desk(none, state=TaskState())

    async def _async(hooks: Hooks, desk: Desk) -> None:
        for _ in range(loops):
            await hooks.before_tool(desk, CALL)

    calls = {
        "sync": lambda: _sync(hooks, desk, loops),
        "bare": lambda: _bare(extensions, loops),
        "none": lambda: _sync(none, empty, loops),
        "async": lambda: anyio.run(_async, hooks, desk),
        "async_none": lambda: anyio.run(_async, none, empty),
    }
    seconds = rounds(calls, 9)
    each = {name: [x / loops / PLUGINS * 1e6 for x in xs] for name, xs in seconds.items()}
    return [
        Value(
            "first",
            f"an agent of {PLUGINS} plugins with 5 hooks each",
            spread([a * 1e3 for a, _ in taken]),
            "ms",
        ),
        Value("further", "a further agent of the same plugins", spread([b * 1e3 for _, b in taken]), "ms"),
        Value("sync", "asking a plugin through a hook that is not awaited", spread(each["sync"]), "µs"),
        Value("ratio", "the same, in bare calls", ratios(seconds["sync"], seconds["bare"]), "x"),
        Value("async", "asking a plugin through an awaited hook", spread(each["async"]), "µs"),
        Value("idle", "a hook that no plugin has", spread([x * PLUGINS for x in each["none"]]), "µs"),
        Value(
            "async_idle",
            "an awaited hook that no plugin has",
            spread([x * PLUGINS for x in each["async_none"]]),
            "µs",
        ),
    ]
