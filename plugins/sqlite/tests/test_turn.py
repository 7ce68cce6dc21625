"""The lock that writers queue for ends with its holder, and is one lock whatever happens to its file."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from noeta_sqlite.opening import in_turn
from noeta_sqlite.turn import Turn


def test_a_child_forked_by_a_holder_that_dies_does_not_hold_the_lock_on(tmp_path: Path) -> None:
    path = tmp_path / "noeta.db"
    told, tell = os.pipe()
    holder = os.fork()
    if not holder:
        with Turn(path):
            child = os.fork()
            if not child:
                # The handles of the holder are closed by now, and this process stays.
                os.write(tell, f"{os.getpid()}".encode())
                signal.pause()
            os.waitpid(child, 0)
    child = int(os.read(told, 20))
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    try:
        with in_turn(path):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(told)
        os.close(tell)


def test_a_deleted_lock_file_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "noeta.db"
    turn = Turn(path)
    with turn:
        pass
    (tmp_path / "noeta.db.lock").unlink()
    with turn:
        assert (tmp_path / "noeta.db.lock").exists()
    with in_turn(path):
        pass
    turn.close()
    turn.close()
