"""What groups promise, where programs get signals: TERM, then KILL, and nobody of the group is left."""

from __future__ import annotations

import signal

import anyio

from noeta.testing.env.place import Place, everything, expect, heard, soon

HELD = "lock"


async def a_signal_is_minus_its_number(place: Place) -> None:
    """The status of a program that a signal ended is minus that signal."""
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1):
        expect((await place.run("signal", str(number.value)))[1], -number, f"the status after {number.name}")


async def a_program_may_end_itself_first(place: Place) -> None:
    """`stop` asks with TERM, and a program that ends by itself says what it likes and has its own status."""
    async with place.start("polite") as process:
        await heard(process, b"ready")
        with soon("a program that ends itself when asked"):
            await process.stop(grace=60)
            expect((await everything(process)).split(), [b"bye"], "the last words of a program")
            expect(await process.wait(), 7, "the status of a program that ended itself")


async def who_does_not_end_is_killed(place: Place) -> None:
    """A program that ignores TERM is killed after `grace` seconds, and not before."""
    async with place.start("stubborn", HELD) as process:
        await heard(process, b"held")
        begun = anyio.current_time()
        with soon("a program that ignores TERM to be killed"):
            await process.stop(grace=0.3)
        if anyio.current_time() - begun < 0.3:
            raise AssertionError("a program that ignores TERM was killed before its time")
        expect(await process.wait(), -signal.SIGKILL, "the status of a program that was killed")
    with soon("leaving a program that ignores TERM"):
        async with place.start("stubborn", HELD) as process:
            await heard(process, b"held")
    await place.free(HELD, "a program that ignores TERM does not outlive its context")


async def a_child_ends_with_its_group(place: Place) -> None:
    """A process that the program left behind ends when the program is stopped or left, TERM or not."""
    for stubborn in ((), ("stubborn",)):
        async with place.start("leave", HELD, *stubborn) as process:
            await heard(process, b"left")
            with soon("the end of a program whose child runs on"):
                expect(await process.wait(), 0, "the status of a program whose child runs on")
            with soon("its child to be stopped"):
                await process.stop(grace=0.2)
            await place.free(HELD, "`stop` ends the children of a program that has ended")
        async with place.start("leave", HELD, *stubborn) as process:
            await heard(process, b"left")
        await place.free(HELD, "the children of a program do not outlive its context")


async def a_child_with_the_pipe_holds_nobody_up(place: Place) -> None:
    """Output ends soon after the program has, also when a child of it keeps the pipe open."""
    async with place.start("leave", HELD) as process:
        with soon("the end of the output of a program whose child keeps the pipe"):
            expect(await everything(process), b"left\n", "the output of a program whose child keeps the pipe")
            expect(await process.wait(), 0, "its status")


async def cancelling_leaves_no_child(place: Place) -> None:
    """A cancelled caller leaves no process of the group, not even one that ignores TERM."""
    with soon("a cancelled caller of a program that ignores TERM"), anyio.CancelScope() as scope:
        async with place.start("leave", HELD, "stubborn") as process:
            await heard(process, b"left")
            scope.cancel()
            await process.wait()
            await anyio.sleep_forever()
    await place.free(HELD, "nothing of the group is left when its caller was cancelled")


CHECKS = (
    a_signal_is_minus_its_number,
    a_program_may_end_itself_first,
    who_does_not_end_is_killed,
    a_child_ends_with_its_group,
    a_child_with_the_pipe_holds_nobody_up,
    cancelling_leaves_no_child,
)
