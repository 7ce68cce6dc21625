"""Writes the template of `noeta plugins new` anew from the package that it is made of, contrib/checklist.

    python plugins/cli/tests/plugins/write_template.py

Run it after a change of contrib/checklist. A test compares the two.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from noeta_cli.plugins.template import FOLDER, SUFFIX, TEMPLATE

PACKAGE = Path(__file__).resolve().parents[4] / "contrib" / "checklist"
RULES = (
    (r"noeta_checklist", "{{package}}"),
    (r"noeta-checklist", "{{distribution}}"),
    (r"\bChecklist(?=Settings\b|\b)", "{{class}}"),
    # In quotes of a program, of a text in it, and of a record; as the name of the entry point.
    (r"""(?<=["'])checklist(?=["':])""", "{{name}}"),
    (r"^checklist(?= = )", "{{name}}"),
)
"""Where the name of the package stands for the name of a plugin. The word for a list stays."""


def template() -> Iterator[tuple[Path, str]]:
    """Each file of the template, and its text."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in sorted(filter(None, listed.stdout.split("\0"))):
        text = (PACKAGE / name).read_text()
        for pattern, placeholder in RULES:
            text = re.sub(pattern, placeholder, text, flags=re.MULTILINE)
        path = Path(*(FOLDER if part == "noeta_checklist" else part for part in Path(name).parts))
        yield path.with_name(path.name + SUFFIX), text


def main() -> None:
    """Write them."""
    shutil.rmtree(TEMPLATE, ignore_errors=True)
    for path, text in template():
        (TEMPLATE / path).parent.mkdir(parents=True, exist_ok=True)
        (TEMPLATE / path).write_text(text)


if __name__ == "__main__":
    main()
