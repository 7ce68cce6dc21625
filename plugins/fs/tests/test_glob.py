"""Which files Glob finds, in what order, and what it leaves out."""

from __future__ import annotations

from typing import Any

import anyio.lowlevel
import pytest
from msgspec.structs import replace

from noeta import ToolOutput
from noeta.testing import FrozenClock, MemoryEnv, Rehearsal, call
from noeta.toolkit.env import DirEntry
from noeta_fs import Files
from noeta_fs.patterns import Pattern, braces

pytestmark = pytest.mark.anyio

TREE = [
    "a.py",
    "b.txt",
    ".hidden.py",
    "src/c.py",
    "src/deep/d.py",
    "src/deep/e.ts",
    "src/[x].py",
    ".ci/run.py",
]


async def globbed(env: Any, pattern: str, *, settings: Any = None, **input: Any) -> ToolOutput:
    """What Glob gives in an environment, or in one with files of these names."""
    env = env if isinstance(env, MemoryEnv) else MemoryEnv(dict.fromkeys(env, ""), clock=FrozenClock(1.0))
    task = Rehearsal(Files(**(settings or {})), env=env)
    return await task.run(call("Glob", pattern=pattern, **input))


async def names(env: Any, pattern: str, **input: Any) -> list[str]:
    """The paths in the folder that Glob finds, without what it says besides."""
    output = await globbed(env, pattern, **input)
    assert not output.is_error, output.text
    lines = output.text.splitlines()
    return [line.removeprefix("/project/") for line in lines if line.startswith("/")]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", [".hidden.py", "a.py"]),
        ("**/*.py", [".ci/run.py", ".hidden.py", "a.py", "src/[x].py", "src/c.py", "src/deep/d.py"]),
        ("src/**/*.py", ["src/[x].py", "src/c.py", "src/deep/d.py"]),
        ("src/**/deep/*", ["src/deep/d.py", "src/deep/e.ts"]),
        ("**/deep/**", ["src/deep/d.py", "src/deep/e.ts"]),
        ("src/**", ["src/[x].py", "src/c.py", "src/deep/d.py", "src/deep/e.ts"]),
        ("**/**/c.py", ["src/c.py"]),
        ("*/*.py", [".ci/run.py", "src/[x].py", "src/c.py"]),
        ("src/deep/*.{py,ts}", ["src/deep/d.py", "src/deep/e.ts"]),
        ("{src/c,a}.py", ["a.py", "src/c.py"]),
        ("src/{deep/{d,x},c}.*", ["src/c.py", "src/deep/d.py"]),
        ("?.txt", ["b.txt"]),
        ("[ac].py", ["a.py"]),
        ("[!b].*", ["a.py"]),
        ("src/[[]x].py", ["src/[x].py"]),
        ("./a.py", ["a.py"]),
        ("../project/a.py", ["a.py"]),
        ("/project/src/*.py", ["src/[x].py", "src/c.py"]),
        ("A.py", []),
        ("src", []),
        ("nothing/*", []),
    ],
)
async def test_a_pattern_finds_files(pattern: str, found: list[str]) -> None:
    assert await names(TREE, pattern) == found


async def test_a_folder_can_be_named() -> None:
    assert await names(TREE, "*.py", path="src") == ["src/[x].py", "src/c.py"]
    assert await names(TREE, "*.py", path="/project/src/deep") == ["src/deep/d.py"]
    for path, said in (("no", "There is no folder /project/no."), ("a.py", "This is a file and no folder:")):
        output = await globbed(TREE, "*.py", path=path)
        assert output.is_error
        assert output.text.startswith(said)


async def test_the_newest_come_first_and_the_rest_is_counted() -> None:
    clock = FrozenClock(100.0)
    env = MemoryEnv(clock=clock)
    for number in range(120):
        env.put(f"f{number}", "")
        clock.advance(1)
    output = await globbed(env, "*")
    lines = output.text.splitlines()
    assert lines[:2] == ["/project/f119", "/project/f118"]
    assert lines[99:] == ["/project/f20", "[The newest 100 of 120 files. Use a narrower pattern.]"]
    assert output.meta == {"files": 100, "total": 120, "whole": True}


