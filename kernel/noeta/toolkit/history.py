"""Reading logs: what a task continues and what it adds, and its records as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from noeta.core.codec import Envelope, Line, with_body

if TYPE_CHECKING:
    from noeta.toolkit.store import Store, TaskRow


async def tail(store: Store, task: str, after: int = 0) -> AsyncGenerator[Line, None]:
    """The task's own lines behind `after`, then each new one as it becomes durable, until the task has ended.

    Who stops early closes it (`contextlib.aclosing`).
    """
    async with store.watch(task) as watch:
        while True:
            ended = (await store.task(task)).status == "ended"
            lines = await store.read(task, after, limit=1000)
            for line in lines:
                yield line
            if lines:
                after = lines[-1].seq
            elif ended:
                return
            else:
                await watch.wait(5.0)


async def history(
    store: Store,
    task: str,
    after: int = 0,
    *,
    through: int | None = None,
    only: Collection[str] | None = None,
    page: int = 1_000,
) -> AsyncGenerator[list[Line], None]:
    """The lines of a task and of the tasks it continues, in pages, in the order of their one number line.

    Who stops early closes it (`contextlib.aclosing`).
    """
    for name, begin, end in spans(await lineage(store, task, after), after, through):
        after = begin
        while end is None or after < end:
            lines = await store.read(name, after, through=end, limit=page, only=only)
            if lines:
                yield lines
                after = lines[-1].seq
            if len(lines) < page:
                break


async def messages(
    store: Store, task: str, after: int, through: int, page: int = 10_000
) -> AsyncGenerator[list[tuple[int, bytes]], None]:
    """What `Store.messages` gives of a task and of the tasks it continues, up to `page` seqs at once.

    Who stops early closes it (`contextlib.aclosing`).
    """
    for name, begin, end in spans(await lineage(store, task, after), after, through):
        last = through if end is None else end
        for first in range(begin, last, page):
            yield await store.messages(name, first, through=min(first + page, last))


async def lineage(store: Store, task: str, after: int = 0) -> list[TaskRow]:
    """The row of a task, of the task it continues, and so on, as far back as the records behind `after`."""
    chain = [await store.task(task)]
    while chain[-1].base and after < chain[-1].through:
        chain.append(await store.task(chain[-1].base))
    return chain


def spans(chain: Sequence[TaskRow], after: int, through: int | None) -> Iterator[tuple[str, int, int | None]]:
    """What to read of each task, oldest first: its name, the seq to read behind and the last one (None: its
    end).

    `chain` is what `lineage` gives.
    """
    for place in range(len(chain) - 1, -1, -1):
        # A task may begin further back than the task it continues does.
        ends = [row.through for row in chain[:place]] + ([] if through is None else [through])
        yield chain[place].task, max(after, chain[place].through), min(ends, default=None)


async def whole(store: Store, envelope: Envelope) -> Envelope:
    """`envelope` with the data and message that lie in its blob."""
    if not envelope.blob:
        return envelope
    return with_body(envelope, await store.read_blob(envelope.blob) or b"")
