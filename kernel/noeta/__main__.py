"""The `noeta` script. It runs the command line of an installed plugin and holds no command itself."""

from __future__ import annotations

import sys

GROUP = "noeta.cli"


def main() -> int | None:
    """Print the version, or run the command line found in the entry-point group `noeta.cli`."""
    # Only this function needs the metadata of installed packages, and importing noeta must stay cheap.
    from importlib_metadata import entry_points, version

    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"noeta {version('noeta')}\n")
        return 0
    found = {entry.dist.name: entry for entry in entry_points(group=GROUP, name="main") if entry.dist}
    if not found:
        sys.stderr.write("noeta: no command line is installed. This one installs it: pip install noeta-cli\n")
        return 2
    owner = min(found)
    if len(found) > 1:
        names = ", ".join(sorted(found))
        sys.stderr.write(f"noeta: {names} each offer a command line; this runs the one of {owner}.\n")
    try:
        run = found[owner].load()
    except Exception as error:
        sys.stderr.write(f"noeta: the command line of {owner} cannot be imported: {error!r}\n")
        return 2
    status: int | None = run()
    return status


if __name__ == "__main__":
    sys.exit(main())
