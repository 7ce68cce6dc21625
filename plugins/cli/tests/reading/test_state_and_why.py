"""`noeta state` folds, `noeta why` explains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_the_state_holds_that_of_plugins(noeta: Any, office: Any) -> None:
    done = noeta("state", office.ended, "--json")
    state = json.loads(done.out)
    assert len(state["states"]["tally"]["calls"]) == 2
    assert state["ended"] == "done"
    assert [item["message"]["role"] for item in state["conversation"]][:2] == ["user", "assistant"]
    assert done.err == ""
    assert json.loads(noeta("state", office.ended).out) == state


def test_a_plugins_state_stands_alone(noeta: Any, office: Any) -> None:
    done = noeta("state", office.ended, "--plugin", "tally", "--json")
    assert [*json.loads(done.out)] == ["calls"]


def test_the_state_at_a_record_is_that_of_then(noeta: Any, office: Any) -> None:
    records = [json.loads(line) for line in noeta("log", office.ended, "--json").out.splitlines()]
    first = next(record["seq"] for record in records if record["kind"] == "counted")
    done = noeta("state", office.ended, "--at", str(first), "--plugin", "tally", "--json")
    assert len(json.loads(done.out)["calls"]) == 1
    last = len(records)
    assert noeta("state", office.ended, "--at", "999").err == (
        f"noeta: task {office.ended!r} has no record 999; its last one is {last}.\n"
    )


def test_a_plugin_that_is_not_in_it_is_told(noeta: Any, office: Any) -> None:
    done = noeta("state", office.ended, "--plugin", "taly")
    assert done.code == 2
    assert done.err.endswith(
        f"the state of task {office.ended!r} has no plugin 'taly' (did you mean 'tally'?).\n"
    )


def test_without_its_agent_the_kernels_state_is_there(
    noeta: Any, office: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOETA_HOME", str(tmp_path / "other"))
    done = noeta("state", office.ended, "--json")
    assert json.loads(done.out)["states"] == {}
    assert done.err == (
        "noeta: agent 'clerk' is not among those of the settings, so its plugins' states are left out.\n"
    )


def test_an_agent_that_cannot_be_put_together_is_told(
    noeta: Any, office: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    home = tmp_path / "other"
    home.mkdir()
    (home / "noeta.toml").write_text('[agents.clerk]\nplugins = ["taly"]\n')
    monkeypatch.setenv("NOETA_HOME", str(home))
    done = noeta("state", office.ended, "--json")
    assert json.loads(done.out)["ended"] == "done"
    assert done.err.startswith("noeta: the states of plugins are left out: Plugin 'taly'")


def test_the_calls_are_listed_with_who_decided(noeta: Any, office: Any) -> None:
    rows = [line.split(maxsplit=3) for line in noeta("why", office.ended).out.splitlines()]
    assert [row[1:3] for row in rows] == [["TOOL", "STATUS"], ["fetch", "done"], ["fetch", "failed"]]
    assert rows[2][3].startswith("sites (deny)")
    first, second = (json.loads(line) for line in noeta("why", office.ended, "--json").out.splitlines())
    assert (first["decided"], second["decided"]["source"]) == (None, "deny evil.example, sites.toml:2")
    assert [json.loads(line)["status"] for line in noeta("why", office.asks, "--json").out.splitlines()] == [
        "waiting",
        "waiting",
    ]
    assert noeta("why", office.fork[:10]).code == 0


def test_a_call_is_explained_in_sentences(noeta: Any, office: Any) -> None:
    call = json.loads(noeta("why", office.ended, "--json").out.splitlines()[1])["call"]
    lines = noeta("why", office.ended, call).out.splitlines()
    assert lines[0].startswith(f"Call {call} of fetch, made at ")
    assert (
        lines[1] == "Plugin 'sites' decides deny by deny evil.example, sites.toml:2: This site is not for us."
    )
    # A beginning that no other call has is enough.
    short = call.rpartition("_")[0]
    assert noeta("why", office.ended, short).out.splitlines() == lines
    assert json.loads(noeta("why", office.ended, call, "--json").out)["status"] == "failed"


def test_a_call_that_is_none_is_told_with_those_there_are(noeta: Any, office: Any) -> None:
    calls = [json.loads(line)["call"] for line in noeta("why", office.ended, "--json").out.splitlines()]
    for given in ("nothing", "c"):
        done = noeta("why", office.ended, given)
        assert done.code == 2
        assert all(call in done.err for call in calls)
