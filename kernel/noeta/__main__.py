"""The `noeta` script. It runs the command line of an installed plugin and holds no command itself."""

from __future__ import annotations

import sys
from typing import Any

GROUP = "noeta.cli"


def main() -> int | None:
    """Print the version, or run the command line found in the entry-point group `noeta.cli`."""
    # Only this function needs the metadata of installed packages, and importing noeta must stay cheap.
    from importlib_metadata import entry_points, version

    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"noeta {version('noeta')}\n")
        return 0
    entries = [entry for entry in entry_points(group=GROUP, name="main") if entry.dist]
    if not entries:
        sys.stderr.write("noeta: no command line is installed. This one installs it: pip install noeta-cli\n")
        return 2
    if len(entries) == 1:
        return _run(entries[0])
    found = {entry.dist.name: entry for entry in entries}
    owner = min(found)
    if len(found) > 1:
        names = ", ".join(sorted(found))
        sys.stderr.write(f"noeta: {names} each offer a command line; this runs the one of {owner}.\n")
    return _run(found[owner])


def _run(entry: Any) -> int | None:
    try:
        run = entry.load()
    except Exception as error:
        # To read a name takes longer than all the rest, so only who needs it does.
        owner = entry.dist.name
        sys.stderr.write(f"noeta: the command line of {owner} cannot be imported: {error!r}\n")
        return 2
    status: int | None = run()
    return status


if __name__ == "__main__":
    sys.exit(main())
