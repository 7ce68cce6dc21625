"""Nothing that belongs to one machine is kept, and no test is left out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTING = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
TRACKED = [
    path
    for name in subprocess.run(LISTING, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\0"
    )
    if name and (path := ROOT / name).is_file()
]
TESTS = [path for path in TRACKED if path.suffix == ".py" and "tests" in path.relative_to(ROOT).parts]

HOSTS = r"\b(?:pypi|pythonhosted|npmjs|yarnpkg|deb\.debian|crates)\.(?:org|com|io)\b"
# A checkout in `/noeta` must not take `kernel/noeta/core` for itself, and a home in `/` is no home.
OWN = [path for path in (Path.home(), ROOT) if path != path.parent]
OWN_FOLDERS = [rf"(?<![\w.)}}*]){re.escape(str(path))}/" for path in OWN]
BOUND = re.compile("|".join([HOSTS, r"/\.pyenv/versions/", *OWN_FOLDERS]))

SKIPS = re.compile(r"\b(?:mark\.skip\b|pytest\.skip\(|importorskip|unittest\.skip|xfail)")
SKIPIF = re.compile(r"\bmark\.skipif\((?!sys\.platform)")


def bound_lines(text: str) -> list[str]:
    """Return the lines that name a package registry's host or a folder of this machine."""
    return [line for line in text.splitlines() if BOUND.search(line)]


def left_out(text: str) -> list[str]:
    """Return the lines that leave a test out for another reason than the operating system."""
    return [line for line in text.splitlines() if SKIPS.search(line) or SKIPIF.search(line)]


@pytest.mark.parametrize(
    "line",
    [
        "registry = https://py" + "pi.org/simple",
        '"resol' + 'ved": "https://registry.npm' + 'js.org/x"',
        f"cd {ROOT}/docs",
        f"{Path.home()}/notes",
        "/opt/.pyenv" + "/versions/3.11.7/bin/python",
    ],
)
def test_a_line_bound_to_a_registry_or_a_machine_is_found(line: str) -> None:
    assert bound_lines(f"one\n{line}\n") == [line]


@pytest.mark.parametrize("line", ["pip install noeta-cli", "https://www.apache.org/licenses/", "cd docs"])
def test_an_ordinary_line_is_bound_to_nothing(line: str) -> None:
    assert bound_lines(line) == []


def test_no_file_names_a_registry_or_a_folder_of_this_machine() -> None:
    assert TRACKED
    found = {path: bound_lines(path.read_text(errors="replace")) for path in TRACKED}
    assert {str(path): lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "@pytest.mark." + "skip",
        "@pytest.mark." + "skip(reason='later')",
        "    pytest." + "skip('later')",
        "pytest.import" + "orskip('rich')",
        "@pytest.mark.x" + "fail",
        "@pytest.mark." + "skipif(slow, reason='slow')",
    ],
)
def test_a_test_that_is_left_out_is_found(line: str) -> None:
    assert left_out(line) == [line]


def test_a_test_may_need_an_operating_system() -> None:
    assert left_out("@pytest.mark.skipif(sys.platform == 'darwin', reason='no /proc')") == []


def test_no_test_is_left_out() -> None:
    # This file has to name what it looks for.
    found = {path: left_out(path.read_text()) for path in TESTS if path != Path(__file__)}
    assert {str(path): lines for path, lines in found.items() if lines} == {}


def test_no_test_folder_is_a_package() -> None:
    assert [path for path in TESTS if path.name == "__init__.py"] == []


@pytest.mark.parametrize("name", ["uv.lock", ".nox/x", ".tools/x", ".venv/x", "dist/x", "a/__pycache__/x"])
def test_what_tools_leave_behind_is_ignored(name: str) -> None:
    assert subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT, check=False).returncode == 0
