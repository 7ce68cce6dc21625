"""`noeta doctor` finds what is wrong and says what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noeta: Any) -> Path:
    """A person who has nothing yet."""
    home = tmp_path / "person"
    home.mkdir()
    monkeypatch.setenv("NOETA_HOME", str(home))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return home


def found(done: Any) -> dict[str, list[dict[str, str]]]:
    by: dict[str, list[dict[str, str]]] = {}
    for line in done.out.splitlines():
        finding = json.loads(line)
        by.setdefault(finding.pop("check"), []).append(finding)
    return by


def statuses(findings: list[dict[str, str]]) -> list[str]:
    return [finding["status"] for finding in findings]


def test_every_line_has_a_check_a_status_and_a_way_out(noeta: Any, home: Path) -> None:
    told = found(noeta("doctor", "--json", store=""))
    assert [*told] == [
        *("python", "settings", "versions", "trust", "plugins"),
        *("agent", "model", "environment", "store", "disk"),
    ]
    for findings in told.values():
        assert all(bool(each["way_out"]) == (each["status"] != "ok") for each in findings)
    lines = noeta("doctor", store="").out.splitlines()
    assert lines[0].startswith("ok    python       3.")
    assert "is not there yet; the first task makes it" in told["store"][0]["text"]


def test_a_healthy_store_is_counted_and_a_damaged_one_fails(noeta: Any, home: Path, tmp_path: Path) -> None:
    assert found(noeta("doctor", "--json"))["store"][0]["text"].endswith(" tasks")
    (tmp_path / "bad.db").write_bytes(b"nothing of a database" * 100)
    done = noeta("doctor", "--json", store=f"sqlite:{tmp_path / 'bad.db'}")
    [finding] = found(done)["store"]
    assert finding["status"] == "fail"
    assert "is no SQLite database" in finding["way_out"]
    assert done.code == 1


def test_settings_that_cannot_be_used_fail_and_the_rest_is_looked_at(noeta: Any, home: Path) -> None:
    (home / "noeta.toml").write_text("modle = 3\n")
    done = noeta("doctor", "--json", store="")
    told = found(done)
    assert done.code == 1
    assert statuses(told["settings"]) == ["fail"]
    assert "did you mean 'model'?" in told["settings"][0]["text"]
    assert told["disk"][0]["status"] == "ok"


def test_what_a_project_brings_untrusted_is_a_warning(noeta: Any, home: Path, tmp_path: Path) -> None:
    (tmp_path / "noeta.toml").write_text('model = "x:y"\n')
    plugins = tmp_path / ".noeta" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "theirs.py").write_text("raise SystemExit(3)\n")
    done = noeta("doctor", "--json", store="")
    told = found(done)
    assert statuses(told["settings"]) == ["ok", "warn"]
    assert statuses(told["plugins"]) == ["warn", "ok"]
    assert "noeta plugins trust" in told["settings"][1]["way_out"]
    assert "noeta plugins trust" in told["plugins"][0]["way_out"]
    # They stand there once, and not on standard error too.
    assert done.err == ""


def test_a_plugin_that_cannot_be_imported_fails(noeta: Any, home: Path) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "broken.py").write_text(
        "from noeta import Extension\nclass Broken(Extension):\n    name = 'broken'\nimport nothing_like_it\n"
    )
    done = noeta("doctor", "--json", store="")
    [finding] = [each for each in found(done)["plugins"] if each["status"] == "fail"]
    assert "nothing_like_it" in finding["text"]
    assert "broken.py" in finding["way_out"]
    assert done.code == 1


@pytest.mark.parametrize(
    ("settings", "check", "says"),
    [
        ('model = "nobody:big"\n', "model", "no installed provider has this name"),
        ('agent = "codre"\n', "agent", "did you mean 'coder'?"),
        ('env = "moon"\n', "environment", "moon is not installed"),
    ],
)
def test_what_settings_name_and_is_not_there_fails(
    noeta: Any, home: Path, settings: str, check: str, says: str
) -> None:
    (home / "noeta.toml").write_text(settings)
    done = noeta("doctor", "--json", store="")
    [finding] = found(done)[check]
    assert finding["status"] == "fail"
    assert says in finding["text"] + finding["way_out"]
    assert done.code == 1


def test_the_model_is_named_with_the_reason_and_asked_whether_it_is_there(
    noeta: Any, home: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    info = tmp_path / "site" / "noeta_thinks-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noeta-thinks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[noeta.providers]\nthinks = thinks_m:open_it\n")
    (tmp_path / "site" / "thinks_m.py").write_text(
        "from noeta.testing import ScriptedProvider\n"
        "from noeta.toolkit.provider import ProviderError\n"
        "class Thinks(ScriptedProvider):\n"
        "    def check(self, model):\n"
        "        if model == 'gone':\n"
        "            raise ProviderError('invalid', f'the file of {model} is not there')\n"
        "        if model == 'odd':\n"
        "            raise KeyError('odd')\n"
        "def open_it(settings):\n    return Thinks([])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for model, status, way_out in (("here", "ok", ""), ("gone", "fail", "the file of gone is not there")):
        (home / "noeta.toml").write_text(f'model = "thinks:{model}"\n')
        [finding] = found(noeta("doctor", "--json", store=""))["model"]
        assert finding["status"] == status
        assert finding["text"].startswith(f"The model is thinks:{model}, since ")
        assert way_out in finding["way_out"]

    (home / "noeta.toml").write_text('model = "thinks:odd"\n')
    told = found(noeta("doctor", "--json", store=""))
    assert statuses(told["doctor"]) == ["fail"]
    assert told["doctor"][0]["text"] == "KeyError: 'odd'"
    assert "disk" in told


def test_a_trust_file_that_others_may_write_fails(noeta: Any, home: Path) -> None:
    (home / "trust.json").write_text('{"version":1,"trusted":[]}')
    (home / "trust.json").chmod(0o666)
    done = noeta("doctor", "--json", store="")
    [finding] = found(done)["trust"]
    assert finding["status"] == "fail"
    assert "anybody may write to it" in finding["text"]


def test_warnings_stand_among_the_findings_alone(process: Any, tmp_path: Path) -> None:
    (tmp_path / "noeta.toml").write_text('model = "x:y"\n')
    out, said = process("doctor").communicate(timeout=60)
    assert "warn  settings" in out
    assert said == ""


def test_the_exit_code_comes_out_of_the_process(process: Any) -> None:
    started = process("doctor", NOETA_HOME="not/absolute")
    out, said = started.communicate(timeout=60)
    assert started.returncode == 1
    assert "fail  places" in out
    assert said == ""
