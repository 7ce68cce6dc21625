"""What processes promise: told what they need and no secrets, heard while they run, never left behind."""

from __future__ import annotations

import json

import anyio

from noeta.testing.env.place import SECRETS, Place, everything, expect, fails, heard, soon

HELD = "lock"


async def a_program_is_told_what_it_needs(place: Place) -> None:
    """Arguments, folder, variables and standard input arrive as they were given."""
    await place.env.mkdir("in/here")
    words = ["two words", "", "*", "$HOME", 'quote"', "new\nline", "漢字"]
    output, status = await place.run(
        "show", *words, cwd="in/here", env={"GREETING": "hello $X", "EMPTY": ""}, stdin=bytes(range(256))
    )
    expect(status, 0, "the status of a program that shows what it was told")
    told = json.loads(output)
    expect(told["words"], words, "the arguments of a program")
    here = await place.env.real("in/here")
    expect(told["cwd"], here, "the folder of a program")
    expect([told["env"].get(name) for name in ("GREETING", "EMPTY")], ["hello $X", ""], "its variables")
    expect(told["stdin"].encode("latin-1"), bytes(range(256)), "its standard input")


async def without_input_there_is_none(place: Place) -> None:
    """A program without `stdin` reads nothing and does not wait; it starts in `cwd`."""
    told = json.loads((await place.run("show"))[0])
    expect(told["stdin"], "", "the standard input of a program that was given none")
    expect(told["cwd"], await place.env.real(place.env.cwd), "the folder of a program that was given none")


async def input_that_nobody_reads_holds_nothing_up(place: Place) -> None:
    """A program may end without reading what it was given, however much that is."""
    expect(await place.run("end", "0", stdin=bytes(1_000_000)), (b"", 0), "a program that reads nothing")


async def programs_get_no_secret(place: Place) -> None:
    """A variable of this process is not passed on by itself. ``PATH`` and ``HOME`` are there."""
    told = json.loads((await place.run("show"))[0])
    seen = [name for name in SECRETS if name in told["env"]]
    expect(seen, [], "the variables of this process that a program sees")
    missing = [name for name in ("PATH", "HOME") if not told["env"].get(name)]
    expect(missing, [], "the variables that a program lacks")


async def the_exit_status_is_told(place: Place) -> None:
    """`wait` gives the status, as often as it is asked, to several at a time, during output and after."""
    for status in (0, 1, 77, 255):
        expect((await place.run("end", str(status)))[1], status, "the status of a program")
    found: list[object] = []
    async with place.start("talk", "go") as process:

        async def ask() -> None:
            found.append(await process.wait())

        async def listen() -> None:
            found.append(await everything(process))

        with soon("the end of a program that two wait for"):
            async with anyio.create_task_group() as group:
                for task in (ask, listen, ask):
                    group.start_soon(task)
                await place.put("go")
        found.append(await process.wait())
    expect(sorted(map(str, found)), ["0", "0", "0", r"b'one\ntwo\n'"], "what those were told who waited")


async def output_comes_while_the_program_runs(place: Place) -> None:
    """What a program writes is there before it ends, standard error too."""
    async with place.start("talk", "go") as process:
        pieces = process.output()
        with soon("the first output of a program that still runs"):
            said = await anext(pieces)
        await place.put("go")
        with soon("the rest of the output"):
            async for piece in pieces:
                said += piece
            expect((said, await process.wait()), (b"one\ntwo\n", 0), "output and status")
    output, _ = await place.run("both")
    expect(sorted(output.split()), [b"err", b"out"], "what was written to both outputs")


async def output_goes_on_where_it_was_left(place: Place) -> None:
    """Output that was left and is asked for again goes on, and each byte comes once."""
    async with place.start("talk", "go") as process:
        await heard(process, b"one\n")
        await place.put("go")
        with soon("the rest of output that was left"):
            expect(await everything(process), b"two\n", "output that was left and asked for again")
            expect(await everything(process), b"", "output behind its end")


async def much_output_arrives_whole(place: Place) -> None:
    """Megabytes come in order and complete, to a reader that takes its time too."""
    wanted = b"".join(b"%07d\n" % number * 128 for number in range(3_000))
    with soon("three megabytes of output"):
        async with place.start("flood", "3000") as process:
            parts = []
            async for piece in process.output():
                parts.append(piece)
                if len(parts) % 16 == 1:
                    await anyio.sleep(0.001)
            expect(await process.wait(), 0, "the status of a program that wrote much")
    expect(b"".join(parts) == wanted, True, "whether all output came, in order")


