"""Programs that a test writes as functions, and the processes that run them."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias

import anyio
import anyio.lowlevel
from msgspec import Struct

TERM = -15
"""The status of a program that was stopped."""

Program: TypeAlias = "Callable[[Invocation], Awaitable[int]]"
"""What runs, until it gives its exit status. It is cancelled when the process is stopped."""


class Invocation(Struct, frozen=True):
    """What a program is told: its arguments, its folder, its variables, and all of its standard input."""

    argv: tuple[str, ...]
    cwd: str
    variables: Mapping[str, str]
    stdin: bytes
    _write: Callable[[bytes], None]

    async def write(self, data: str | bytes) -> None:
        """Write to standard output."""
        self._write(data.encode() if isinstance(data, str) else data)
        await anyio.lowlevel.checkpoint()


class Running:
    """A `Process` that runs a program inside this one, from entering the context to leaving it.

    A program that raises has the status 1, and what it raised comes out of the context, so that an assertion
    in it fails the test.
    """

    def __init__(
        self, program: Program, argv: Sequence[str], cwd: str, variables: Mapping[str, str], stdin: bytes
    ) -> None:
        self._program = program
        self._invocation = Invocation(tuple(argv), cwd, variables, stdin, self._write)
        self._scope = anyio.CancelScope()
        self._written: deque[bytes] = deque()
        self._status: int | None = None
        self._error: Exception | None = None
        self._changed = anyio.Event()

    async def __aenter__(self) -> Self:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._run)
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._scope.cancel()
        # What the block raised is the caller's, and comes out in no group.
        cancelled = isinstance(error, anyio.get_cancelled_exc_class())
        handled = await self._group.__aexit__(*((type_, error, trace) if cancelled else (None, None, None)))
        if error is None and self._error is not None:
            raise self._error
        return handled if cancelled else None

    def output(self) -> AsyncIterator[bytes]:
        """What it writes, as it comes; each byte once. It can be left at any time, and asked for again."""
        return _Pieces(self._piece)

    async def wait(self) -> int:
        """Its exit status once it has ended."""
        while self._status is None:
            await self._changed.wait()
        return self._status

    async def stop(self, grace: float = 5.0) -> None:
        """Cancel it, and wait until it has ended. There is nothing to kill, so `grace` is not needed."""
        self._scope.cancel()
        await self.wait()

    async def _piece(self) -> bytes:
        """What comes next, nothing at the end."""
        await anyio.lowlevel.checkpoint()
        while not self._written and self._status is None:
            await self._changed.wait()
        return self._written.popleft() if self._written else b""

    async def _run(self) -> None:
        status = TERM
        try:
            with self._scope:
                status = await self._program(self._invocation)
        except Exception as error:
            self._error, status = error, 1
        finally:
            self._status = status
            self._stir()

    def _write(self, data: bytes) -> None:
        if data:
            self._written.append(data)
            self._stir()

    def _stir(self) -> None:
        """Wake those who wait for output or for the end."""
        self._changed.set()
        self._changed = anyio.Event()


class _Pieces:
    """An iterator with nothing to close."""

    def __init__(self, piece: Callable[[], Awaitable[bytes]]) -> None:
        self._piece = piece

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if piece := await self._piece():
            return piece
        raise StopAsyncIteration
