"""Reading a task without an event loop: the readers of this package, over a reader of a store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

from noeta.toolkit.store import Reader, Store

T = TypeVar("T")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which awaits nothing that takes time, such as a reading of `looking(reader)`.

    Raises what it raises, and `RuntimeError` when it waits all the same.
    """
    try:
        work.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    work.close()
    raise RuntimeError("this waits for something, so it needs an event loop")


def each_at_once(found: AsyncIterator[T]) -> Iterator[T]:
    """The items of `found` as they come; what is true of `at_once` is true of each."""
    while True:
        try:
            yield at_once(cast("Coroutine[Any, Any, T]", anext(found)))
        except StopAsyncIteration:
            return


def looking(reader: Reader) -> Store:
    """`reader` for what asks a `Store`: to be used with `at_once`, and for nothing that writes."""
    return cast("Store", _Looking(reader))


class _Looking:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._reader, name)

        async def look(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        return look
