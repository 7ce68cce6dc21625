"""What files promise: whole or not at all, and never over what somebody else wrote meanwhile."""

from __future__ import annotations

from functools import partial

import anyio

from noeta.testing.env.place import Place, expect, fails, refused, sha256, together
from noeta.toolkit.env import Changed

NAMES = ("plain", "with space", "-dash", "new\nline", "*?[a]", "Ünïcode-漢字-🎈", "a" * 200)


async def what_was_written_is_read(place: Place) -> None:
    """Bytes come back as they are, under any name."""
    contents = (b"", b"text\n", bytes(range(256)), b"\xef\xbb\xbfline\r\n", bytes(1_500_000))
    for name, data in zip(NAMES, (*contents, b"6", b"7"), strict=True):
        await place.put(name, data)
        expect(await place.env.read(name), data, f"the file {name!r}")
    expect(await place.names(), sorted(NAMES), "the names in the folder")


async def a_part_can_be_read(place: Place) -> None:
    """`read` gives up to `limit` bytes from `offset`, and nothing behind the end."""
    await place.put("a", b"0123456789")
    for part, wanted in (
        ((), b"0123456789"),
        ((8,), b"89"),
        ((2, 3), b"234"),
        ((8, 9), b"89"),
        ((99,), b""),
        ((0, 0), b""),
        ((0, None), b"0123456789"),
    ):
        expect(await place.env.read("a", *part), wanted, f"read{part}")
    for wrong in ((-1,), (0, -1)):
        await fails(place.env.read("a", *wrong), OSError, promise=f"read{wrong}")


async def a_new_file_has_to_be_meant(place: Place) -> None:
    """A file that is not there is written with `create` alone, and only into a folder that is there."""
    env = place.env
    await fails(env.write("a", b"one"), FileNotFoundError, promise="a new file without create")
    expect(await place.names(), [], "the folder after that")
    await env.write("a", b"one", create=True)
    await env.write("a", b"two", create=True)
    await env.write("a", b"three")
    expect(await env.read("a"), b"three", "a file that was written three times")
    await fails(
        env.write("no/a", b"", create=True), FileNotFoundError, promise="a file in a folder that is not there"
    )
    await fails(env.write("a/b", b"", create=True), NotADirectoryError, promise="a file below a file")
    await fails(env.read("b"), FileNotFoundError, promise="reading what is not there")
    await fails(env.read("a/b"), NotADirectoryError, promise="reading below a file")


async def a_folder_is_no_file(place: Place) -> None:
    """A folder can be neither read nor written."""
    await place.env.mkdir("folder")
    for name, call in (
        ("read", partial(place.env.read, "folder")),
        ("write", partial(place.env.write, "folder", b"", create=True)),
        ("write", partial(place.env.write, ".", b"")),
    ):
        await fails(call(), IsADirectoryError, promise=f"{name} of a folder")
    expect(await place.names(), ["folder"], "the names after that")


async def a_file_that_changed_is_not_written(place: Place) -> None:
    """`if_sha256` is compared with what is there, and a file that is gone has changed."""
    env = place.env
    await place.put("a", b"one")
    await env.write("a", b"two", if_sha256=sha256(b"one"))
    stale = env.write("a", b"three", if_sha256=sha256(b"one"))
    await refused(stale, Changed, "a write over a file that changed")
    expect(await env.read("a"), b"two", "a file that a write was refused for")
    await env.remove("a")
    for create in (False, True):
        gone = env.write("a", b"three", if_sha256=sha256(b"two"), create=create)
        await refused(gone, Changed, f"a write with create={create} over a file that is gone")
    expect(await place.names(), [], "the folder after refused writes")


async def of_those_who_read_the_same_one_writes(place: Place) -> None:
    """Of several writes that expect the same bytes one is done, and the others are told."""
    for number in range(5):
        await place.put("a", b"old")
        expected = sha256(b"old")
        new = [b"%d of %d" % (each, number) for each in range(4)]
        done = await together(*(place.env.write("a", data, if_sha256=expected) for data in new))
        wrong = [error for error in done if error is not None and not isinstance(error, Changed)]
        expect(wrong, [], "what writes that collide raise besides Changed")
        expect(done.count(None), 1, "how many of several writes over the same bytes are done")
        expect(await place.env.read("a"), new[done.index(None)], "the file after writes that collided")
    expect(await place.names(), ["a"], "the folder after writes that collided")


