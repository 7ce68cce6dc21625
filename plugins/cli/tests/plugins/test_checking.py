"""`noeta plugins check`: each fault of a plugin is told with the way out, whatever the plugin does."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from noeta_cli.plugins import template
from noeta_cli.plugins.child import run_stage
from noeta_cli.plugins.results import Result
from noeta_cli.plugins.source import read_source
from noeta_cli.plugins.static import static
from noeta_cli.plugins.template import Names

if TYPE_CHECKING:
    from conftest import Desk

LIMIT = 100.0
HEAD = """\
import os, signal, subprocess, sys, time
from typing import Any
import msgspec
from noeta import Extension, function_tool
"""
SOUND = f'''{HEAD}
@function_tool
def look(at: str, times: int) -> str:
    """Look at something."""
    return at * times


class Own(Extension):
    """A plugin."""

    name = "own"

    def tools(self, view):
        return [look]
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of a sound package."""
    template.write(Names("own"), tmp_path / "noeta-own")
    return tmp_path / "noeta-own"


def stage(path: Path, stage: str, limit: float = LIMIT, **settings: object) -> list[Result]:
    """What a stage comes to for the one plugin there."""
    source = read_source(path)
    [plugin] = source.plugins
    return run_stage(source, plugin, stage, settings, limit)


def faults(path: Path) -> list[str]:
    return [each.text for each in static(read_source(path)) if each.state == "fail"]


def test_a_package_as_it_is_made_passes_every_check(desk: Desk, package: Path) -> None:
    before = sorted(path for path in package.rglob("*"))
    run = desk.run("check", str(package))
    assert (run.status, run.err) == (0, ""), run.out
    first, *lines, last = run.out.splitlines()
    assert first == f"own in {package}"
    assert [line.split()[:2] for line in lines] == [
        ["ok", check] for check in ("metadata", "imports", "import", "class", "conformance", "crashes")
    ]
    assert "with 1 of its tools called" in lines[-1]
    assert last == "6 ok, 0 failed"
    # Nothing is left where it lies.
    assert sorted(path for path in package.rglob("*")) == before


def test_a_plugin_file_passes_with_what_applies_to_it(desk: Desk) -> None:
    file = desk.write("own.py", SOUND)
    run = desk.noeta("check", str(file), "--json")
    assert run.status == 0, run.out
    assert (run.json["path"], run.json["ok"]) == (str(file), True)
    assert [each["check"] for each in run.json["checks"]] == [
        *("metadata", "imports", "import", "class", "conformance", "crashes")
    ]


def test_one_check_that_fails_makes_the_exit_code_one_and_says_so(desk: Desk) -> None:
    file = desk.write(
        "own.py", SOUND.replace("import msgspec", "import msgspec, noeta.core.fold, no_such_module")
    )
    run = desk.noeta("check", str(file))
    assert run.status == 1
    assert "fail       imports      own.py, line 3: it imports noeta.core.fold" in run.out
    assert "fail       import       It could not be imported: ModuleNotFoundError" in run.out
    assert "not tried  conformance  It cannot be imported." in run.out
    assert run.out.splitlines()[-1] == "1 ok, 2 failed, 2 not tried"


