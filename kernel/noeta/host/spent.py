"""What a task has spent on models, by who asked for it: the task's own steps, and each plugin."""

from __future__ import annotations

from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from noeta.core import records as r
from noeta.core.messages import Usage
from noeta.host.reading import records
from noeta.toolkit.store import Store


class Spent(Struct, frozen=True, kw_only=True):
    """The calls of one model by one plugin, or by the task's steps (empty): their tokens and milliseconds."""

    plugin: str
    model: str
    calls: int = 0
    usage: Usage = Usage()
    ms: int = 0


async def spent(store: Store, task: str) -> list[Spent]:
    """What a task has spent, in the order in which plugins and models first came up.

    Neither the history that it continues nor its children count. Raises `UnknownTask`.
    """
    sums: dict[tuple[str, str], Spent] = {}
    after, only = (await store.task(task)).through, ["core.model_replied", "core.model_called"]
    async with aclosing(records(store, task, after, only=only)) as found:
        async for record in found:
            if isinstance(call := record.data, r.ModelReplied | r.ModelCalled):
                by = call.plugin if isinstance(call, r.ModelCalled) else ""
                so_far = sums.get((by, call.model)) or Spent(plugin=by, model=call.model)
                usage, ms = so_far.usage + call.usage, so_far.ms + call.ms
                sums[by, call.model] = replace(so_far, calls=so_far.calls + 1, usage=usage, ms=ms)
    return list(sums.values())
