"""Kill the processes of every store that has a rig, for as long as asked: `run.py [--seconds S] [--seed N]`.

A store's rig is the program `plugins/NAME/tests/chaos/rig.py`. It runs again and again for 40 seconds, each
time in a new folder with the next seed. The folder of a run that found something is kept.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RIGS = sorted(Path(__file__).parents[2].glob("plugins/*/tests/chaos/rig.py"))
ROUND = 40.0


def main() -> int:
    """Run them all, and stop at the first violation."""
    parser = argparse.ArgumentParser(description="Kill real processes at random and compare what they leave.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long processes are killed, in all")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    began = time.monotonic()
    rounds = max(1, round(given.seconds / ROUND / len(RIGS)))
    for number in range(rounds):
        for rig in RIGS:
            folder = tempfile.mkdtemp(prefix="noeta-chaos-")
            options = [f"--seconds={min(ROUND, given.seconds)}", f"--seed={given.seed + number}"]
            if subprocess.run([sys.executable, rig, folder, *options], check=False).returncode:
                return 1
            shutil.rmtree(folder)
    print(f"{rounds * len(RIGS)} runs in {time.monotonic() - began:.0f} s, and no violation")
    return 0


if __name__ == "__main__":
    sys.exit(main())