def test_each_plugin_of_a_file_is_checked(desk: Desk) -> None:
    other = '\n\nclass Other(Extension):\n    name = "other"\n'
    file = desk.write("own.py", SOUND + other)
    run = desk.noeta("check", str(file), "--no-calls", "--json")
    failed = [(each["plugin"], each["check"]) for each in run.json["checks"] if each["state"] == "fail"]
    assert (run.status, failed) == (1, [("other", "class")])
    assert "crashes" not in [each["check"] for each in run.json["checks"]]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version = "0.1.0"\n', "", 'has no version, which logs remember: write version = "0.1.0"'),
        ('name = "noeta-own"\n', "", "has no name"),
        ('"noeta>=0.1,<0.2"', '"noeta-sqlite"', 'does not need noeta: add "noeta>=0.1,<0.2"'),
        ("noeta.extensions", "noeta.extension", "offers no plugin: write [project.entry-points."),
        ('"noeta_own:Own"', '"noeta_own"', "which is no class: write MODULE:CLASS"),
        ('"noeta_own:Own"', '"noeta_owm:Own"', "noeta_owm is not there"),
        ("own =", "mine =", "The plugin 'mine' is in the package noeta_own: name the package noeta_mine"),
        ('"noeta-own"', '"own"', "The plugin 'own' is in own: name the distribution noeta-own"),
        ("[project]", "[project", "pyproject.toml is no TOML"),
        ("[project", "[other", "has no table [project]"),
        ('dependencies = ["msgspec>=0.20", "noeta>=0.1,<0.2"]', "dependencies = 3", "does not need noeta"),
        ('version = "0.1.0"\n', "dynamic = 3\n", "has no version"),
    ],
)
def test_what_is_wrong_with_the_metadata_is_told(package: Path, old: str, new: str, said: str) -> None:
    file = package / "pyproject.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new) if new == "[other" else text.replace(old, new, 1))
    assert said in faults(package)[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from noeta.core.fold import fold", "it imports noeta.core.fold, which changes without notice"),
        ("import noeta.core", "it imports noeta.core,"),
        ("from noeta import core", "it imports noeta.core,"),
        ("def f():\n    import noeta.core.log", "line 2: it imports noeta.core.log"),
        ("from noeta.host.host import Host", "it imports noeta.host.host, which is no part of a plugin"),
        ("import noeta.testing", "in tests also from noeta.testing"),
        ("from noeta_sqlite import store", "it imports noeta_sqlite, another plugin"),
        ("def (", "it is no Python"),
    ],
)
def test_an_import_that_a_plugin_must_not_have_is_told_with_its_line(
    package: Path, line: str, said: str
) -> None:
    (package / "src" / "noeta_own" / "more.py").write_text(f"{line}\n")
    [fault] = faults(package)
    assert fault.startswith("src/noeta_own/more.py")
    assert said in fault


@pytest.mark.parametrize(
    "line",
    [
        "from noeta import Agent, Deny",
        "import noeta.toolkit.env",
        "from noeta import toolkit",
        "import noetalike.core",
        "from . import state",
        "from noeta_own.state import Ticks",
        "import json, httpx",
    ],
)
def test_an_ordinary_import_is_no_fault(package: Path, line: str) -> None:
    (package / "src" / "noeta_own" / "more.py").write_text(f"{line}\n")
    assert faults(package) == []


def test_tests_may_import_the_kit_and_the_host_and_not_the_kernel(package: Path) -> None:
    file = package / "tests" / "test_more.py"
    file.write_text("import noeta.testing\nfrom noeta.host.catalog import Catalog\n")
    assert faults(package) == []
    file.write_text("import noeta.core.fold\n")
    assert "tests/test_more.py, line 1: it imports noeta.core.fold" in faults(package)[0]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise RuntimeError('no')", "It could not be imported: RuntimeError: no (/"),
        ("sys.exit(3)", "It could not be imported: SystemExit: 3"),
        ("os._exit(0)", "The process ended with the status 0 and said nothing, at: the import"),
        ("print('bye', flush=True); os._exit(4)", "It wrote last: bye"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "The process was killed by SIGKILL"),
        ("while True: pass", "The process did not end within 3 s and was stopped, at: the import"),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass", "was stopped"),
        ("time.sleep = 0\nclass Own(Extension): name = 'o' + 'wn'", ""),
    ],
)
def test_code_that_does_not_get_through_its_import_is_told(desk: Desk, code: str, said: str) -> None:
    file = desk.write("own.py", f"{SOUND}\n{code}\n")
    [result, *rest] = stage(file, "import", 3.0)
    if not said:
        return
    assert (result.state, rest) == ("fail", [])
    assert said in result.text


