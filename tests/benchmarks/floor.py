"""The floor: a program that does the same work without a framework. `NOETA_FLOOR` names it, or its folder.

It says what the machine and the libraries allow, so what noeta takes is told as a multiple of it. Without it
those rows are left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def floor(case: str, **given: Any) -> dict[str, Any] | None:
    """What a case of the floor gives, in a process of its own; None without a floor."""
    named = os.environ.get("NOETA_FLOOR")
    if not named:
        return None
    program = Path(named) / "bench_floor.py" if Path(named).is_dir() else Path(named)
    command = [sys.executable, str(program), "one", case, json.dumps(given)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found
