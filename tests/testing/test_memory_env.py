"""The place in memory does what the system does, and runs programs that a test writes."""

# ruff: noqa: ASYNC240 -- the disk is what the place in memory is compared with.

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from noeta import Agent, Host, ToolContext, ToolSet, function_tool
from noeta.testing import FrozenClock, Invocation, MemoryEnv, ScriptedProvider, call, reply
from noeta.toolkit.env import Changed, DirEntry, ExecEnv

pytestmark = pytest.mark.anyio


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---- files


def test_it_is_a_place_to_act() -> None:
    env: ExecEnv = MemoryEnv()
    assert env.cwd == "/project"


async def test_it_begins_with_what_it_is_given() -> None:
    env = MemoryEnv({"a/b.txt": "text", "/etc/c": b"\xff", "~/d": ""})
    assert env.files == {"/etc/c": b"\xff", "/home/user/d": b"", "/project/a/b.txt": b"text"}
    entries = [(entry.name, entry.kind) for entry in await env.listdir("/")]
    assert entries == [("etc", "dir"), ("home", "dir"), ("project", "dir")]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", "/project/a"),
        ("./a/../b/", "/project/b"),
        ("../../..", "/"),
        ("~", "/home/user"),
        ("~/a", "/home/user/a"),
        ("~a", "/project/~a"),
        ("//a", "/a"),
        ("", "/project"),
    ],
)
def test_a_text_names_a_path_from_the_folder_it_is_in(text: str, path: str) -> None:
    assert MemoryEnv().path(text) == path


def test_a_nul_is_in_no_path() -> None:
    with pytest.raises(ValueError, match="null byte"):
        MemoryEnv().path("a\0b")


async def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode() -> None:
    clock = FrozenClock(100.0)
    env = MemoryEnv(clock=clock)
    env.put("a", "old and long", mode=0o755)
    clock.advance(5)
    await env.write("a", b"new")
    assert env.files == {"/project/a": b"new"}
    found = await env.stat("a")
    assert found is not None
    assert (found.kind, found.size, found.changed, found.mode) == ("file", 3, 105.0, 0o755)


async def test_a_file_that_changed_meanwhile_is_not_written() -> None:
    env = MemoryEnv({"a": "one"})
    await env.write("a", b"two", if_sha256=sha(b"one"))
    with pytest.raises(Changed, match="a has changed"):
        await env.write("a", b"three", if_sha256=sha(b"one"))
    await env.remove("a")
    for create in (False, True):
        with pytest.raises(Changed):
            await env.write("a", b"three", if_sha256=sha(b"two"), create=create)
    assert env.files == {}


async def test_of_two_who_read_the_same_only_one_writes() -> None:
    env = MemoryEnv({"a": "one"})
    changed = []

    async def edit(name: bytes) -> None:
        data = await env.read("a")
        try:
            await env.write("a", data + name, if_sha256=sha(data))
        except Changed:
            changed.append(name)

    async with anyio.create_task_group() as group:
        for name in (b"x", b"y", b"z"):
            group.start_soon(edit, name)
    assert len(changed) == 2
    assert len(env.files["/project/a"]) == 4


async def test_a_new_file_has_to_be_meant() -> None:
    env = MemoryEnv()
    with pytest.raises(FileNotFoundError):
        await env.write("a", b"one")
    await env.write("a", b"one", create=True)
    await env.write("a", b"two", create=True)
    assert env.files == {"/project/a": b"two"}


async def test_a_part_of_a_file_can_be_read() -> None:
    env = MemoryEnv({"a": "0123456789"})
    assert [await env.read("a", *part) for part in [(), (8,), (2, 3), (8, 9), (99,), (0, 0)]] == [
        b"0123456789",
        b"89",
        b"234",
        b"89",
        b"",
        b"",
    ]
    for part in [(-1,), (0, -1)]:
        with pytest.raises(OSError, match="Invalid argument"):
            await env.read("a", *part)


async def test_what_is_written_does_not_change_with_the_buffer_it_came_from() -> None:
    env, buffer = MemoryEnv(), bytearray(b"one")
    await env.write("a", buffer, create=True)
    buffer[:] = b"two"
    assert env.files == {"/project/a": b"one"}


async def test_the_root_stays_where_it_is() -> None:
    env = MemoryEnv({"/a": ""})
    for attempt in (env.remove("/"), env.rename("/", "/b"), env.rename("/a", "/")):
        with pytest.raises(OSError) as caught:  # noqa: PT011 -- the number says which one
            await attempt
        assert caught.value.errno == errno.EBUSY


# ---- links


