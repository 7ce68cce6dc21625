"""`noeta plugins trust`: nothing of a project counts before a person, or a script of theirs, says so."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Desk


def states(desk: Desk, *arguments: str) -> dict[str, str]:
    """The state of each file of the project, by its path there."""
    run = desk.noeta("trust", "--json", *arguments)
    return {str(Path(each["path"]).relative_to(desk.project)): each["state"] for each in run.json}


@pytest.fixture
def file(desk: Desk) -> Path:
    """A plugin file of the project, which has settings too."""
    desk.write("noeta.toml", 'model = "test:model"\n')
    return desk.plugin("theirs", own=False)


def test_without_a_terminal_nothing_is_trusted_unless_a_script_says_yes(desk: Desk, file: Path) -> None:
    run = desk.run("trust")
    assert run.status == 2
    assert "nothing was changed" in run.err
    assert "--yes" in run.err
    shown = [line.split() for line in run.out.splitlines()]
    assert [(line[0], line[-1]) for line in shown] == [
        ("new", str(file)),
        ("new", str(desk.project / "noeta.toml")),
    ]
    assert "plugin file" in run.out
    assert desk.noeta("show", "theirs").out.count("untrusted") == 1
    run = desk.run("trust", "--yes")
    assert (run.status, "trusted: 2 files" in run.err) == (0, True)
    assert set(states(desk).values()) == {"trusted"}
    assert "untrusted" not in desk.noeta("show", "theirs").out


def test_the_hash_that_is_shown_is_that_of_the_bytes_that_are_trusted(desk: Desk, file: Path) -> None:
    import hashlib

    [shown] = desk.noeta("trust", "--json", str(file)).json
    assert shown["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert shown["kind"] == "plugin file"
    assert shown["sha256"][:12] in desk.noeta("trust", "--yes").out


@pytest.mark.parametrize(("says", "status", "state"), [("y", 0, "trusted"), ("n", 1, "new"), ("", 1, "new")])
def test_at_a_terminal_the_person_is_asked(
    desk: Desk, file: Path, says: str, status: int, state: str
) -> None:
    run = desk.at_a_terminal("trust", says=says)
    assert run.status == status
    assert "Trust 2 files? [y/N]" in run.err
    assert str(file) in run.out
    assert set(states(desk).values()) == {state}


def test_a_file_that_changed_is_shown_as_changed_and_trusted_anew(desk: Desk, file: Path) -> None:
    desk.noeta("trust", "--yes")
    file.write_text(file.read_text() + "# more\n")
    assert states(desk) == {".noeta/plugins/theirs.py": "changed", "noeta.toml": "trusted"}
    run = desk.noeta("trust", "--yes")
    assert "trusted: 1 file" in run.err
    assert set(states(desk).values()) == {"trusted"}
    run = desk.noeta("trust")
    assert (run.status, run.err) == (0, "")


def test_a_path_names_one_file_or_all_of_a_folder(desk: Desk, file: Path) -> None:
    desk.noeta("trust", "--yes", ".noeta")
    assert states(desk) == {".noeta/plugins/theirs.py": "trusted", "noeta.toml": "new"}
    desk.noeta("trust", "--yes", "noeta.toml")
    assert set(states(desk).values()) == {"trusted"}


def test_trust_is_withdrawn_from_all_of_the_project_or_from_what_is_named(desk: Desk, file: Path) -> None:
    desk.noeta("trust", "--yes")
    run = desk.noeta("trust", "--withdraw")
    assert (run.status, set(states(desk).values())) == (2, {"trusted"})
    assert desk.noeta("trust", "--withdraw", "--yes", str(file)).status == 0
    assert states(desk) == {".noeta/plugins/theirs.py": "new", "noeta.toml": "trusted"}
    assert desk.at_a_terminal("trust", "--withdraw", says="y").status == 0
    assert set(states(desk).values()) == {"new"}
    assert desk.noeta("trust", "--withdraw", "--yes").out == f"Nothing in {desk.project} is trusted.\n"


def test_trust_is_withdrawn_from_a_file_that_is_gone(desk: Desk, file: Path) -> None:
    desk.noeta("trust", "--yes")
    before = file.read_text()
    file.unlink()
    assert desk.noeta("trust", "--withdraw", "--yes", str(file)).status == 0
    file.write_text(before)
    assert states(desk)[".noeta/plugins/theirs.py"] == "new"


def test_withdrawing_leaves_other_projects_alone(desk: Desk, file: Path, tmp_path: Path) -> None:
    desk.noeta("trust", "--yes")
    other = desk.write(tmp_path / "project-of-another" / "noeta.toml", "")
    from noeta.host.places import find_places
    from noeta.host.trust import Trust, trust

    places = find_places({"NOETA_HOME": str(desk.home)}, other.parent)
    trust(places, Trust(places).project_files())
    desk.noeta("trust", "--withdraw", "--yes")
    assert [each.counts for each in Trust(places).project_files()] == [True]


def test_a_project_that_brings_nothing_needs_no_trust(desk: Desk) -> None:
    run = desk.noeta("trust")
    assert (run.status, run.out, run.err) == (0, f"Nothing in {desk.project} needs trust.\n", "")


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_trusted(desk: Desk, file: Path) -> None:
    desk.project.joinpath("noeta.toml").write_bytes(b"#" * (5 << 20))
    run = desk.noeta("trust", "--yes")
    assert (run.status, "trusted: 1 file" in run.err) == (0, True)
    assert "noeta.toml cannot be trusted: it cannot be read: it is larger than 4 MiB" in run.err
    assert desk.noeta("trust", "--yes").status == 1


def test_a_damaged_list_of_trust_is_neither_used_nor_written_over(desk: Desk, file: Path) -> None:
    list_ = desk.write(desk.home / "trust.json", "{")
    run = desk.noeta("trust", "--yes")
    assert (run.status, run.out) == (2, "")
    assert "is damaged" in run.err
    assert list_.read_text() == "{"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.py"], "there is no file nothing.py"),
        (["noeta.tml"], "(did you mean 'noeta.toml'?)"),
        (["README.md"], "README.md is nothing that needs trust"),
        (["--withdraw", "noeta.toml"], "noeta.toml is not trusted, so there is nothing to withdraw"),
        (["--yse"], "No such option"),
        (["noeta.toml", "gone\x1b[2J.py"], "there is no file gone.py"),
    ],
)
def test_a_wrong_command_is_one_sentence_and_changes_nothing(
    desk: Desk, file: Path, arguments: list[str], said: str
) -> None:
    desk.write("README.md", "")
    run = desk.noeta("trust", "--yes", *arguments)
    assert (run.status, run.out) == (2, "")
    assert said in run.err.splitlines()[0]
    assert "\x1b" not in run.err
    assert set(states(desk).values()) == {"new"}