def test_an_entry_point_and_the_name_of_its_class_must_agree(package: Path) -> None:
    file = package / "src" / "noeta_own" / "records.py"
    file.write_text(file.read_text().replace('NAME = "own"', 'NAME = "mine"'))
    [result] = stage(package, "import")
    assert result.text == (
        "Its class has the name 'mine', and its entry point 'own'; they must be the same. Mend noeta_own:Own."
    )


def test_an_import_that_takes_long_is_a_fault(desk: Desk) -> None:
    # Busy for as long as it takes by its own clock.
    file = desk.write(
        "own.py", f"{SOUND}\nuntil = time.perf_counter() + 2.1\nwhile time.perf_counter() < until: pass"
    )
    result = stage(file, "import")[0]
    assert result.state == "fail"
    assert "at most 2 s are fine" in result.text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('    """A plugin."""\n', "", "Own has no docstring"),
        (
            'name = "own"',
            'name = "own"\n    class Settings(msgspec.Struct):\n        most: Any = 3',
            "'most' may be anything",
        ),
        (
            'name = "own"',
            'name = "own"\n    def __init__(self, most=3): ...',
            "Own takes 'most', and settings",
        ),
    ],
)
def test_what_a_class_does_not_say_of_itself_is_told(desk: Desk, old: str, new: str, said: str) -> None:
    _, result = stage(desk.write("own.py", SOUND.replace(old, new)), "import")
    assert (result.check, result.state) == ("class", "fail")
    assert said in result.text


def test_promises_that_are_not_kept_are_told_each_in_its_sentence(desk: Desk) -> None:
    code = SOUND.replace('name = "own"', 'name = "own"\n    asked = 0').replace(
        "        return [look]",
        "        self.asked += 1\n        return [look]\n\n    def initial_state(self):\n        return {1}",
    )
    found = stage(desk.write("own.py", code), "conformance")
    texts = " ".join(each.text for each in found)
    assert {each.state for each in found} == {"fail"}
    assert "attribute 'asked': it changes while hooks run" in texts
    assert "a set does not come back from JSON as it was" in texts


def test_old_records_of_a_package_are_part_of_the_check(package: Path) -> None:
    line = '{"seq":7,"at":1.0,"extension":"own","kind":"ticked","data":{"item":3}}'
    (package / "tests" / "samples" / "0.2.jsonl").write_text(f"{line}\n")
    [result] = stage(package, "conformance")
    assert (result.state, "sample 2: kind 'ticked'" in result.text) == ("fail", True)


def test_settings_are_given_on_the_command_line(desk: Desk) -> None:
    code = SOUND.replace(
        'name = "own"',
        'name = "own"\n    class Settings(msgspec.Struct):\n        most: int\n        place: str',
    )
    file = desk.write("own.py", code)
    run = desk.noeta("check", str(file), "--no-calls", "--json")
    assert (run.status, "setting 'most'" in run.out) == (1, True)
    run = desk.noeta("check", str(file), "--no-calls", "--json", "--set", "most=3", "--set", "place=here")
    assert run.status == 0, run.out


def test_a_plugin_that_a_crash_changes_is_told_with_the_effect(desk: Desk) -> None:
    code = SOUND.replace(
        "    def tools",
        """    def initial_state(self):
        return 0

    def reduce(self, state, kind, data):
        return state + 1

    async def on_start(self, view):
        view.record("own", "started", None)

    def tools""",
    )
    found = stage(desk.write("own.py", code), "crashes")
    assert [each.state for each in found] == ["fail", "fail"]
    assert found[0].text.startswith("a task without calls: Dying right ")
    assert found[1].text.startswith("a task that calls 'look': Dying right ")