async def test_a_gate_sees_where_a_link_leads() -> None:
    env = MemoryEnv({"/secret/key": "s"}, clock=FrozenClock(7.0))
    env.link("docs", "../secret")
    env.link("key", "docs/key")
    assert await env.real("docs/new/file") == "/secret/new/file"
    assert await env.real("key") == "/secret/key"
    assert await env.read("key") == b"s"
    assert await env.listdir("/project") == [
        DirEntry(name="docs", kind="dir", link=True, changed=7.0),
        DirEntry(name="key", kind="file", link=True, changed=7.0),
    ]
    await env.remove("key")
    assert env.files == {"/secret/key": b"s"}


async def test_links_that_lead_in_a_circle_lead_nowhere() -> None:
    env = MemoryEnv()
    env.link("a", "b")
    env.link("b", "a")
    for attempt in (env.real("a"), env.stat("a/x"), env.read("a"), env.write("a", b"", create=True)):
        with pytest.raises(OSError) as caught:  # noqa: PT011 -- the number says which one
            await attempt
        assert caught.value.errno == errno.ELOOP
    assert await env.listdir(".") == [
        DirEntry(name=name, kind="other", link=True, changed=None) for name in "ab"
    ]


async def test_a_link_does_not_replace_anything() -> None:
    env = MemoryEnv({"a": ""})
    with pytest.raises(FileExistsError):
        env.link("a", "b")
    with pytest.raises(FileNotFoundError):
        env.link("c/d", "b")


# ---- as the system does it