async def test_nothing_found_is_no_error_and_says_where_it_looked() -> None:
    assert (await globbed(TREE, "**/*.rs")).text == "No files found."
    assert (await globbed(TREE, "*.ts")).text == (
        "No files found.\n[This looked in /project alone. To look in the folders below write **/*.ts.]"
    )
    assert (await globbed(TREE, "nothing/**")).text == "No files found."
    assert "write src/**/d.py" in (await globbed(TREE, "src/d.py")).text


async def test_ignored_files_are_found_and_version_control_only_by_its_name() -> None:
    tree = [".gitignore", "build/a.py", ".git/a.py", "sub/.git/b.py"]
    assert await names(tree, "**/*.py") == ["build/a.py"]
    assert await names(tree, ".git/*.py") == [".git/a.py"]
    assert await names(tree, "**/.git/*") == [".git/a.py", "sub/.git/b.py"]


async def test_links_lead_in_no_circle() -> None:
    env = MemoryEnv({"src/a.py": "", "/else/b.py": ""}, clock=FrozenClock(1.0))
    env.link("src/loop", ".")
    env.link("src/out", "/else")
    env.link("src/c.py", "a.py")
    env.link("src/gone.py", "nothing.py")
    with anyio.fail_after(5):
        assert await names(env, "**/*.py") == ["src/a.py", "src/c.py"]
        assert await names(env, "src/*/*.py") == ["src/loop/a.py", "src/loop/c.py"]
        assert await names(env, "src/loop/*.py") == ["src/loop/a.py", "src/loop/c.py"]
        assert await names(env, "**/loop/*.py") == ["src/loop/a.py", "src/loop/c.py"]


@pytest.mark.parametrize(
    ("pattern", "folder"),
    [
        ("../../etc/host*", "/etc"),
        ("/etc/host*", "/etc"),
        ("/etc/hosts", "/etc"),
        ("~/*", "/home/user"),
        ("../project2/*", "/project2"),
        ("out/*", "/project/out"),
        ("out/no/*", "/project/out/no"),
        ("/**/hosts", "/"),
    ],
)
async def test_a_pattern_does_not_lead_out_of_the_folder(pattern: str, folder: str) -> None:
    env = MemoryEnv({"a": "", "/etc/hosts": "", "/project2/b": "", "~/c": ""})
    env.link("out", "/etc")
    output = await globbed(env, pattern)
    assert output.is_error
    assert output.text == (
        f"The pattern leads to {folder}, which is not in /project. Give that folder as path."
    )


async def test_a_folder_elsewhere_is_searched_when_it_is_the_path() -> None:
    env = MemoryEnv({"/etc/hosts": ""})
    env.link("out", "/etc")
    assert (await globbed(env, "host*", path="/etc")).text == "/etc/hosts"
    assert await names(env, "host*", path="out") == ["out/hosts"]
    # Seen from behind the link it is the same folder.
    assert (await globbed(env, "/etc/*", path="out")).text == "/etc/hosts"


@pytest.mark.parametrize("pattern", ["*/*", "**/out/*", "{a,out}/*", "ou[t]/hosts"])
async def test_a_link_out_of_the_folder_is_not_followed_and_that_is_said(pattern: str) -> None:
    env = MemoryEnv({"a/b": "", "/etc/hosts": ""})
    env.link("out", "/etc")
    output = await globbed(env, pattern)
    assert not output.is_error
    assert "/hosts\n" not in output.text
    assert output.text.endswith(
        "[Not searched, since these links lead out of the folder: /project/out. Give such a folder as path.]"
    )


async def test_rules_see_the_folder_that_is_searched_and_where_links_lead() -> None:
    env = MemoryEnv({"/etc/hosts": ""})
    env.link("out", "/etc")
    env.link("loop", "loop")
    task = Rehearsal(Files(), env=env)
    view = task.view("fs", "tools")
    tool: Any = task.offer().tools["Glob"][1]
    for input, expected in (
        ({"path": "out"}, [({"path": "/project/out"}, True), ({"path": "/etc"}, False)]),
        ({"path": "/project/out"}, [({"path": "/etc"}, False)]),
        ({"path": "../etc"}, [({"path": "/etc"}, True)]),
        ({}, [({"path": "/project"}, True)]),
        ({"path": "/etc"}, []),
        ({"path": "loop"}, [({"path": "/project/loop"}, True)]),
        ({"path": "a\0b"}, []),
    ):
        found = await tool.rule_inputs({"pattern": "*", **input}, view)
        assert found == [({"pattern": "*", **other}, allow_too) for other, allow_too in expected]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a\0b", "has a null byte"),
        ("*/../x", "has no one folder to begin in"),
        ("{/a,b}/*", "has no one folder to begin in"),
        ("/", "names no file"),
        ("..", "names no file"),
        ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "more than 1,000 patterns"),
    ],
)
async def test_a_pattern_that_makes_no_sense_is_an_error(pattern: str, why: str) -> None:
    output = await globbed(TREE, pattern)
    assert output.is_error
    assert why in output.text