def test_what_cannot_be_compared_or_called_is_not_tried_and_no_fault(desk: Desk) -> None:
    code = SOUND.replace("    return at * times", "    return str(time.perf_counter_ns())").replace(
        "[look]", "[look, Odd()]"
    )
    code += """

class Odd:
    name = "odd"
    description = "It wants what cannot be made up."
    input_schema = {
        "type": "object",
        "properties": {"at": {"type": "string", "pattern": "^[0-9]{4}$"}},
        "required": ["at"],
        "additionalProperties": False,
    }
    read_only = True
    clearable = True

    async def run(self, input, ctx): ...
"""
    found = stage(desk.write("own.py", code), "crashes")
    assert [each.state for each in found] == ["not tried", "not tried", "ok"]
    assert "'look': two runs without a crash differ" in found[0].text
    assert "'odd': no input can be made up for it" in found[1].text
    assert "with 0 of its tools called" in found[2].text


def test_a_hook_that_never_returns_is_stopped_and_named(desk: Desk) -> None:
    code = SOUND.replace("        return [look]", "        while True: pass")
    [result] = stage(desk.write("own.py", code), "crashes", 5.0)
    assert (result.state, "did not end within 5 s and was stopped" in result.text) == ("fail", True)


def test_what_a_plugin_starts_ends_with_its_check(desk: Desk, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    code = f"""{SOUND}
import fcntl
held = open({str(lock)!r}, "w")
fcntl.flock(held, fcntl.LOCK_EX)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[held.fileno()])
"""
    began = time.monotonic()
    assert stage(desk.write("own.py", code), "import")[0].state == "ok"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    assert time.monotonic() - began < 50


def test_an_interrupt_ends_the_check_and_what_it_runs(desk: Desk, tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    code = f"{SOUND}\npipe = open({str(told)!r}, 'w'); pipe.write('.'); pipe.flush()\nwhile True: pass"
    process = desk.process("check", str(desk.write("own.py", code)))
    with told.open() as pipe:
        assert pipe.read(1) == "."
        process.send_signal(signal.SIGINT)
        # The end of the pipe: nobody holds it any more.
        assert pipe.read() == ""
    _, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (130, False)


def test_a_check_leaves_the_folder_of_the_person_alone(desk: Desk) -> None:
    code = f"{SOUND}\nopen(os.path.join(os.environ['NOETA_HOME'], 'x'), 'w').close(); open('y', 'w').close()"
    assert stage(desk.write("own.py", code), "import")[0].state == "ok"
    assert [*desk.home.iterdir()] == []
    assert not (desk.project / "y").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'PATH'"),
        (["nowhere"], "there is no nowhere; name a plugin file, or the folder of a package"),
        (["empty"], "has no pyproject.toml, so it is no package"),
        (["text.txt"], "text.txt is no plugin file"),
        (["own.py", "--set", "most"], "--set 'most' sets nothing; write KEY=VALUE"),
        (["own.py", "--set", "=3"], "sets nothing"),
        (["own.py", "--limit", "0"], "'--limit'"),
        (["own.py", "--limit", "soon"], "'--limit'"),
        (["own.py", "other.py"], "unexpected extra argument"),
    ],
)
def test_a_wrong_command_is_one_sentence(desk: Desk, arguments: list[str], said: str) -> None:
    desk.write("own.py", SOUND)
    desk.write("text.txt", "")
    (desk.project / "empty").mkdir()
    run = desk.noeta("check", *arguments)
    assert (run.status, run.out) == (2, "")
    first, *rest = run.err.splitlines()
    assert said in first
    assert all(line.startswith("Try 'noeta plugins check --help'") for line in rest)


@pytest.mark.parametrize("text", ["x = 1\n", "def (\n", "\x00", ""])
def test_a_file_without_a_plugin_is_a_fault(desk: Desk, text: str) -> None:
    run = desk.noeta("check", str(desk.write("own.py", text)))
    assert run.status == 1
    assert run.out.startswith("No plugin in ")
    assert "Traceback" not in run.err
