"""The template of a plugin's package: files with placeholders, in the folder `template`."""

from __future__ import annotations

import builtins
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

TEMPLATE = Path(__file__).parent.parent / "template"
SUFFIX = ".txt"
"""Ends the name of every file of the template, so that none is taken for a module, or for a test to run."""
FOLDER = "PACKAGE"
"""The folder in the template that is named like the package."""
FORM = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST = 50
KERNEL = "core"
_WORD = re.compile(r"[A-Za-z_]\w*")


class Names:
    """The one name of a plugin in its four forms."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.distribution: str = f"noeta-{name}"
        self.package: str = f"noeta_{name.replace('-', '_')}"
        self.cls: str = "".join(part.capitalize() for part in name.split("-"))

    @cached_property
    def replacements(self) -> dict[str, str]:
        """What stands for each placeholder."""
        return {
            "{{name}}": self.name,
            "{{distribution}}": self.distribution,
            "{{package}}": self.package,
            "{{class}}": self.cls,
        }

    def fault(self) -> str:
        """Why this can be no name of a plugin, as a sentence; the empty text when it can."""
        if not FORM.fullmatch(self.name):
            meant = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", self.name).lower())
            hint = (
                f", such as {meant}" if FORM.fullmatch(meant := meant.strip("-")) else ", such as my-plugin"
            )
            return f"{self.name!r} is no name of a plugin; use small letters, digits and hyphens{hint}."
        if len(self.name) > LONGEST:
            return (
                f"the name has {len(self.name)} characters, and {LONGEST} are the most; choose a shorter one."
            )
        if self.name == KERNEL:
            return f"the name {self.name!r} is the kernel's; choose another one."
        if hasattr(builtins, self.cls) or self.cls in words():
            why = f"its class would be {self.cls}, and that name has another meaning in its modules"
            return f"{self.name!r} cannot be made: {why}; choose another name, such as {self.name}-plugin."
        return ""

    def filled(self, text: str) -> str:
        """`text` with the names in the place of the placeholders."""
        for placeholder, name in self.replacements.items():
            text = text.replace(placeholder, name)
        return text


def files() -> Iterator[tuple[Path, str]]:
    """Every file of the template: its path in the package to be made, and its text."""
    for path in sorted(TEMPLATE.rglob(f"*{SUFFIX}")):
        yield path.relative_to(TEMPLATE).with_suffix(""), path.read_text(encoding="utf-8")


def words() -> set[str]:
    """The names that the modules of the template use themselves."""
    return {word for path, text in files() if path.suffix == ".py" for word in _WORD.findall(text)}


def filled(names: Names) -> Iterator[tuple[Path, str]]:
    """Every file of the package: its path and its text."""
    for path, text in files():
        parts = [names.package if part == FOLDER else part for part in path.parts]
        yield Path(*parts), names.filled(text)


def write(names: Names, target: Path) -> None:
    """Make the package in the new folder `target`, whole or not at all. Raises `OSError`."""
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for path, text in filled(names):
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            (made / path).write_text(text, encoding="utf-8")
        mask = os.umask(0)
        os.umask(mask)
        made.chmod(0o777 & ~mask)
        # Refused when something stands there by now, but for an empty folder, which is as good as none.
        made.rename(target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