async def output_that_nobody_reads_holds_nothing_up(place: Place) -> None:
    """The context can be left at any time, whatever is unread."""
    with soon("leaving a program that writes on and on"):
        async with place.start("flood", "100000"):
            pass
        async with place.start("flood", "100000") as process:
            await heard(process, b"0000000")


async def what_is_not_there_is_not_started(place: Place) -> None:
    """A program or folder that does not exist is a `FileNotFoundError`; `which` knows no such program."""

    async def run(*argv: str, cwd: str | None = None) -> None:
        async with place.env.process(argv, cwd=cwd):
            pass

    nowhere = "noeta-no-such-program"
    await fails(run(nowhere), FileNotFoundError, promise="running a program that is not there")
    program = place.argv()[0]
    await fails(
        run(program, cwd="nowhere"), FileNotFoundError, promise="running in a folder that is not there"
    )
    expect(await place.env.which(nowhere), None, "`which` of a program that is not there")
    found = await place.env.which(program)
    if not found or not found.startswith("/"):
        raise AssertionError(f"`which` of {program!r} is an absolute path, and not {found!r}")


async def a_program_can_be_stopped(place: Place) -> None:
    """`stop` returns when the program has ended; again, and after its end, it does nothing."""
    async with place.start("hold", HELD) as process:
        await heard(process, b"held")
        with soon("a program to be stopped"):
            await process.stop()
            status = await process.wait()
        if status == 0:
            raise AssertionError("a program that was stopped has the status 0")
        await place.free(HELD, "after `stop` nothing of the program is left")
        with soon("a program to be stopped again"):
            await process.stop()
        expect(await process.wait(), status, "the status of a program after it was stopped again")
    async with place.start("end", "3") as process:
        await process.wait()
        await process.stop()
        expect(await process.wait(), 3, "the status of a program that was stopped after its end")


async def leaving_the_context_ends_the_program(place: Place) -> None:
    """Nothing runs on when the context is left, by its end or by an error, which comes out as it is."""
    async with place.start("hold", HELD) as process:
        await heard(process, b"held")
    await place.free(HELD, "nothing of a program is left behind its context")
    mine = LookupError("of the caller")
    found: BaseException | None = None
    try:
        async with place.start("hold", HELD) as process:
            await heard(process, b"held")
            raise mine
    except (LookupError, BaseExceptionGroup) as error:
        found = error
    expect(found is mine, True, "whether an error inside the context comes out as it is")
    await place.free(HELD, "nothing of a program is left behind a context that an error ended")


async def cancelling_leaves_no_process(place: Place) -> None:
    """Who is cancelled while a program starts, is read from or is waited for leaves nothing running."""
    for seconds in (0.0, 0.001, 0.005, 0.02, 0.05):
        with anyio.move_on_after(seconds):
            async with place.start("hold", HELD) as process:
                await process.wait()
        await place.free(HELD, f"nothing of a program is left {seconds} seconds after it was begun")
    for waits in ("wait", "output", "sleep"):
        with anyio.CancelScope() as scope:
            async with place.start("hold", HELD) as process:
                await heard(process, b"held")
                scope.cancel()
                if waits == "wait":
                    await process.wait()
                elif waits == "output":
                    await everything(process)
                # The program may end before the cancel arrives.
                await anyio.sleep_forever()
        expect(scope.cancelled_caught, True, "whether a cancel arrives")
        await place.free(HELD, "nothing of a program is left when its caller was cancelled")


CHECKS = (
    a_program_is_told_what_it_needs,
    without_input_there_is_none,
    input_that_nobody_reads_holds_nothing_up,
    programs_get_no_secret,
    the_exit_status_is_told,
    output_comes_while_the_program_runs,
    output_goes_on_where_it_was_left,
    much_output_arrives_whole,
    output_that_nobody_reads_holds_nothing_up,
    what_is_not_there_is_not_started,
    a_program_can_be_stopped,
    leaving_the_context_ends_the_program,
    cancelling_leaves_no_process,
)
