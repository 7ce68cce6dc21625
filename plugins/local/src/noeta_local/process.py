"""A program that runs on this machine, with all that it starts, until it is stopped or left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.lowlevel
import anyio.to_thread

CHUNK = 65_536
"""The most that is read at once: what a pipe holds."""
LEAVING = 1.0
"""The seconds that a program has to end by itself when its context is left."""
KILLED = 5.0
"""The seconds in which the system ends what was killed. Only a broken disk or driver takes longer."""
PAUSE = 0.01


class LocalProcess:
    """A `Process`, from entering the context to leaving it.

    The program leads a session, and so a group, of its own. It stays a zombie until the context is left, so
    that no other process can get its number while the group may be signalled. A program that makes another
    session for itself leaves the group, and is out of reach.
    """

    def __init__(
        self, argv: list[str], cwd: str, variables: Mapping[str, str], stdin: bytes | None, drain: float
    ) -> None:
        self._argv, self._cwd, self._variables, self._stdin = argv, cwd, variables, stdin
        self._drain = drain
        # Threads of its own: a process has to end also while a disk that hangs holds all others.
        self._threads = anyio.CapacityLimiter(2)
        self._starting = threading.Lock()
        self._popen: subprocess.Popen[bytes] | None = None
        self._left = False
        self._status: int | None = None
        self._ended = 0.0
        # How much of the pipe is still to be read, None while that is all.
        self._rest: int | None = None

    async def __aenter__(self) -> Self:
        try:
            await anyio.to_thread.run_sync(self._start, limiter=self._threads)
        except BaseException:
            # An event loop that is torn down does not wait for threads.
            self._leave()
            raise
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self.stop(LEAVING)
            finally:
                self._leave()

    def output(self) -> AsyncIterator[bytes]:
        """What it writes to standard output and standard error, as it comes; each byte once.

        It ends when all who have the pipe have closed it. When the program has ended and others still have
        it, a background job for example, it ends some seconds later (`drain`).
        """
        return Pieces(self._piece)

    async def wait(self) -> int:
        """Its exit status once it has ended; minus the signal that ended it."""
        await anyio.lowlevel.checkpoint()
        if self._look() is None:
            await self._exit()
        while (status := self._look()) is None:  # noqa: ASYNC110 -- nothing tells
            await anyio.sleep(PAUSE)
        return status

    async def stop(self, grace: float = 5.0) -> None:
        """End the whole group: TERM, and KILL after `grace` seconds. Returns when all of it has ended."""
        if self._left or not await self._lives():
            return
        self._signal(signal.SIGTERM)
        if await self._gone_within(grace):
            return
        self._signal(signal.SIGKILL)
        await self._gone_within(KILLED)

    # ---- beginning and end

    def _start(self) -> None:
        """Start the program, in a thread."""
        with contextlib.ExitStack() as stack:
            source = subprocess.DEVNULL
            if self._stdin is not None:
                # A file without a name: nobody has to feed a pipe that the program may never read.
                file = stack.enter_context(tempfile.TemporaryFile())
                file.write(self._stdin)
                file.seek(0)
                source = file.fileno()
            popen = subprocess.Popen(
                self._argv,
                cwd=self._cwd,
                env=self._variables,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
            )
        assert popen.stdout is not None
        os.set_blocking(popen.stdout.fileno(), False)
        with self._starting:
            self._popen = popen
            self._pipe = popen.stdout.fileno()
            if self._left:
                self._finish(popen)

    def _leave(self) -> None:
        """End what still runs, and give back what the system keeps for the program."""
        with self._starting:
            if not self._left and self._popen is not None:
                with contextlib.suppress(RuntimeError):
                    anyio.notify_closing(self._pipe)
                self._finish(self._popen)
            self._left = True

    def _finish(self, popen: subprocess.Popen[bytes]) -> None:
        if popen.returncode is None:
            self._signal(signal.SIGKILL)
        assert popen.stdout is not None
        popen.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(KILLED)

    # ---- the end of the program

    def _look(self) -> int | None:
        """The exit status, None while it runs."""
        if self._status is None:
            self._status = self._peek()
            self._ended = anyio.current_time()
        return self._status

    def _peek(self) -> int | None:
        assert self._popen is not None
        if not hasattr(os, "waitid"):
            return self._popen.poll()
        try:
            found = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # Somebody else took its status: a signal handler of this process, or the context that was left.
            return self._popen.poll()
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    async def _exit(self) -> None:
        """Wait until it has ended, where the system tells; else return at once."""
        assert self._popen is not None
        try:
            # One for each who waits, for only one may wait for a descriptor.
            descriptor = os.pidfd_open(self._popen.pid)
        except (AttributeError, OSError):
            return
        try:
            await anyio.wait_readable(descriptor)
        finally:
            os.close(descriptor)

    # ---- its output

    async def _piece(self) -> bytes:
        """What comes next, nothing at the end."""
        while not self._left and self._rest != 0:
            await anyio.lowlevel.checkpoint()
            try:
                data = os.read(self._pipe, CHUNK if self._rest is None else min(CHUNK, self._rest))
            except BlockingIOError:
                if await self._readable():
                    continue
                break
            if self._rest is not None:
                self._rest -= len(data)
            elif self._over():
                # What the program wrote is still in the pipe; others may go on filling it for ever.
                self._rest = self._pending()
            return data
        return b""

    def _over(self) -> bool:
        """Whether it has ended and others had their time to close the pipe."""
        return self._look() is not None and anyio.current_time() >= self._ended + self._drain

    async def _readable(self) -> bool:
        """Wait for output; False when there is none to wait for any more."""
        comes = False

        async def wait_for_output() -> None:
            nonlocal comes
            with contextlib.suppress(anyio.ClosedResourceError):
                await anyio.wait_readable(self._pipe)
                comes = True
            group.cancel_scope.cancel()

        async def wait_for_end() -> None:
            await self.wait()
            await anyio.sleep_until(self._ended + self._drain)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(wait_for_output)
            group.start_soon(wait_for_end)
        return comes

    def _pending(self) -> int:
        """How many bytes are in the pipe."""
        found = fcntl.ioctl(self._pipe, termios.FIONREAD, b"\0\0\0\0")
        return int.from_bytes(found, sys.byteorder)

    # ---- its group

    def _signal(self, number: signal.Signals) -> None:
        assert self._popen is not None
        # The group may be gone, or hold only what another user owns.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    async def _gone_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self.wait()
            while await self._lives():  # noqa: ASYNC110 -- nothing tells when a group is gone
                await anyio.sleep(PAUSE)
            return True
        return False

    async def _lives(self) -> bool:
        assert self._popen is not None
        return await anyio.to_thread.run_sync(group_lives, self._popen.pid, limiter=self._threads)


class Pieces:
    """An iterator over output that can be left at any time, since there is nothing to close."""

    def __init__(self, piece: Callable[[], Awaitable[bytes]]) -> None:
        self._piece = piece

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if piece := await self._piece():
            return piece
        raise StopAsyncIteration


def group_lives(group: int, processes: Path = Path("/proc")) -> bool:
    """Whether a process of the group runs. Zombies do not, where the system lets them be told apart."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not (processes / "self" / "stat").exists():
        return True
    for folder in processes.iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                # Behind the name, which may hold anything: state, parent, group.
                state, _, its = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:3]
                if int(its) == group and state not in (b"Z", b"X"):
                    return True
    return False
