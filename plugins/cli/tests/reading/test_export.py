"""`noeta export` writes the whole log with its blobs, byte for byte, whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from noeta.host.export import exported
from noeta.toolkit.store import Line
from noeta_cli.export import write_whole


def test_the_records_are_those_of_the_store(noeta: Any, office: Any, tmp_path: Path) -> None:
    from noeta_sqlite import SqliteReader

    done = noeta("export", office.fork)
    assert (done.code, done.out) == (0, f"{office.fork}.jsonl\n")
    head, *lines, end = (tmp_path / f"{office.fork}.jsonl").read_bytes().splitlines()
    assert [row["task"] for row in json.loads(head)["tasks"]] == [office.fork, office.idle]
    reader = SqliteReader(office.db)
    stored = [line.data for line in (*reader.read(office.idle), *reader.read(office.fork))]
    assert [line.removeprefix(b'{"record":').removesuffix(b"}") for line in lines] == stored
    assert json.loads(end) == {"end": {"records": len(stored), "blobs": 0}}
    assert noeta("export", office.fork, "-").out.encode().splitlines() == [head, *lines, end]


def test_blobs_come_once_each(tmp_path: Path) -> None:
    from noeta import Agent, Host, Image, Message, Text
    from noeta.testing import ScriptedProvider
    from noeta_sqlite import SqliteReader

    large, picture = "x" * 300_000, b"\x89PNG"
    message = Message(role="user", content=[Text(text=large), Image(media_type="image/png", data=picture)])

    async def run() -> str:
        given: dict[str, Any] = {"providers": {"test": ScriptedProvider(["One.", "Two."])}}
        url = f"sqlite:{tmp_path / 'n.db'}"
        async with Host([Agent("a", model="test:m")], store=url, **given) as host:
            task = (await host.run("a", message)).task
            await host.post(task, message)
            return (await host.wait(task)).task

    task = anyio.run(run)
    reader = SqliteReader(tmp_path / "n.db")
    lines = [json.loads(line) for line in exported(reader, task)]
    blobs = {line["blob"]: base64.b64decode(line["base64"]) for line in lines if "blob" in line}
    assert all(hashlib.sha256(data).hexdigest() == name for name, data in blobs.items())
    assert picture in blobs.values()
    assert any(large.encode() in data for data in blobs.values())
    assert len(blobs) == len([line for line in lines if "blob" in line])
    assert lines[-1] == {"end": {"records": len(reader.read(task)), "blobs": len(blobs)}}


class Damaged:
    """A reader of a log with lines that are no JSON, and with a blob that is gone."""

    def __init__(self, reader: Any, task: str) -> None:
        self._reader, self._task = reader, task

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def read(self, task: str, after: int = 0, **more: Any) -> list[Line]:
        blob = b'{"seq":3,"at":1,"extension":"core","kind":"notice","blob":"ab"}'
        lines = [Line(1, b"no json"), Line(2, b'{"seq":\n2}'), Line(3, blob)]
        return [line for line in lines if line.seq > after]


def test_what_is_damaged_is_exported_as_it_is(office: Any) -> None:
    from noeta_sqlite import SqliteReader

    reader: Any = Damaged(SqliteReader(office.db), office.ended)
    _, first, second, third, blob, end = (json.loads(line) for line in exported(reader, office.ended))
    assert (first["seq"], base64.b64decode(first["damaged"])) == (1, b"no json")
    assert base64.b64decode(second["damaged"]) == b'{"seq":\n2}'
    assert third["record"]["blob"] == "ab"
    assert blob == {"blob": "ab", "missing": True}
    assert end == {"end": {"records": 3, "blobs": 1}}


def test_a_file_that_is_there_is_kept_unless_forced(noeta: Any, office: Any, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("mine")
    done = noeta("export", office.ended, "log")
    assert done == (2, "", "noeta: 'log' is there already; name another file, or add --force.\n")
    assert (tmp_path / "log").read_text() == "mine"
    assert noeta("export", office.ended, "log", "--force").code == 0
    assert (tmp_path / "log").read_text().startswith('{"noeta_export":1')
    assert noeta("export", office.ended, "no/log").err == (
        "noeta: there is no folder 'no'; make it, or name another file.\n"
    )


@pytest.mark.parametrize("force", [True, False])
def test_when_writing_fails_nothing_is_left(tmp_path: Path, force: bool) -> None:
    def lines() -> Any:
        yield b"one\n"
        assert not (tmp_path / "log").exists()
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        write_whole(tmp_path / "log", lines(), force=force)
    assert [*tmp_path.iterdir()] == []


def test_who_was_quicker_keeps_the_file(tmp_path: Path) -> None:
    def lines() -> Any:
        yield b"one\n"
        (tmp_path / "log").write_text("theirs")

    with pytest.raises(Exception, match="is there already"):
        write_whole(tmp_path / "log", lines())
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    assert (tmp_path / "log").read_text() == "theirs"
