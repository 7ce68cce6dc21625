"""The tools for files on this machine: two plugins that do not know each other, in one host."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from noeta import Agent, Host, Text
from noeta.core.messages import ToolResult
from noeta.testing import ScriptedProvider, call, reply
from noeta_local import LocalEnv

pytestmark = pytest.mark.anyio


async def test_an_agent_finds_and_reads_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "old.py").write_text("old = 1\n")
    (tmp_path / "src" / "new.py").write_bytes("größe = 2\r\n".encode())
    os.utime(tmp_path / "src" / "old.py", (1_000, 1_000))
    os.utime(tmp_path / "src" / "new.py", (2_000, 2_000))
    (tmp_path / "src" / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    provider = ScriptedProvider(
        [
            reply("", call("Glob", pattern="**/*.py"), call("Read", file_path="src/new.py")),
            reply("", call("Read", file_path="pipe"), call("Read", file_path="src/nwe.py")),
            "Done.",
        ]
    )
    agent = Agent("reader", model="test:model", plugins=["fs"])
    place = str(tmp_path)
    async with Host([agent], providers={"test": provider}, env=LocalEnv("/")) as host:
        outcome = await host.run("reader", "Look.", cwd=place)
        assert outcome.text == "Done."
        items = (await host.state(outcome.task)).conversation
        blocks = [block for item in items for block in item.message.content if isinstance(block, ToolResult)]
        texts = ["".join(part.text for part in block.content if isinstance(part, Text)) for block in blocks]
        assert texts == [
            f"{place}/src/new.py\n{place}/src/old.py",
            "     1\tgröße = 2",
            f"{place}/pipe is no regular file (a pipe, device or socket), so it is not read.",
            f"There is no file {place}/src/nwe.py. Did you mean {place}/src/new.py?",
        ]
        state = (await host.state(outcome.task)).states["fs"]
    real = os.path.realpath(f"{place}/src/new.py")  # noqa: ASYNC240 -- the disk is what is compared with
    assert [*state.files] == [real]
    assert state.files[real].sha256 == hashlib.sha256("größe = 2\r\n".encode()).hexdigest()
    assert state.files[real].changed == 2_000
    provider.assert_done()
