"""What folders promise: listing, making, removing and renaming, as the system does it."""

from __future__ import annotations

from noeta.testing.env.place import Place, expect, fails
from noeta.toolkit.env import DirEntry


async def entries_come_by_name(place: Place) -> None:
    """`listdir` gives each entry once, sorted by name, of what a link leads to; times are those of `stat`."""
    env = place.env
    for name in ("b", ".hidden", "B", "a", "é"):
        await place.put(name)
    await env.mkdir("c/inside")
    await place.act("link", "a", "to-a")
    await place.act("link", "c", "to-c")
    await place.act("link", "nowhere", "to-nothing")
    kinds = {"c": "dir", "to-c": "dir", "to-nothing": "other"}
    names = sorted([".hidden", "B", "a", "b", "c", "to-a", "to-c", "to-nothing", "é"])
    wanted = [
        DirEntry(name=name, kind=kinds.get(name, "file"), link=name.startswith("to-"))  # type: ignore[arg-type]
        for name in names
    ]
    expect(await place.entries(), wanted, "the entries of a folder")
    expect(await place.names("to-c"), ["inside"], "the entries of a folder behind a link")
    await fails(env.listdir("nothing"), FileNotFoundError, promise="listing what is not there")
    await fails(env.listdir("a"), NotADirectoryError, promise="listing a file")


async def folders_are_made_with_those_above(place: Place) -> None:
    """`mkdir` makes what is missing, and a folder that is there is fine; a file in its place is not."""
    env = place.env
    for _ in range(2):
        await env.mkdir("a/b/c")
    expect(await place.names("a/b"), ["c"], "a folder that was made twice")
    await place.put("a/file")
    await fails(env.mkdir("a/file"), FileExistsError, promise="a folder in the place of a file")
    below = (FileExistsError, NotADirectoryError)
    await fails(env.mkdir("a/file/b"), *below, promise="a folder below a file")


async def only_what_is_empty_is_removed(place: Place) -> None:
    """`remove` takes a file, an empty folder, or a link and not what it leads to."""
    env = place.env
    await env.mkdir("folder")
    await place.put("folder/file", b"text")
    await place.act("link", "folder", "link")
    await fails(env.remove("folder"), OSError, promise="removing a folder with a file in it")
    await fails(env.remove("nothing"), FileNotFoundError, promise="removing what is not there")
    await env.remove("link")
    expect(await env.read("folder/file"), b"text", "a file behind a link that was removed")
    await env.remove("folder/file")
    await env.remove("folder")
    expect(await place.names(), [], "the names after all was removed")


async def a_rename_replaces_a_file(place: Place) -> None:
    """`rename` moves files and folders; a file is replaced, a folder that is not empty is not."""
    env = place.env
    await place.put("a", b"one")
    await place.put("b", b"two")
    await env.rename("a", "b")
    expect(await env.read("b"), b"one", "a file that took the place of another")
    await env.mkdir("folder/inside")
    await env.mkdir("full/inside")
    await place.put("folder/inside/file", b"three")
    await env.rename("folder", "moved")
    expect(await env.read("moved/inside/file"), b"three", "a file in a folder that was renamed")
    await place.act("link", "b", "link")
    await env.rename("link", "renamed")
    expect([entry.link for entry in await env.listdir(".")], [False, False, False, True], "a renamed link")
    for what, old, new in (
        ("what is not there", "a", "c"),
        ("into a folder that is not there", "b", "no/b"),
        ("a folder over one that is not empty", "moved", "full"),
        ("a folder into itself", "moved", "moved/inside/deeper"),
        ("a file over a folder", "b", "full"),
    ):
        await fails(env.rename(old, new), OSError, promise=f"renaming {what}")
    expect(await place.names(), ["b", "full", "moved", "renamed"], "the names after all renames")


CHECKS = (
    entries_come_by_name,
    folders_are_made_with_those_above,
    only_what_is_empty_is_removed,
    a_rename_replaces_a_file,
)
