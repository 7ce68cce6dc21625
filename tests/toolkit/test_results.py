"""Long text is cut at line borders, and saved whole where the preview says."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.toolkit.results import cut_head, cut_middle, cut_tail, spill_to, text_output

LINES = "".join(f"line {i}\n" for i in range(1_000))


@pytest.mark.parametrize(
    ("text", "chars", "head", "tail"),
    [
        ("ab\ncd\nef", 8, "ab\ncd\nef", "ab\ncd\nef"),
        ("ab\ncd\nef", 7, "ab\ncd\n", "cd\nef"),
        ("ab\ncd\nef", 5, "ab\n", "cd\nef"),
        ("ab\ncd\nef", 4, "ab\n", "ef"),
        ("ab\ncd\nef\n", 4, "ab\n", "ef\n"),
        ("abcdefgh", 3, "abc", "fgh"),
        ("abcd\nefgh", 3, "abc", "fgh"),
        ("abc", 0, "", ""),
        ("abc", -1, "", ""),
        ("", 0, "", ""),
    ],
)
def test_head_and_tail_are_whole_lines_where_one_fits(text: str, chars: int, head: str, tail: str) -> None:
    assert cut_head(text, chars) == head
    assert cut_tail(text, chars) == tail


texts = st.text(st.sampled_from("ab\n"), max_size=40)


@given(texts, st.integers(-1, 45))
def test_a_head_begins_the_text_and_a_tail_ends_it(text: str, chars: int) -> None:
    head, tail = cut_head(text, chars), cut_tail(text, chars)
    assert text.startswith(head)
    assert text.endswith(tail)
    for part in (head, tail):
        assert len(part) <= max(chars, 0) or part == text
        assert part or chars < 1 or not text
    if len(text) > chars and "\n" in text[: max(chars, 0)]:
        assert head.endswith("\n")


@given(texts, st.integers(0, 45))
def test_a_cut_text_tells_exactly_what_is_missing(text: str, chars: int) -> None:
    cut = cut_middle(text, chars, "Note.")
    if len(text) <= chars:
        assert cut == text
        return
    found = re.fullmatch(
        r"(.*?)\n?\[(\d+) characters in (\d+) lines? left out\. Note\.\]\n(.*)", cut, re.DOTALL
    )
    assert found
    left_out, lines, tail = int(found[2]), int(found[3]), found[4]
    head = text[: len(text) - left_out - len(tail)]
    assert found[1] in (head, head.removesuffix("\n"))
    assert text.endswith(tail)
    assert len(head) + len(tail) <= chars
    assert lines == len(text[len(head) : len(text) - len(tail)].splitlines())


def test_a_text_without_lines_is_cut_as_well() -> None:
    assert cut_middle("a" * 100, 8) == "aaaaaa\n[92 characters in 1 line left out.]\naa"
    cut = cut_middle(LINES, 40)
    assert cut == "line 0\nline 1\nline 2\nline 3\n[8,853 characters in 995 lines left out.]\nline 999\n"


def test_a_long_text_is_saved_whole_and_its_preview_says_where(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "spill"
    preview = spill_to(directory, preview_chars=100)(LINES, "Bash")
    (path,) = directory.iterdir()
    assert path.read_text() == LINES
    assert f"lines left out. The whole is in {path}.]" in preview
    assert preview.startswith("line 0\n")
    assert preview.endswith("line 999\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_preview_shows_less_than_half_of_a_text_that_is_not_so_long(tmp_path: Path) -> None:
    preview = spill_to(tmp_path)("x" * 100, "a")
    assert preview.startswith("x" * 38 + "\n[50 characters in 1 line left out.")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("Read", "Read"),
        ("../../etc/passwd", "etc_passwd"),
        ("a b\0c\n", "a_b_c"),
        (".hidden", "hidden"),
        ("", "result"),
        ("ähm", "hm"),
        ("x" * 500, "x" * 64),
        ("mcp__server-1", "mcp__server-1"),
    ],
)
def test_a_file_stays_in_the_directory_whatever_its_name(name: str, safe: str, tmp_path: Path) -> None:
    spill_to(tmp_path / "spill")("text", name)
    (path,) = (tmp_path / "spill").iterdir()
    assert re.fullmatch(rf"{safe}-[0-9a-f]{{16}}\.txt", path.name)
    assert list(tmp_path.iterdir()) == [tmp_path / "spill"]


def test_the_same_text_is_saved_once_and_another_one_beside_it(tmp_path: Path) -> None:
    spill = spill_to(tmp_path)
    assert spill(LINES, "a") == spill(LINES, "a")
    assert len(list(tmp_path.iterdir())) == 1
    spill(f"{LINES}.", "a")
    assert len(list(tmp_path.iterdir())) == 2


def test_text_that_no_file_can_hold_is_mended(tmp_path: Path) -> None:
    spill_to(tmp_path)("a\ud800b\r\n", "a")
    (path,) = tmp_path.iterdir()
    assert path.read_bytes() == "a\ufffdb\r\n".encode()


def test_a_text_that_cannot_be_saved_is_previewed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    preview = spill_to(in_the_way)(LINES, "a")
    assert "The whole could not be saved: File exists.]" in preview
    monkeypatch.setattr(os, "fsync", full)
    preview = spill_to(tmp_path / "spill")(LINES, "a")
    assert "The whole could not be saved: No space left on device.]" in preview
    assert list((tmp_path / "spill").iterdir()) == []


def test_an_output_of_text_comes_from_here_too() -> None:
    assert text_output("a", tries=1).meta == {"tries": 1}