async def readers_see_one_file_or_the_other(place: Place) -> None:
    """Who reads while others write sees all of the one content or all of the other."""
    size = 300_000
    contents = [letter * size for letter in (b"a", b"b", b"c")]
    await place.put("file", contents[0])
    torn: list[bytes] = []
    writing = 1

    async def write() -> None:
        nonlocal writing
        for number in range(20):
            await place.env.write("file", contents[number % 3])
        writing = 0

    async def read() -> None:
        while writing:
            data = await place.env.read("file")
            if data not in contents:
                torn.append(data[:1] + data[-1:] + b" of %d bytes" % len(data))

    async with anyio.create_task_group() as group:
        for task in (write, read, read):
            group.start_soon(task)
    expect(torn, [], "what was read while others wrote, and nobody had written")


async def a_cancelled_write_is_done_or_not(place: Place) -> None:
    """A write that is cancelled leaves the old file or the new one, and nothing beside it."""
    old, new = b"o" * 400_000, b"n" * 400_000
    for seconds in (0.0, 0.0002, 0.001, 0.003, 0.01):
        await place.put("file", old)
        with anyio.move_on_after(seconds):
            await place.env.write("file", new)
        found = await place.env.read("file")
        if found not in (old, new):
            raise AssertionError(f"a write was cancelled and left {len(found)} bytes that nobody wrote")
        expect(await place.names(), ["file"], "the folder after a cancelled write")


async def a_file_keeps_its_mode(place: Place) -> None:
    """Writing a file changes its bytes and its time, and not its mode; `stat` tells them."""
    env = place.env
    await place.put("a", b"one")
    for mode in (0o755, 0o600, 0o444 | 0o200):
        await place.act("chmod", f"{mode:o}", "a")
        await env.write("a", b"longer than before")
        found = await env.stat("a")
        if found is None:
            raise AssertionError("a file that was written is not there")
        expect((found.kind, found.size), ("file", 18), "kind and size of a file")
        expect(oct(found.mode), oct(mode), "the mode of a file that was written")


async def stat_tells_what_is_there(place: Place) -> None:
    """A file or a folder, behind all links; None for nothing, also below a file."""
    env = place.env
    await env.mkdir("folder")
    await place.put("file", b"1234")
    await place.act("link", "folder", "to-folder")
    await place.act("link", "nowhere", "to-nothing")
    for path, wanted in (
        (".", "dir"),
        ("folder", "dir"),
        ("to-folder", "dir"),
        ("file", "file"),
        ("to-nothing", None),
        ("nothing", None),
        ("nothing/below", None),
        ("file/below", None),
    ):
        found = await env.stat(path)
        expect(found and found.kind, wanted, f"what is at {path!r}")
    first = await env.stat("file")
    await env.write("file", b"12345")
    second = await env.stat("file")
    if first is None or second is None or second.changed < first.changed:
        raise AssertionError(f"the time of the last change went from {first} to {second}")


async def a_link_stays_a_link(place: Place) -> None:
    """Writing through a link replaces the file that it leads to, or makes it."""
    env = place.env
    await env.mkdir("folder")
    await place.put("folder/file", b"one")
    await place.act("link", "folder/file", "link")
    await place.act("link", "folder/new", "early")
    await env.write("link", b"two", if_sha256=sha256(b"one"))
    await env.write("early", b"three", create=True)
    expect(await env.read("folder/file"), b"two", "the file that a link leads to")
    expect(await env.read("folder/new"), b"three", "a new file that a link leads to")
    links = [(entry.name, entry.link) for entry in await env.listdir(".")]
    expect(links, [("early", True), ("folder", False), ("link", True)], "which names are links")


CHECKS = (
    what_was_written_is_read,
    a_part_can_be_read,
    a_new_file_has_to_be_meant,
    a_folder_is_no_file,
    a_file_that_changed_is_not_written,
    of_those_who_read_the_same_one_writes,
    readers_see_one_file_or_the_other,
    a_cancelled_write_is_done_or_not,
    a_file_keeps_its_mode,
    stat_tells_what_is_there,
    a_link_stays_a_link,
)
