"""What paths promise: one spelling for each place, and no guess about where a link leads."""

from __future__ import annotations

import posixpath
from functools import partial

from noeta.testing.env.place import Place, expect, fails


async def a_path_is_absolute_and_has_no_dots(place: Place) -> None:
    """A text names a path from `cwd`, without ``.``, ``..`` and doubled slashes."""
    path, cwd = place.env.path, place.env.cwd
    expect(path(cwd), cwd, "the spelling of `cwd`")
    for text, wanted in (
        ("a", f"{cwd}/a"),
        ("./a//b/", f"{cwd}/a/b"),
        ("a/../b", f"{cwd}/b"),
        ("..", posixpath.dirname(cwd)),
        ("/../a", "/a"),
        ("//a", "/a"),
        ("", cwd),
        (" a\n", f"{cwd}/ a\n"),
    ):
        expect(path(text), wanted, f"the path of {text!r}")


async def a_tilde_is_the_home(place: Place) -> None:
    """``~`` alone or before a slash is a home; anywhere else it is a letter."""
    path, cwd = place.env.path, place.env.cwd
    home = path("~")
    if not home.startswith("/") or "~" in home:
        raise AssertionError(f"the path of '~' is a home, and not {home!r}")
    expect(path("~/a/../b"), posixpath.join(home, "b"), "the path of '~/a/../b'")
    expect(path("a/~"), f"{cwd}/a/~", "the path of 'a/~'")
    expect(path("~~"), f"{cwd}/~~", "the path of '~~'")


async def a_null_byte_is_in_no_path(place: Place) -> None:
    """A path with a NUL is a `ValueError`, and no call looks at what stands before it."""
    await place.put("a", b"text")
    text = "a\0b"
    try:
        place.env.path(text)
    except ValueError:
        pass
    else:
        raise AssertionError("the path of a text with a NUL: wanted ValueError, and nothing was raised")
    for name in ("real", "stat", "read", "listdir", "mkdir", "remove"):
        try:
            await getattr(place.env, name)(text)
        except ValueError:
            continue
        raise AssertionError(f"{name} of a path with a NUL: wanted ValueError, and nothing was raised")
    expect(await place.names(), ["a"], "the folder after calls with a NUL")


async def calls_take_what_path_takes(place: Place) -> None:
    """A relative path is one from `cwd` in every call."""
    env = place.env
    await env.mkdir("folder")
    await place.put("folder/a", b"text")
    expect(await env.read("./folder/../folder/a"), b"text", "a file by a relative path")
    expect(await env.read(env.path("folder/a")), b"text", "the same file by its absolute path")
    await env.rename("folder/a", "b")
    expect(await place.names(env.cwd), ["b", "folder"], "the folder after a rename by relative paths")


async def real_follows_links(place: Place) -> None:
    """`real` resolves every link, also one in the middle and before parts that do not exist."""
    env = place.env
    here = await env.real(env.cwd)
    await env.mkdir("secret/deep")
    await place.put("secret/key", b"key")
    await place.act("link", "secret", "docs")
    await place.act("link", "docs/key", "key")
    await place.act("link", "nowhere/at/all", "lost")
    for path, wanted in (
        ("docs", "secret"),
        ("docs/key", "secret/key"),
        ("key", "secret/key"),
        ("docs/deep/new/file", "secret/deep/new/file"),
        ("lost", "nowhere/at/all"),
        ("new", "new"),
    ):
        expect(await env.real(path), f"{here}/{wanted}", f"what {path!r} really is")
    expect(env.path("docs/key"), f"{env.cwd}/docs/key", "`path` follows no link")


async def a_circle_of_links_is_an_error(place: Place) -> None:
    """Links that lead in a circle are an `OSError`, and no place."""
    await place.act("link", "b", "a")
    await place.act("link", "a", "b")
    env = place.env
    for name, call in (
        ("real", partial(env.real, "a/x")),
        ("stat", partial(env.stat, "a")),
        ("read", partial(env.read, "a")),
        ("write", partial(env.write, "a", b"", create=True)),
    ):
        await fails(call(), OSError, promise=f"{name} of a link in a circle")
    expect([entry.kind for entry in await env.listdir(".")], ["other", "other"], "links in a circle, listed")


CHECKS = (
    a_path_is_absolute_and_has_no_dots,
    a_tilde_is_the_home,
    a_null_byte_is_in_no_path,
    calls_take_what_path_takes,
    real_follows_links,
    a_circle_of_links_is_an_error,
)
