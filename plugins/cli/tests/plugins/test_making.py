"""`noeta plugins new`: what it makes is a plugin whose own tests pass, and it makes all of it or nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import write_template
from hypothesis import given, settings
from hypothesis import strategies as st

from noeta_cli.plugins import template
from noeta_cli.plugins.template import Names

if TYPE_CHECKING:
    from conftest import Desk

CHECKLIST = write_template.PACKAGE
RIGHTS = 0o777


def files(folder: Path) -> dict[str, str]:
    kept = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(folder)): path.read_text() for path in kept}


def test_the_template_is_the_package_of_the_tutorial_without_its_name() -> None:
    assert {str(path): text for path, text in write_template.template()} == files(template.TEMPLATE), (
        "Run: python plugins/cli/tests/plugins/write_template.py"
    )


def test_made_with_its_old_name_it_is_that_package_again(tmp_path: Path) -> None:
    template.write(Names("checklist"), tmp_path / "noeta-checklist")
    tracked = {str(path).removesuffix(".txt") for path, _ in write_template.template()}
    tracked = {name.replace(template.FOLDER, "noeta_checklist") for name in tracked}
    made = files(tmp_path / "noeta-checklist")
    assert made == {name: (CHECKLIST / name).read_text() for name in tracked}


def test_the_tests_of_a_plugin_that_is_made_pass(desk: Desk, tmp_path: Path) -> None:
    run = desk.noeta("new", "look-twice", "--dir", str(tmp_path))
    made = tmp_path / "noeta-look-twice"
    assert (run.status, run.out) == (0, f"{made}\n")
    assert f"noeta plugins check {made}" in run.err
    assert not [text for text in files(made).values() if "{{" in text]
    # As an installer lays it out, without the minutes that one takes.
    project = tomllib.loads((made / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["noeta.extensions"]
    assert points == {"look-twice": "noeta_look_twice:LookTwice"}
    desk.write(
        desk.site / "noeta_look_twice-0.1.0.dist-info" / "METADATA",
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n",
    )
    desk.write(
        desk.site / "noeta_look_twice-0.1.0.dist-info" / "entry_points.txt",
        "[noeta.extensions]\nlook-twice = noeta_look_twice:LookTwice\n",
    )
    path = os.pathsep.join([str(made / "src"), str(desk.site), *sys.path])
    tests = subprocess.run(
        # One event loop is enough: on the other one the package that it is made of is tested.
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "-k", "not trio", "tests"],
        cwd=made,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout
    assert " passed" in tests.stdout


def test_a_plugin_is_made_here_unless_another_folder_is_named(desk: Desk) -> None:
    assert desk.noeta("new", "mine").out == "noeta-mine\n"
    made = desk.project / "noeta-mine"
    assert (made / "src" / "noeta_mine" / "py.typed").read_text() == ""
    mask = os.umask(0)
    os.umask(mask)
    assert made.stat().st_mode & RIGHTS == RIGHTS & ~mask


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "'' is no name of a plugin"),
        ("MyPlugin", "such as my-plugin."),
        ("my_plugin", "such as my-plugin."),
        ("my plugin", "such as my-plugin."),
        ("3d", "is no name of a plugin"),
        ("-x", "No such option"),
        ("x-", "such as x."),
        ("a.b", "such as a-b."),
        ("../x", "such as x."),
        ("über", "is no name of a plugin"),
        ("x\n", "such as x."),
        ("a" * 51, "the name has 51 characters, and 50 are the most"),
        ("core", "the name 'core' is the kernel's"),
        ("none", "its class would be None"),
        ("exception", "its class would be Exception"),
        ("extension", "its class would be Extension"),
        ("tick", "its class would be Tick"),
        ("pebble", "there is a plugin 'pebble' here already, of noeta-stone"),
        ("own", "there is a plugin 'own' here already, of"),
        ("cli", "there is a module noeta_cli here already"),
        ("stone", "there is a package noeta-stone here already"),
    ],
)
def test_a_name_that_cannot_be_had_is_one_sentence_and_makes_nothing(
    desk: Desk, name: str, said: str
) -> None:
    desk.plugin("own")
    desk.install("noeta-stone", "pebble", "")
    before = sorted(desk.project.iterdir())
    run = desk.noeta("new", name)
    assert (run.status, run.out) == (2, "")
    assert said in run.err
    assert sorted(desk.project.iterdir()) == before


def test_what_is_there_already_is_left_alone(desk: Desk) -> None:
    kept = desk.write("noeta-mine/kept", "mine")
    run = desk.noeta("new", "mine")
    assert (run.status, "noeta-mine is there already" in run.err) == (2, True)
    assert files(desk.project) == {"noeta-mine/kept": "mine"}
    assert kept.read_text() == "mine"
    (desk.project / "noeta-gone").symlink_to("nowhere")
    assert "is there already" in desk.noeta("new", "gone").err


def test_a_folder_that_is_not_there_is_not_made(desk: Desk) -> None:
    run = desk.noeta("new", "mine", "--dir", "nowhere")
    assert (run.status, "there is no folder nowhere" in run.err) == (2, True)
    assert not (desk.project / "nowhere").exists()


def test_a_plugin_that_cannot_be_written_leaves_nothing_behind(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = Path.write_text, list[Path]()

    def fails_later(path: Path, text: str, encoding: str | None = None) -> int:
        written.append(path)
        if len(written) == 5:
            raise OSError(28, "No space left on device", str(path))
        return write(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", fails_later)
    run = desk.noeta("new", "mine")
    assert (run.status, "No space left on device" in run.err) == (2, True)
    assert [path.name for path in desk.project.iterdir()] == [".git"]


PARTS = st.lists(st.text("abcz09", min_size=1, max_size=6), min_size=1, max_size=4)


@settings(deadline=None)
@given(PARTS.map("-".join))
def test_a_name_that_is_taken_gives_modules_that_python_can_read(name: str) -> None:
    names = Names(name)
    if names.fault():
        return
    for path, text in template.filled(names):
        if path.suffix == ".py":
            compile(text, str(path), "exec")
    assert names.package.isidentifier()
    assert names.cls.isidentifier()
