"""Files of this machine: what only a real disk can show."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from noeta_local import LocalEnv, files

pytestmark = pytest.mark.anyio

WRITER = """
import sys
from noeta_local import files
contents = [bytes([letter]) * 3_000_000 for letter in b"ab"]
print("ready", flush=True)
number = 0
while True:
    files.replace(sys.argv[1], contents[number % 2], None, True)
    number += 1
"""


DROP = """
import os, sys
from noeta_local import files
if os.getuid() == 0:
    os.chmod(sys.argv[1], 0o777)
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
os.chdir("/")
place = sys.argv[1]
"""


def as_nobody(code: str, folder: Path) -> str:
    """What a Python program, that begins with `DROP`, writes without the rights of root."""
    for above in folder.parents:
        # The folders of a test are its user's alone.
        if above.owner() == Path.home().owner() and above.name.startswith(("pytest-", "popen-", "test_")):
            above.chmod(0o755)
    return subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    ).stdout


def test_a_killed_writer_leaves_a_whole_file_and_one_that_is_plainly_no_users(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 3_000_000)
    for pause in (0.0, 0.002, 0.005, 0.009, 0.014, 0.02):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, process_group=0
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(pause)
            writer.send_signal(signal.SIGKILL)
        data = path.read_bytes()
        assert data in (b"a" * 3_000_000, b"b" * 3_000_000)
        left = [entry for entry in tmp_path.iterdir() if entry != path]
        assert len(left) <= 1
        for entry in left:
            assert entry.name.startswith(".noeta-")
            assert entry.name.endswith(".tmp")
            # Nobody who may not read the file may read what was to take its place.
            assert entry.stat().st_mode & ~path.stat().st_mode & 0o777 == 0
            entry.unlink()


async def test_a_write_that_fails_leaves_nothing(env: LocalEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    await env.write("file", b"old", create=True)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        await env.write("file", b"new")
    assert await env.read("file") == b"old"
    assert [entry.name for entry in await env.listdir(".")] == ["file"]


async def test_a_folder_that_cannot_be_flushed_is_no_error(
    env: LocalEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def not_folders(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", not_folders)
    await env.write("file", b"new", create=True)
    assert await env.read("file") == b"new"


async def test_bytes_and_name_are_on_the_disk_before_a_write_returns(
    env: LocalEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = []
    flush = os.fsync

    def seen(descriptor: int) -> None:
        flushed.append((os.fstat(descriptor).st_size, sorted(os.listdir(env.cwd))))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    await env.write("file", b"12345", create=True)
    [(size, before), (_, after)] = flushed
    assert size == 5
    assert "file" not in before
    assert after == ["file"]


async def test_a_new_file_has_the_mode_that_the_system_gives(env: LocalEnv, tmp_path: Path) -> None:
    (tmp_path / "system").touch()
    await env.write("ours", b"", create=True)
    modes = [(await env.stat(name)) for name in ("system", "ours")]
    assert modes[0] is not None
    assert modes[1] is not None
    assert modes[0].mode == modes[1].mode


async def test_what_is_forbidden_is_a_permission_error_and_changes_nothing(
    env: LocalEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    await env.write("file", b"old", create=True)

    # The system lets root do anything, so it is asked instead of being tried.
    def refused(name: str, mode: int, *, dir_fd: int, effective_ids: bool) -> bool:
        assert (name, mode, effective_ids) == ("file", os.W_OK, True)
        return False

    monkeypatch.setattr(os, "access", refused)
    with pytest.raises(PermissionError, match="file"):
        await env.write("file", b"new")
    assert await env.read("file") == b"old"


def test_what_is_forbidden_to_another_user_is_told(tmp_path: Path) -> None:
    """Run as nobody when this is root, so that the system itself refuses."""
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / "file").write_bytes(b"secret")
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o444)
    (tmp_path / "locked").chmod(0)
    code = f"""{DROP}
for call in (
    lambda: files.replace(place + "/file", b"new", None, False),
    lambda: files.read(place + "/locked/file", 0, None),
    lambda: files.entries(place + "/locked"),
    lambda: files.real(place + "/locked/file"),
    lambda: files.look(place + "/locked/file"),
):
    try:
        print("gave", call())
    except PermissionError as error:
        print("refused")
"""
    assert as_nobody(code, tmp_path).split("\n") == [*["refused"] * 5, ""]
    (tmp_path / "locked").chmod(0o700)


def test_a_folder_that_may_be_listed_and_not_entered_tells_the_kinds(tmp_path: Path) -> None:
    below = tmp_path / "below"
    (below / "folder").mkdir(parents=True)
    (below / "file").touch()
    (below / "link").symlink_to("file")
    code = f"""{DROP}
print([(entry.name, entry.kind, entry.link, entry.changed) for entry in files.entries(place + "/below")])
"""
    told = [("file", "file", False, None), ("folder", "dir", False, None), ("link", "other", True, None)]
    try:
        below.chmod(0o444)
        assert as_nobody(code, tmp_path) == f"{told}\n"
    finally:
        below.chmod(0o700)


async def test_pipes_and_devices_are_neither_read_nor_replaced(env: LocalEnv, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with anyio.fail_after(5):
        for path in ("pipe", "/dev/zero"):
            with pytest.raises(OSError, match="Not a regular file"):
                await env.read(path)
            found = await env.stat(path)
            assert found is not None
            assert found.kind == "other"
        with pytest.raises(OSError, match="Not a regular file"):
            await env.write("pipe", b"", create=True)
    assert (tmp_path / "pipe").is_fifo()


async def test_a_name_that_is_no_utf8_can_be_listed_and_given_back(env: LocalEnv, tmp_path: Path) -> None:
    raw = b"caf\xe9"
    with open(os.fsencode(tmp_path) + b"/" + raw, "wb") as file:  # noqa: ASYNC230 -- a name of bytes
        file.write(b"text")
    name = "caf\udce9"
    assert [entry.name for entry in await env.listdir(".")] == [name]
    assert await env.read(name) == b"text"
    await env.write(name, b"new")
    await env.rename(name, "other")
    assert await env.read("other") == b"new"


async def test_a_file_that_says_it_is_empty_is_read(env: LocalEnv) -> None:
    found = await env.stat("/proc/self/status")
    assert found is not None
    assert found.size == 0
    assert b"Name:" in await env.read("/proc/self/status")
    assert await env.read("/proc/self/status", 0, 5) == b"Name:"


def test_two_processes_take_turns(tmp_path: Path) -> None:
    """Each adds one to a number, again and again, and none is lost."""
    code = """
import hashlib, sys
from noeta.toolkit.env import Changed
from noeta_local import files
done = 0
while done < 50:
    data = files.read(sys.argv[1], 0, None)
    try:
        files.replace(sys.argv[1], b"%d" % (int(data) + 1), hashlib.sha256(data).hexdigest(), False)
        done += 1
    except Changed:
        pass
"""
    path = tmp_path / "number"
    path.write_bytes(b"0")
    both = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert path.read_bytes() == b"100"


def test_where_locks_do_not_work_files_are_still_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    path = tmp_path / "file"
    files.replace(str(path), b"one", None, True)
    sha = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
    files.replace(str(path), b"two", sha, False)
    assert path.read_bytes() == b"two"
