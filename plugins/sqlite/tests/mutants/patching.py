"""The SQLite store with one guard taken out: a copy of its package, with one text changed."""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guards import MUTANTS, Mutant

import noeta_sqlite
from noeta.toolkit.store import Store

SOURCES = Path(noeta_sqlite.__file__).parent
NAME = "patched_sqlite"


@contextmanager
def patched(mutant: Mutant | None = None) -> Iterator[Callable[..., Store]]:
    """Give the class of the store in the patched package."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / NAME
        shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("__pycache__"))
        for path in package.glob("*.py"):
            source = path.read_text()
            if mutant is not None and mutant.file == path.name:
                assert source.count(mutant.old) == 1, (
                    f"the text to change stands {source.count(mutant.old)} times there"
                )
                source = source.replace(mutant.old, mutant.new)
            path.write_text(source.replace("noeta_sqlite", NAME))
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            store: Any = importlib.import_module(NAME).SqliteStore
            yield store
        finally:
            sys.path.remove(folder)
            for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
                del sys.modules[name]


def named(name: str) -> Mutant:
    """The mutant of that name."""
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
    return mutant