class Disk:
    """The same calls on a real folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def at(self, path: str) -> Path:
        return Path(f"{self.root}{path}")

    async def real(self, path: str) -> str:
        try:
            found = os.path.realpath(self.at(path), strict=True)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise
            found = os.path.realpath(self.at(path))
        return found.removeprefix(str(self.root)) or "/"

    async def stat(self, path: str) -> str | None:
        try:
            mode = self.at(path).stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        return "dir" if stat.S_ISDIR(mode) else "file"

    async def read(self, path: str) -> bytes:
        return self.at(path).read_bytes()

    async def write(self, path: str, data: bytes, create: bool) -> None:
        if not create:
            self.at(path).stat()
        self.at(path).write_bytes(data)

    async def link(self, path: str, target: str) -> None:
        self.at(path).symlink_to(self.at(target) if target.startswith("/") else target)

    async def listdir(self, path: str) -> list[DirEntry]:
        def kind(entry: Any) -> Any:
            try:
                return "dir" if entry.is_dir() else "file" if entry.is_file() else "other"
            except OSError:
                return "other"

        with os.scandir(self.at(path)) as found:
            entries = [DirEntry(name=e.name, kind=kind(e), link=e.is_symlink()) for e in found]
        return sorted(entries, key=lambda entry: entry.name)

    async def mkdir(self, path: str) -> None:
        os.makedirs(self.at(path), exist_ok=True)  # noqa: PTH103 -- the two differ in their errors

    async def remove(self, path: str) -> None:
        where = self.at(path)
        if where.is_dir() and not where.is_symlink():
            where.rmdir()
        else:
            where.unlink()

    async def rename(self, old: str, new: str) -> None:
        self.at(old).replace(self.at(new))

    def leads_out(self) -> bool:
        """Whether a link leads out of the folder. The root of the place in memory has no outside."""
        links = [path for path in self.root.iterdir() if path.is_symlink()]
        return any(str(link.readlink()).startswith("..") for link in links)

    def files(self) -> dict[str, bytes]:
        found = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]
        return {str(path).removeprefix(str(self.root)): path.read_bytes() for path in found}


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
TARGETS = st.one_of(PATHS, st.sampled_from(["a", "b/c", "../a", "./b", "..", "."]))
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), PATHS, st.sampled_from([b"one", b"two"]), st.booleans()),
    st.tuples(st.just("mkdir"), PATHS),
    st.tuples(st.just("link"), PATHS, TARGETS),
    st.tuples(st.just("remove"), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    *(st.tuples(st.just(name), PATHS) for name in ("read", "stat", "real", "listdir")),
)


async def outcome(run: Callable[[], Awaitable[Any]]) -> Any:
    """What a call gives, or the number of its error."""
    try:
        return await run()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


async def mine(env: MemoryEnv, name: str, path: str, *more: Any) -> Any:
    """One of the operations in memory."""
    match name:
        case "link":
            return env.link(path, more[0])
        case "write":
            return await env.write(path, more[0], create=more[1])
        case "stat":
            return (found := await env.stat(path)) and found.kind
        case "listdir":
            return [replace(entry, changed=None) for entry in await env.listdir(path)]
    return await getattr(env, name)(path, *more)


async def compared(operations: list[Any], disk: Disk) -> None:
    """Do the same at both places, and see the same."""
    env = MemoryEnv(cwd="/", home="/")
    for name, *how in operations:
        here = await outcome(partial(mine, env, name, *how))
        there = await outcome(partial(getattr(disk, name), *how))
        assert (name, *how, here) == (name, *how, there)
        if disk.leads_out():
            return
    assert env.files == disk.files()


@given(operations=st.lists(OPERATIONS, max_size=12))
def test_every_call_does_what_the_system_does(operations: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "root"
        root.mkdir()
        anyio.run(compared, operations, Disk(root))


# ---- programs


async def test_a_program_is_told_all_and_says_what_it_likes() -> None:
    async def sort(run: Invocation) -> int:
        for line in sorted(run.stdin.decode().splitlines(), reverse="-r" in run.argv):
            await run.write(f"{line}\n")
        await run.write(f"{run.cwd} {run.variables['HOME']} {run.variables['LANG']}".encode())
        return 3

    env = MemoryEnv({"/data/x": ""}, programs={"sort": sort})
    assert (await env.which("sort"), await env.which("ls")) == ("/bin/sort", None)
    for program in ("sort", "/bin/sort"):
        async with env.process([program, "-r"], cwd="/data", env={"LANG": "C"}, stdin=b"a\nb\n") as process:
            output = [piece async for piece in process.output()]
            assert output == [b"b\n", b"a\n", b"/data /home/user C"]
            assert await process.wait() == 3


async def test_output_comes_while_the_program_runs() -> None:
    heard = anyio.Event()

    async def talk(run: Invocation) -> int:
        await run.write("one")
        await heard.wait()
        await run.write("two")
        return 0

    async with MemoryEnv(programs={"talk": talk}).process(["talk"]) as process:
        pieces = process.output()
        assert await anext(pieces) == b"one"
        heard.set()
        assert [piece async for piece in pieces] == [b"two"]
        # What was heard is gone.
        assert [piece async for piece in process.output()] == []


@pytest.mark.parametrize("leave", [False, True])
async def test_a_program_that_never_ends_can_be_stopped(leave: bool) -> None:
    ended = []

    async def serve(run: Invocation) -> int:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(run.argv)
        return 0

    with anyio.fail_after(5):
        async with MemoryEnv(programs={"serve": serve}).process(["serve", "80"]) as process:
            await anyio.wait_all_tasks_blocked()
            if not leave:
                await process.stop()
                assert await process.wait() == -15
    assert ended == [("serve", "80")]


async def test_who_is_cancelled_stops_the_program_too() -> None:
    ended = []

    async def serve(run: Invocation) -> int:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(run)
        return 0

    with anyio.CancelScope() as scope:
        async with MemoryEnv(programs={"serve": serve}).process(["serve"]):
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert len(ended) == 1


async def test_what_a_program_raises_fails_the_test_and_what_the_test_raises_goes_before() -> None:
    async def fail(run: Invocation) -> int:
        raise AssertionError("a wrong argument")

    env = MemoryEnv(programs={"fail": fail})

    async def run(error: Exception | None = None) -> None:
        async with env.process(["fail"]) as process:
            assert await process.wait() == 1
            if error:
                raise error

    with pytest.raises(AssertionError, match="a wrong argument"):
        await run()
    with pytest.raises(KeyError):
        await run(KeyError("mine"))


def test_a_program_that_is_not_installed_or_has_no_folder_does_not_start() -> None:
    async def ls(run: Invocation) -> int:
        return 0

    env = MemoryEnv({"file": ""}, programs={"ls": ls})
    with pytest.raises(FileNotFoundError, match="rm"):
        env.process(["rm"])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        env.process(["ls"], cwd="nowhere")
    with pytest.raises(NotADirectoryError, match="file"):
        env.process(["ls"], cwd="file")


# ---- in a host


async def test_tools_act_there() -> None:
    @function_tool
    async def note(text: str, ctx: ToolContext) -> str:
        """Write something down."""
        path = ctx.env.path("notes.txt")
        await ctx.env.write(path, text.encode(), create=True)
        return path

    env = MemoryEnv()
    agent = Agent("agent", model="test:model", plugins=[ToolSet([note])])
    provider = ScriptedProvider([reply("", call("note", text="Buy milk.")), "Done."])
    async with Host([agent], providers={"test": provider}, env=env) as host:
        assert (await host.run("agent", "go", cwd="~")).text == "Done."
        [row] = await host.tasks()
        assert (await host.state(row.task)).config == {"cwd": "/home/user"}
    assert env.files == {"/project/notes.txt": b"Buy milk."}
