"""The page about the kernel names its modules in the order in which they may be read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "kernel.md").read_text()


def test_the_reading_order_is_the_import_order_and_misses_no_module() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["id"] == "core"]
    written = [name for name in reversed(layers) if not name.startswith("(")]
    named = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert named == written
    assert {path.stem for path in (ROOT / "kernel" / "noeta" / "core").glob("*.py")} == {*written, "__init__"}