async def test_a_null_byte_in_the_folder_is_an_error() -> None:
    output = await globbed(TREE, "*", path="a\0b")
    assert output.is_error
    assert "null byte" in output.text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", ["a"]),
        ("{a,b}", ["a", "b"]),
        ("x{a,{b,c}d}y", ["xay", "xbdy", "xcdy"]),
        ("{a}{b,c}", ["{a}b", "{a}c"]),
        ("{a,b", ["{a,b"]),
        ("a}b,c", ["a}b,c"]),
        ("{,a}b", ["b", "ab"]),
        ("{a,a}", ["a"]),
    ],
)
def test_braces_stand_for_choices(text: str, found: list[str]) -> None:
    assert braces(text) == found


def test_a_search_begins_where_the_pattern_says() -> None:
    for text, base in (
        ("src/a/*.py", "src/a"),
        ("/etc/*", "/etc"),
        ("a/{b,c}/*", "a"),
        ("*/b", ""),
        ("/a", "/"),
    ):
        assert Pattern(text).base == base


class Slow(MemoryEnv):
    """A place that takes its time for some folders, and does not show others."""

    async def listdir(self, path: str) -> list[DirEntry]:
        if path.endswith("slow"):
            await anyio.sleep_forever()
        if path.endswith("locked"):
            raise PermissionError(path)
        return await super().listdir(path)


async def test_a_search_that_takes_too_long_gives_what_it_has() -> None:
    env = Slow({"a": "", "slow/b": ""})
    output = await globbed(env, "**/*", settings={"glob_seconds": 0.05})
    assert output.text == (
        "/project/a\n[The search was stopped after 0.05 seconds, so there may be more. "
        "Use a narrower pattern.]"
    )
    assert not output.meta["whole"]


async def test_what_cannot_be_read_is_said() -> None:
    env = Slow({"a": "", "locked/b": ""})
    output = await globbed(env, "**/*")
    assert output.text == "/project/a\n[Not searched, since they cannot be read: /project/locked.]"


async def test_a_search_can_be_cancelled() -> None:
    with anyio.move_on_after(0.05) as scope:
        await globbed(Slow({"slow/b": ""}), "**/*")
    assert scope.cancelled_caught


class Untold(MemoryEnv):
    """A place that tells no times while it lists."""

    async def listdir(self, path: str) -> list[DirEntry]:
        return [replace(entry, changed=None) for entry in await super().listdir(path)]


async def test_a_file_that_is_gone_meanwhile_is_left_out() -> None:
    class Fleeting(Untold):
        async def stat(self, path: str) -> Any:
            return None if path.endswith("gone") else await super().stat(path)

    assert await names(Fleeting({"a": "", "gone": ""}), "*") == ["a"]


@pytest.mark.parametrize("kind", [MemoryEnv, Untold])
async def test_a_file_is_asked_for_its_time_only_where_the_listing_does_not_tell_it(
    kind: type[MemoryEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FrozenClock(100.0)
    env = kind(clock=clock)
    for name in ("old", "new", "newest"):
        env.put(name, "")
        clock.advance(1)
    asked, stat = [], env.stat

    async def counted(path: str) -> Any:
        asked.append(path)
        return await stat(path)

    monkeypatch.setattr(env, "stat", counted)
    assert await names(env, "*") == ["newest", "new", "old"]
    assert len([path for path in asked if path != "/project"]) == (3 if kind is Untold else 0)


async def test_other_tasks_go_on_during_a_search_in_one_huge_folder() -> None:
    class Huge(MemoryEnv):
        async def listdir(self, path: str) -> list[DirEntry]:
            return [DirEntry(name=f"{number}.txt", kind="file") for number in range(200_000)]

    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        await globbed(Huge(), "*.py")
        group.cancel_scope.cancel()
    assert turns > 100
