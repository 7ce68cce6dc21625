"""Running something with something else beside it, as far as both go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from noeta.toolkit.strays import fault


async def beside(main: Callable[[], Awaitable[None]], *others: Callable[[], Awaitable[None]]) -> None:
    """Run `main`, and `others` beside it until it is done.

    Raises the first error of any of them as it was raised, in no group; the rest is cancelled then.
    """
    errors: list[Exception] = []

    async def run(part: Callable[[], Awaitable[None]]) -> None:
        try:
            await part()
        except BaseException as error:
            # A group takes a cancel that nobody asked for as a way to end, and says nothing.
            lost = RuntimeError(f"{fault(error)} came out of something that was not stopped")
            errors.append(error if isinstance(error, Exception) else lost)
        if part is main or errors:
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for other in others:
            group.start_soon(run, other)
        await run(main)
    if errors:
        raise errors[0]
