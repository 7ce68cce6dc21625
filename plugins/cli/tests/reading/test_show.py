"""`noeta show` tells a task as people read it, and what a person can do about it."""

from __future__ import annotations

import json
import shlex
from typing import Any


def test_it_is_a_conversation_with_calls_and_results(noeta: Any, office: Any) -> None:
    out = noeta("show", office.ended).out
    paragraphs = out.split("\n\n")
    assert paragraphs[0].startswith(f"Task {office.ended} of agent clerk: ended (done), ")
    assert paragraphs[1].splitlines()[1] == "Look at both."
    assert "you" in paragraphs[1].splitlines()[0]
    reply = paragraphs[2].splitlines()
    assert reply[1] == "Looking."
    assert reply[2].startswith('→ fetch {"url":"good.example"} (c')
    results = [paragraph for paragraph in paragraphs if "fetch failed (" in paragraph]
    assert [result.splitlines()[1] for result in results] == ["This site is not for us."]
    assert paragraphs[-1].startswith("Used: ")


def test_a_long_result_is_cut_unless_all_is_wanted(noeta: Any, office: Any) -> None:
    short, full = noeta("show", office.idle).out, noeta("show", office.idle, "--full").out
    assert "line 9 of the page" in short
    assert "line 10 of the page" not in short
    assert "more characters; --full shows them" in short
    assert "line 199 of the page" in full
    assert "--full" not in full


def test_what_waits_has_the_line_that_answers_it(noeta: Any, office: Any) -> None:
    out = noeta("show", office.asks).out
    lines = [line.strip() for line in out.splitlines() if line.strip().startswith("noeta answer ")]
    words = [shlex.split(line) for line in lines]
    assert [(line[2], line[4]) for line in words] == [(office.asks, "allow"), (office.asks, "Rome")]
    assert all(line[-2:] == ["--store", office.url] for line in words)
    assert "Fetch it?" in out
    assert "Where to?" in out


def test_what_children_ask_is_asked_too(noeta: Any, office: Any) -> None:
    out = noeta("show", office.waits).out
    lines = [shlex.split(line) for line in out.splitlines() if line.strip().startswith("noeta answer ")]
    assert [line[2] for line in lines] == [office.asker, office.asker]


def test_children_and_timers_are_there(noeta: Any, office: Any) -> None:
    out = noeta("show", office.parent).out
    assert f"  {office.child}  clerk  ended" in out
    assert "  tea  2096-" in out
    assert f"child spawned: {office.child} of agent clerk" in out
    assert f"child of {office.parent}" in noeta("show", office.child).out.splitlines()[0]


def test_json_is_one_value_with_all_of_it(noeta: Any, office: Any) -> None:
    [line] = noeta("show", office.asks, "--json").out.splitlines()
    found = json.loads(line)
    assert found["task"]["task"] == office.asks
    assert [wait["ask"]["name"] for wait in found["waits"]] == ["fetch", "choose"]
    assert all(wait["answer"].startswith(f"noeta answer {office.asks} ") for wait in found["waits"])
    assert found["records"][0]["message"]["content"][0]["text"] == "Please ask me."
    [line] = noeta("show", office.parent, "--json").out.splitlines()
    found = json.loads(line)
    assert [child["task"] for child in found["children"]] == [office.child]
    assert [timer["name"] for timer in found["timers"]] == ["tea"]
