"""What Read shows of a file, and what it says when there is nothing to show."""

from __future__ import annotations

import hashlib
from typing import Any

import anyio.lowlevel
import pytest
from msgspec.structs import astuple

from noeta import Image, ToolOutput
from noeta.testing import FrozenClock, MemoryEnv, Rehearsal, call
from noeta_fs import Files, Seen, read

pytestmark = pytest.mark.anyio


async def shown(files: Any, path: str = "file", *, settings: Any = None, **input: Any) -> ToolOutput:
    """What Read gives in a place with these files."""
    env = MemoryEnv(files) if isinstance(files, dict) else files
    task = Rehearsal(Files(**(settings or {})), env=env)
    return await task.run(call("Read", file_path=path, **input))


async def text(content: str | bytes, **input: Any) -> str:
    """What Read shows of one file."""
    output = await shown({"file": content}, **input)
    assert not output.is_error, output.text
    return output.text


async def fault(files: Any, path: str = "file", **input: Any) -> str:
    """The error that Read gives."""
    output = await shown(files, path, **input)
    assert output.is_error, output.text
    return output.text


# ---- lines


async def test_lines_come_numbered() -> None:
    assert await text("one\n\n\tthree\n") == "     1\tone\n     2\t\n     3\t\tthree"
    assert await text("no end") == "     1\tno end"
    assert (await text("\n" * 100_000, offset=100_000, limit=1)) == "100000\t"


async def test_only_line_feeds_end_lines() -> None:
    assert await text("a\x0cb\u2028c\x85d\re\n") == "     1\ta\x0cb\u2028c\x85d\re"


async def test_a_range_can_be_read() -> None:
    lines = "".join(f"line {n}\n" for n in range(1, 11))
    assert await text(lines, offset=4, limit=2) == (
        "     4\tline 4\n     5\tline 5\n[lines 4 to 5 of 10. Go on with offset=6.]"
    )
    assert await text(lines, offset=9) == "     9\tline 9\n    10\tline 10"
    assert await text(lines, limit=99) == await text(lines)
    assert await text(lines, offset=11) == "[The file has 10 lines, so there is nothing from line 11 on.]"


async def test_an_empty_file_is_no_error() -> None:
    assert await text("") == "[The file exists and is empty.]"
    assert await text("", offset=5) == "[The file exists and is empty.]"


async def test_a_long_file_is_shown_in_part_and_says_so() -> None:
    output = await shown({"file": "x\n" * 2_001})
    assert output.text.endswith("  2000\tx\n[PARTIAL view: lines 1 to 2000 of 2001. Go on with offset=2001.]")
    assert output.meta["partial"]


async def test_the_tokens_decide_before_the_lines() -> None:
    content = f"{'x' * 92}\n" * 50
    output = await shown({"file": content}, settings={"read_tokens": 100})
    assert output.meta["lines"] == 4
    assert output.text.endswith("[PARTIAL view: lines 1 to 4 of 50. Go on with offset=5.]")
    said = await fault({"file": content}, settings={"read_tokens": 100}, limit=5)
    assert said.endswith("more than the 100 tokens that one Read may give. Use limit=4 or less.")
    assert not (await shown({"file": content}, settings={"read_tokens": 100}, limit=4)).is_error


async def test_a_long_line_is_cut_and_said_to_be() -> None:
    content = f"{'a' * 2_000}\n{'b' * 2_003}\n"
    assert await text(content) == (
        f"     1\t{'a' * 2_000}\n     2\t{'b' * 2_000} [3 more characters]\n"
        "[1 line is too long to be shown whole.]"
    )
    output = await shown({"file": "c" * 5_000_000}, settings={"read_tokens": 100})
    assert output.text.startswith("     1\tccc")
    assert output.meta["partial"]


# ---- encodings


@pytest.mark.parametrize(
    ("content", "encoding", "line"),
    [
        ("Grüße 漢字".encode(), "utf-8", "Grüße 漢字"),
        ("Grüße".encode("utf-8-sig"), "utf-8-sig", "Grüße"),
        ("Grüße".encode("utf-16"), "utf-16", "Grüße"),
        (b"\xfe\xff" + "Grüße".encode("utf-16-be"), "utf-16", "Grüße"),
        ("Grüße".encode("utf-16-le"), "utf-16-le", "Grüße"),
        ("Grüße".encode("utf-16-be"), "utf-16-be", "Grüße"),
        ("Grüße".encode("utf-32"), "utf-32", "Grüße"),
        ("Grüße".encode("latin-1"), "latin-1", "Grüße"),
        (b"\x1b[1mbold\x1b[0m", "utf-8", "\x1b[1mbold\x1b[0m"),
    ],
)
async def test_an_encoding_is_told_and_recorded(content: bytes, encoding: str, line: str) -> None:
    output = await shown({"file": content})
    assert (output.text, output.meta["encoding"]) == (f"     1\t{line}", encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
async def test_ends_of_lines_are_told_and_not_shown(encoding: str) -> None:
    output = await shown({"file": "one\r\ntwo\r\n".encode(encoding)})
    assert (output.text, output.meta["crlf"]) == ("     1\tone\n     2\ttwo", True)


@pytest.mark.parametrize("content", [b"a\0b", bytes(range(256)), b"\x7fELF\x02\x01\x01" + bytes(9)])
async def test_a_binary_file_is_an_error_with_its_size(content: bytes) -> None:
    assert f"is a binary file of {len(content)} bytes" in await fault({"file": content})


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
    ],
)
async def test_an_image_is_shown_unless_it_is_too_large(head: bytes, media_type: str) -> None:
    output = await shown({"file": head + bytes(100)})
    assert output.content == [Image(media_type=media_type, data=head + bytes(100))]
    said = await fault({"file": head + bytes(100)}, settings={"image_bytes": 50})
    assert "the setting image_bytes allows 50 bytes" in said


