"""The places a host reads settings and plugin files from, and where it keeps what it has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from noeta.toolkit.folders import config_folder, data_folder
from noeta.toolkit.trust import TRUST_FILE

MANAGED = Path("/etc/noeta/noeta.toml")
SETTINGS_FILE = "noeta.toml"


class Places(Struct, frozen=True, kw_only=True):
    """The managed settings, the person's folders for settings and data, and the project's folder."""

    managed: Path
    config: Path
    data: Path
    project: Path

    @property
    def user_file(self) -> Path:
        """The person's own settings."""
        return self.config / SETTINGS_FILE

    @property
    def project_file(self) -> Path:
        """The settings of the project."""
        return self.project / SETTINGS_FILE

    @property
    def local_file(self) -> Path:
        """The settings of this checkout of the project."""
        return self.project / ".noeta" / "local.toml"

    @property
    def user_plugins(self) -> Path:
        """The folder of the person's own plugin files."""
        return self.config / "plugins"

    @property
    def project_plugins(self) -> Path:
        """The folder of the project's plugin files."""
        return self.project / ".noeta" / "plugins"

    @property
    def trust_file(self) -> Path:
        """What the person trusts."""
        return self.data / TRUST_FILE

    @property
    def store(self) -> str:
        """The store, unless settings name another one."""
        return f"sqlite:{self.data / 'noeta.db'}"

    @property
    def spill(self) -> Path:
        """Where long results are saved."""
        return self.data / "spill"


def find_places(environ: Mapping[str, str], cwd: str | Path, *, managed: str | Path = MANAGED) -> Places:
    """The places for a process with this environment that stands in `cwd`.

    The project is the nearest folder, from `cwd` upward, that has a ``noeta.toml`` or a ``.git``, else `cwd`
    itself. Raises `ValueError` for a ``NOETA_HOME`` that is not absolute.
    """
    here = Path(cwd).resolve()
    marked = (folder for folder in (here, *here.parents) if _is_project(folder))
    return Places(
        managed=Path(managed),
        config=config_folder(environ),
        data=data_folder(environ),
        project=next(marked, here),
    )


def _is_project(folder: Path) -> bool:
    try:
        return (folder / SETTINGS_FILE).is_file() or (folder / ".git").exists()
    except OSError:
        return False
