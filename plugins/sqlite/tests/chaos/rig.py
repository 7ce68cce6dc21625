"""Real processes on one file, killed and stopped at random: `rig.py FOLDER [--seconds S] [--seed N]`.

Killed processes come back under the same name with a new number. Stopped ones sleep past their lease and go
on, so that they write with claims that others hold by then. At the end all are killed, the auditor looks at
what they left, one process finishes what is left to do, and the auditor looks again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from actor import LEASE, Opener, act
from auditor import audit, structure
from journal import all_entries

from noeta_sqlite import SqliteStore

WORKERS = 4
DRAIN_SECONDS = 120
SLOTS = [(f"worker{number}", "work") for number in range(WORKERS)] + [("poster", "post")]


class Slot:
    """One place in the rig, whoever fills it now."""

    def __init__(self, rig: Rig, name: str, role: str) -> None:
        self.rig, self.name, self.role = rig, name, role
        self.lives = 0
        self.pid = 0
        self.wakes_at = 0.0
        self.start()

    def start(self) -> None:
        """Start a process in this place."""
        before = self.rig.folder / f"{self.name}-{self.lives}.journal"
        self.lives += 1
        self.pid = self.rig.start(f"{self.name}-{self.lives}", self.role, before if before.exists() else None)

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        if os.WIFEXITED(status):
            self.rig.broken.append(f"{self.name}-{self.lives} ended by itself")
        self.wakes_at = 0.0


class Rig:
    """One run in one folder."""

    def __init__(self, folder: Path, seed: int, opener: Opener = SqliteStore) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.seed, self.opener = folder, seed, opener
        self.database = folder / "noeta.db"
        self.rng = random.Random(seed)
        self.undisturbed = False
        self.broken: list[str] = []
        self.counts: Counter[str] = Counter()

    def start(self, name: str, role: str, before: Path | None = None) -> int:
        """Fork a process. This one has no thread and never opens the store."""
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            asyncio.run(act(self.opener, self.database, name, role, str(self.seed), before))
            status = 0
        finally:
            os._exit(status)

    def wait_for(self, name: str, role: str, seconds: float = DRAIN_SECONDS) -> None:
        """Let one process come to its end."""
        pid = self.start(name, role)
        until = time.monotonic() + seconds
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                self.broken.append(f"{name} did not come to an end")
                return
            time.sleep(0.02)
        if ended[1]:
            self.broken.append(f"{name} failed")

    def run(self, seconds: float) -> list[str]:
        """Everything: the violations found."""
        self.wait_for("begin", "begin")
        slots = [Slot(self, name, role) for name, role in SLOTS]
        try:
            self._disturb(slots, time.monotonic() + seconds)
        finally:
            for slot in slots:
                slot.kill()
        found = [*self.broken, *self.audited("killed")]
        if not found:
            self.wait_for("drain", "drain")
            found = [*self.broken, *self.audited("drained", drained=True)]
        return found

    def _disturb(self, slots: list[Slot], until: float) -> None:
        next_look = time.monotonic() + 1
        while (now := time.monotonic()) < until and not self.broken:
            for slot in slots:
                if slot.wakes_at and slot.wakes_at < now:
                    os.kill(slot.pid, signal.SIGCONT)
                    slot.wakes_at = 0.0
            if now > next_look:
                self.broken += self.look()
                next_look = now + 1
            if self.undisturbed:
                time.sleep(0.05)
                continue
            slot = self.rng.choice(slots)
            if self.rng.random() < 0.8:
                slot.kill()
                slot.start()
                self.counts["kills"] += 1
            elif not slot.wakes_at:
                os.kill(slot.pid, signal.SIGSTOP)
                slot.wakes_at = now + self.rng.uniform(0.5, 2.5) * LEASE
                self.counts["stops"] += 1
            time.sleep(self.rng.uniform(0.02, 0.3))

    def look(self) -> list[str]:
        """What is wrong with the tables in the middle of it all."""
        self.counts["looks"] += 1
        # Such a connection cannot move the write-ahead log into the file.
        connection = sqlite3.connect(
            f"file:{self.database}?mode=ro", uri=True, isolation_level=None, timeout=30
        )
        try:
            connection.execute("BEGIN")
            return list(structure(connection))
        finally:
            connection.close()

    def audited(self, name: str, *, drained: bool = False) -> list[str]:
        """What the auditor says of a copy of the file."""
        copy = self.folder / f"{name}.db"
        for suffix in ("", "-wal"):
            source = self.database.with_name(self.database.name + suffix)
            if source.exists():
                shutil.copyfile(source, copy.with_name(copy.name + suffix))
        known = all_entries(self.folder)
        for entry in () if drained else known:
            self.counts.update(
                f"{entry['what']} {a['answer']}" for a in entry["answers"] or [{"answer": "?"}]
            )
        return audit(copy, known, drained=drained)


def main() -> int:
    """Run the rig, tell what it did, and say whether all was well."""
    parser = argparse.ArgumentParser(description="Kill the processes of a SQLite store.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--without", help="a mutant of the store, by name: take its guard out")
    given = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    with ExitStack() as stack:
        opener: Opener = SqliteStore
        if given.without:
            sys.path.insert(0, str(Path(__file__).parents[1] / "mutants"))
            from patching import named, patched

            opener = stack.enter_context(patched(named(given.without)))
        rig = Rig(given.folder, seed, opener)
        found = rig.run(given.seconds)
    print(f"seed {seed}:", ", ".join(f"{count} {what}" for what, count in sorted(rig.counts.items())))
    for violation in found[:20]:
        print("VIOLATION", violation)
    if found:
        print(f"{len(found)} violations; the files are in {given.folder}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
