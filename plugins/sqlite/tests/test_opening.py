"""A place where no store can be is refused with a reason, and left as it was."""

# ruff: noqa: ASYNC240 -- a look at files of the test.

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from noeta.toolkit.settings import SettingsError
from noeta.toolkit.store import Corrupt, NewTask, ReadOnly, StoreError, Unavailable
from noeta_sqlite import SqliteReader, SqliteStore, looking, mounts, open_store
from noeta_sqlite.schema import APPLICATION_ID, VERSION

pytestmark = pytest.mark.anyio

NOBODY = 65534


@pytest.fixture
def made(path: Path, opened: Any, new_task: Callable[..., NewTask]) -> Path:
    """A store with one task in it, closed."""

    async def make() -> None:
        async with opened(path) as store:
            await store.create(new_task("task"))

    anyio.run(make)
    return path


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder where permissions count. They do not for root, so a root becomes somebody else meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
            try:
                yield folder
            finally:
                os.seteuid(0)
        else:
            yield folder
        for file in [folder, *folder.rglob("*")]:
            file.chmod(0o700)


def refused(path: Path, kind: type[StoreError], reason: str, says: str) -> None:
    for open_it in (SqliteStore, SqliteReader):
        with pytest.raises(kind, match=says) as caught:
            open_it(path)
        assert caught.value.reason == reason


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("application", [0, 77])
@pytest.mark.parametrize("live", [False, True])
def test_the_file_of_another_application_is_refused(
    path: Path, disk: Any, mode: str, application: int, live: bool
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        other.execute(f"PRAGMA application_id = {application}")
        other.execute("CREATE TABLE precious (x)")
        if not live:
            other.close()
        before = disk(path.parent)
        refused(path, Corrupt, "application", "Name another file")
        shared = f"{path.name}-shm"
        after = disk(path.parent)
        # What SQLite's readers of a live file note there is no content.
        assert {**after, shared: None} == {**before, shared: None}
        assert (shared in after) == (shared in before)


@pytest.mark.parametrize("content", [b"x", b"# Notes\n", b"z" * 10_000], ids=["byte", "text", "pages"])
def test_a_file_that_is_no_database_is_refused(path: Path, disk: Any, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, Corrupt, "no-database", "Name another one")
    assert disk(path.parent) == {path.name: content}


def test_a_newer_format_is_refused(made: Path, disk: Any) -> None:
    with closing(sqlite3.connect(made)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = disk(made.parent)
    refused(made, Unavailable, "newer", "newer noeta")
    assert disk(made.parent) == before


def test_a_folder_is_refused(path: Path, disk: Any) -> None:
    path.mkdir()
    refused(path, Unavailable, "folder", "Name a file")
    assert disk(path.parent) == {path.name: None}


def test_something_that_is_no_file_is_refused(path: Path) -> None:
    os.mkfifo(path)
    refused(path, Unavailable, "folder", "Name a file")


def test_a_file_in_place_of_the_folder_is_refused(path: Path, disk: Any) -> None:
    path.write_bytes(b"")
    with pytest.raises(Unavailable, match="Name a file in a folder") as caught:
        SqliteStore(path / "noeta.db")
    assert caught.value.reason == "folder"
    assert disk(path.parent) == {path.name: b""}


def test_a_folder_that_cannot_be_written_is_refused(as_nobody: Path) -> None:
    as_nobody.chmod(0o500)
    with pytest.raises(Unavailable, match="can be written") as caught:
        SqliteStore(as_nobody / "noeta.db")
    assert caught.value.reason == "folder"
    assert list(as_nobody.iterdir()) == []


@pytest.mark.parametrize("which", ["file", "folder", "both"])
async def test_a_store_that_cannot_be_written_is_refused_but_read(
    as_nobody: Path, which: str, opened: Any, new_task: Any, disk: Any
) -> None:
    path = as_nobody / "noeta.db"
    async with opened(path) as store:
        await store.create(new_task("task"))
    (as_nobody / "noeta.db.lock").unlink()
    if which != "folder":
        path.chmod(0o400)
    if which != "file":
        as_nobody.chmod(0o500)
    before = {name: data for name, data in disk(as_nobody).items() if not name.endswith(".lock")}
    with pytest.raises(ReadOnly, match="Let this user write") as caught:
        SqliteStore(path)
    assert caught.value.reason == "file"
    assert SqliteReader(path).task("task").last_seq == 1
    assert {name: data for name, data in disk(as_nobody).items() if not name.endswith(".lock")} == before


@pytest.mark.parametrize("empty", [False, True])
async def test_no_file_and_an_empty_file_become_a_store(
    path: Path, empty: bool, opened: Any, new_task: Any
) -> None:
    target = path if empty else path.parent / "new" / "folders" / "noeta.db"
    if empty:
        path.write_bytes(b"")
    async with opened(target) as store:
        await store.create(new_task("task"))
    with closing(sqlite3.connect(target)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


async def test_opening_a_second_time_keeps_the_locks_of_the_first(made: Path, opened: Any) -> None:
    def others_can_lock() -> bool:
        # Only the last to close may have the file to itself.
        code = (
            f"import sqlite3; connection = sqlite3.connect({str(made)!r}, timeout=0)\n"
            "connection.execute('PRAGMA locking_mode = EXCLUSIVE')\n"
            "print(connection.execute('PRAGMA journal_mode = DELETE').fetchone())"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        return "delete" in done.stdout

    async with opened(made):
        async with opened(made):
            pass
        looking.identify(made)
        SqliteReader(made).tasks()
        assert not others_can_lock()
    assert others_can_lock()


async def test_two_names_of_a_file_are_one_store(made: Path, opened: Any, new_task: Any) -> None:
    name = made.parent.parent / "other name.db"
    name.symlink_to(made)
    async with opened(name) as one, opened(made) as other:
        assert one.path == other.path
        await one.create(new_task("second"))
        assert (await other.task("second")).last_seq == 1
    assert sorted(file.name for file in made.parent.parent.iterdir()) == ["data", "other name.db"]


TABLE = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/local tmpfs rw 0 0
//server/with\\040blank /mnt/with\\040blank cifs rw 0 0
host:/ /mnt/ssh fuse.sshfs rw 0 0
/dev/vdb /mnt/twice ext4 rw 0 0
server:/ /mnt/twice nfs rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/noeta.db", "ext4"),
        ("/home/me/noeta.db", "nfs4"),
        ("/homes/noeta.db", "ext4"),
        ("/home/local/noeta.db", "tmpfs"),
        ("/mnt/with blank/noeta.db", "cifs"),
        ("/mnt/ssh/a/b/noeta.db", "fuse.sshfs"),
        ("/mnt/twice/noeta.db", "nfs"),
    ],
)
def test_the_mount_table_says_what_holds_a_file(path: str, kind: str) -> None:
    assert mounts.file_system(Path(path), TABLE) == kind
    assert mounts.file_system(Path(path), "") == ""


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
async def test_a_network_file_system_is_refused_unless_allowed(
    path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = path.parent.parent / "mounts"
    table.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/ {path.parent} {kind} rw 0 0\n")
    monkeypatch.setattr(mounts, "MOUNTS", table)
    with pytest.raises(Unavailable, match=f"{kind}.*network=allow") as caught:
        SqliteStore(path)
    assert caught.value.reason == "network"
    assert list(path.parent.iterdir()) == []
    await open_store(f"sqlite:{path}?network=allow&synchronous=NORMAL").aclose()
    assert path.exists()


async def test_without_a_mount_table_a_file_is_taken_for_local(
    path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any
) -> None:
    monkeypatch.setattr(mounts, "MOUNTS", path.parent / "no such table")
    async with opened(path):
        assert path.exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:", "'sqlite:' names no SQLite file; write sqlite:noeta.db"),
        ("sqlite:?network=allow", "names no SQLite file"),
        ("postgres:x", "names no SQLite file"),
        ("noeta.db", "names no SQLite file"),
        ("sqlite://noeta.db", "has a host in front of its path"),
        ("sqlite::memory:", "a store in memory is noeta.toolkit.in_memory"),
    ],
)
def test_a_wrong_url_says_what_is_wrong(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        open_store(url)


@pytest.mark.parametrize(
    ("url", "settings", "says"),
    [
        ("sqlite:a.db?netwrok=allow", {}, r"'netwrok': .*did you mean 'network'\?\)\. It takes sync"),
        ("sqlite:a.db", {"synchronus": "NORMAL"}, "'synchronus': .*did you mean 'synchronous'"),
        ("sqlite:a.db", {"network": True}, "'network': Expected `str`, got `bool`"),
        ("sqlite:a.db?network=yes", {}, "'network': it is 'yes'; it can be 'refuse' or 'allow'"),
        ("sqlite:a.db", {"synchronous": "OFF"}, "'synchronous': it is 'OFF'; it can be 'FULL' or 'NORMAL'"),
    ],
)
def test_an_unknown_setting_says_what_there_is(
    url: str, settings: dict[str, Any], says: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with pytest.raises(SettingsError, match=says):
        open_store(url, settings)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("form", ["sqlite:data.db", "sqlite:{folder}/data.db", "sqlite://{folder}/data.db"])
async def test_a_url_names_a_file_here_or_by_its_whole_path(
    form: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    store = open_store(form.format(folder=path.parent))
    await store.aclose()
    assert store.path == path.parent / "data.db"


async def test_a_tilde_in_a_url_is_the_home(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(path.parent))
    store = open_store("sqlite:~/data.db")
    await store.aclose()
    assert store.path == path.parent / "data.db"


async def test_an_option_of_the_url_goes_before_a_setting(path: Path) -> None:
    settings = {"synchronous": "FULL", "network": "allow"}
    found = []
    for url in (f"sqlite:{path}?synchronous=NORMAL", f"sqlite:{path}"):
        store = open_store(url, settings)
        try:
            found.append((await store.stats()).synchronous)
        finally:
            await store.aclose()
    assert found == ["NORMAL", "FULL"]


async def test_only_the_owner_can_read_what_people_said(path: Path, opened: Any, new_task: Any) -> None:
    async with opened(path) as store:
        await store.create(new_task("task", ["hello"]))
        files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
        assert len(files) > 2
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_a_network_that_is_no_truth_value_is_refused(path: Path) -> None:
    with pytest.raises(TypeError, match="network is 'refuse'; it can be True or False"):
        SqliteStore(path, network="refuse")  # type: ignore[arg-type]
    assert not path.exists()
