"""What is printed moves no terminal, and tables fit."""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta_cli import output

SEQUENCES = [
    "\x1b[31m",
    "\x1b]52;c;eA==\x07",
    "\x1b]0;t\x1b\\",
    "\x9b2J",
    "\x1bc",
    "\x1bP1$r\x1b\\",
    "\u202e",
]


@given(st.lists(st.sampled_from(SEQUENCES) | st.text(max_size=5), max_size=8).map("".join))
def test_cleaned_text_holds_no_control_character(text: str) -> None:
    cleaned = output.clean(text)
    assert not [c for c in cleaned if unicodedata.category(c) in {"Cc", "Cs"} and c not in "\n\t"]
    assert output.clean(cleaned) == cleaned


@given(st.text(st.characters(exclude_categories=["C"]), max_size=50))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert output.clean(text) == text


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_sequence_goes_whole(sequence: str) -> None:
    assert output.clean(f"a{sequence}b") == "ab"


@given(st.text(max_size=200), st.integers(1, 40))
def test_one_line_is_one_line_of_that_length(text: str, limit: int) -> None:
    line = output.one_line(text, limit)
    assert len(line) <= limit
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(0, "0 s"), (59, "59 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 d"), (-5, "0 s")],
)
def test_an_age_has_one_unit(seconds: float, says: str) -> None:
    assert output.age(seconds) == says


@pytest.mark.parametrize(
    ("number", "says"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (2_000_000, "2.0 MB"), (3e15, "3000.0 TB")],
)
def test_bytes_have_the_unit_that_fits(number: float, says: str) -> None:
    assert output.size(number) == says


def test_the_beginning_of_a_sequence_hides_nothing() -> None:
    assert output.clean("a\x9drm -rf ~\x1b]all") == "arm -rf ~all"


def test_a_time_that_is_none_is_shown_as_it_is() -> None:
    assert output.when(1e300) == "1e+300"


def test_a_table_is_cut_only_where_a_person_reads_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("1", "a\x1b[31m text that is longer than the line of a terminal")]
    output.show_table(("no", "text"), rows)
    assert capsys.readouterr().out == "NO  TEXT\n1   a text that is longer than the line of a terminal\n"
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setattr(output, "get_terminal_size", lambda: os.terminal_size((30, 20)))
    output.show_table(("no", "text"), rows)
    assert max(map(len, capsys.readouterr().out.splitlines()[1:])) == 30


def test_json_on_a_terminal_holds_no_control_character(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.show_json({"a": "\x9b2J\x7f", "b": {1, 2}.__class__})
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    plain = capsys.readouterr().out
    output.show_json({"a": "\x9b2J\x7f", "b": {1, 2}.__class__})
    assert "\x9b" in plain
    assert capsys.readouterr().out == '{"a":"\\u009b2J\\u007f","b":"<class \'set\'>"}\n'


def test_long_work_is_told_to_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(output, "PATIENCE", 0.0)
    import threading

    done = threading.Event()

    def note(text: str) -> None:
        told.append(text)
        done.set()

    monkeypatch.setattr(output, "note", note)
    with output.working("counting"):
        pass
    assert told == []
    monkeypatch.setattr(sys, "stderr", Terminal())
    with output.working("counting"):
        assert done.wait(30)
    assert told == ["counting ..."]


class Terminal:
    """A standard error that a person reads."""

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.__stderr__, name)