# ---- what is no file


async def test_a_missing_file_tells_what_may_be_meant() -> None:
    files = {"README.md": "", "src/config.py": "", "src/other.py": ""}
    assert await fault(files, "readme.md") == (
        "There is no file /project/readme.md. Did you mean /project/README.md?"
    )
    assert (await fault(files, "src/confg.py")).endswith("Did you mean /project/src/config.py?")
    assert (await fault(files, "README.txt")).endswith("Did you mean /project/README.md?")
    assert await fault(files, "zzz") == "There is no file /project/zzz."
    assert await fault(files, "sr/config.py") == (
        "There is no file /project/sr/config.py. There is no folder /project/sr either. "
        "The current folder is /project."
    )


async def test_a_folder_is_an_error_that_says_what_to_do() -> None:
    assert "is a folder, not a file. Glob finds files" in await fault({"file/x": ""})


async def test_other_things_are_errors_and_end_no_turn() -> None:
    assert "has a null byte" in await fault({}, "a\0b")
    assert "There is no folder /project/a either." in await fault({"a": ""}, "a/b")
    env = MemoryEnv()
    env.link("file", "file")
    assert "cannot be read: Too many levels" in await fault(env)


# ---- paths


async def test_a_path_is_one_of_the_tasks_folder() -> None:
    env = MemoryEnv({"sub/file": "inside", "/home/user/file": "home"})
    task = Rehearsal(Files(), env=env)
    task.state.config["cwd"] = "/project/sub"
    for path, content in (("file", "inside"), ("./../sub/file", "inside"), ("~/file", "home")):
        assert (await task.run(call("Read", file_path=path))).text == f"     1\t{content}"


# ---- what is remembered


async def test_what_was_read_is_remembered_by_its_real_path() -> None:
    env = MemoryEnv({"real/file": "one"}, clock=FrozenClock(100.0))
    env.link("link", "real")
    task = Rehearsal(Files(), env=env)
    await task.run(call("Read", file_path="link/file"))
    sha = hashlib.sha256(b"one").hexdigest()
    assert task.state.states["fs"].files == {"/project/real/file": Seen(sha256=sha, changed=100.0)}
    env.put("real/file", "two\n" * 3_000)
    await task.run(call("Read", file_path="real/file"))
    [(digest, _, partial)] = [astuple(seen) for seen in task.state.states["fs"].files.values()]
    assert (digest, partial) == (hashlib.sha256(b"two\n" * 3_000).hexdigest(), True)


async def test_a_range_that_was_asked_for_is_no_partial_view() -> None:
    task = Rehearsal(Files(), env=MemoryEnv({"file": "x\n" * 3_000}))
    await task.run(call("Read", file_path="file", offset=2, limit=1))
    assert not task.state.states["fs"].files["/project/file"].partial


async def test_what_was_not_shown_is_not_remembered() -> None:
    task = Rehearsal(Files(read_tokens=100), env=MemoryEnv({"b": b"\0", "long": f"{'x' * 90}\n" * 9}))
    for input in ({"file_path": "b"}, {"file_path": "no"}, {"file_path": "long", "limit": 9}):
        assert (await task.run(call("Read", **input))).is_error
    assert task.records == []


async def test_a_name_that_no_log_can_hold_is_read_and_not_remembered() -> None:
    env = MemoryEnv({"caf\udce9": "text"})
    task = Rehearsal(Files(), env=env)
    output = await task.run(call("Read", file_path="caf\udce9"))
    assert output.text == "     1\ttext"
    assert output.meta["path"] == "/project/caf\ufffd"
    assert task.records == []


# ---- large files


async def test_a_large_file_is_read_in_pieces_until_the_page_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(read, "WHOLE", 1_000)
    monkeypatch.setattr(read, "PIECE", 700)
    lines = [f"line {n} é" for n in range(1, 1_001)]
    env = MemoryEnv({"file": "\r\n".join(lines)})
    output = await shown(env, offset=900, limit=2)
    assert output.text == (
        "   900\tline 900 é\n   901\tline 901 é\n[lines 900 to 901. Go on with offset=902.]"
    )
    assert output.meta["total"] is None
    output = await shown(env, offset=999)
    assert output.text == "   999\tline 999 é\n  1000\tline 1000 é"
    assert (await shown(env)).meta["total"] == 1_000


async def test_other_tasks_go_on_while_a_large_file_is_looked_at() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        await shown({"file": "line\n" * 2_000_000})
        group.cancel_scope.cancel()
    assert turns > 10


async def test_rules_see_the_path_that_is_meant_and_where_links_lead() -> None:
    env = MemoryEnv({"/secret/key": ""})
    env.link("key", "/secret/key")
    task = Rehearsal(Files(), env=env)
    view = task.view("fs", "tools")
    tool: Any = task.offer().tools["Read"][1]
    assert await tool.rule_inputs({"file_path": "key", "limit": 1}, view) == [
        ({"file_path": "/project/key", "limit": 1}, True),
        ({"file_path": "/secret/key", "limit": 1}, False),
    ]
    assert await tool.rule_inputs({"file_path": "../secret/key"}, view) == [
        ({"file_path": "/secret/key"}, True)
    ]
    assert await tool.rule_inputs({"file_path": "/project/a"}, view) == []
