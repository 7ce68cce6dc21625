"""Where a person's settings and data are, for plugins that keep files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def config_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the person's own settings and plugin files.

    ``NOETA_HOME`` if that is set, else ``noeta`` in ``XDG_CONFIG_HOME``, else ``~/.config/noeta``. Raises
    `ValueError` for a ``NOETA_HOME`` that is not absolute.
    """
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def data_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the person's data: the default store, long results, what is trusted.

    ``NOETA_HOME`` if that is set, else ``noeta`` in ``XDG_DATA_HOME``, else ``~/.local/share/noeta``. Raises
    as `config_folder` does.
    """
    return _folder(environ, "XDG_DATA_HOME", ".local/share")


def _folder(environ: Mapping[str, str], variable: str, default: str) -> Path:
    home = Path(environ.get("HOME") or Path.home())
    if moved := environ.get("NOETA_HOME"):
        if moved == "~" or moved.startswith("~/"):
            return home / moved[2:]
        if not Path(moved).is_absolute():
            # It would mean another folder, and another trust file, wherever one stands.
            raise ValueError(f"NOETA_HOME is {moved!r}; it has to be an absolute path, such as /srv/noeta")
        return Path(moved)
    given = Path(environ.get(variable) or "")
    return (given if given.is_absolute() else home / default) / "noeta"
