"""A page is the same, in whatever pieces the text comes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noeta_fs import pages
from noeta_fs.decoding import encoding_of
from noeta_fs.pages import Page, Wanted

TEXTS = st.text(st.sampled_from("aé漢🎈 \t\r\n\n"), max_size=60)


def page(data: bytes, cuts: list[int], wanted: Wanted, encoding: str = "utf-8") -> Page:
    found = Page(wanted, encoding)
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(places):
        found.feed(data[start:end])
    found.feed(b"", last=True)
    return found


@given(
    text=TEXTS,
    cuts=st.lists(st.integers(0, 200), max_size=6),
    first=st.integers(1, 6),
    lines=st.integers(1, 6),
    chars=st.integers(1, 8),
    encoding=st.sampled_from(["utf-8", "utf-16-le"]),
    block=st.integers(1, 9) | st.just(pages.BLOCK),
)
@example(text="a\na\na", cuts=[], first=2, lines=1, chars=1, encoding="utf-8", block=2)
def test_pieces_make_no_difference(
    text: str, cuts: list[int], first: int, lines: int, chars: int, encoding: str, block: int
) -> None:
    wanted = Wanted(first=first, lines=lines, chars=chars, tokens=1_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "BLOCK", block)
        found = page(text.encode(encoding), cuts, wanted, encoding)
    split = [*text.split("\n")]
    last = split.pop()
    expected = [line.removesuffix("\r") for line in split] + ([last] if last else [])
    assert found.total == len(expected)
    shown = expected[first - 1 : first - 1 + lines]
    assert [line[7 : 7 + chars] for line in found.shown] == [line[:chars] for line in shown]
    assert [line[:7] for line in found.shown] == [f"{first + n:>6}\t" for n in range(len(shown))]
    assert found.cut == sum(len(line) > chars for line in shown)
    assert found.crlf == (split != [] and split[0].endswith("\r") and len(split[0]) <= chars + 1)


@pytest.mark.parametrize("first", [1, 900_000])
def test_lines_that_are_not_shown_are_only_counted(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at, end = [], Page._end

    def counted(self: Page, *, broken: bool = True) -> None:
        looked_at.append(self.total)
        end(self, broken=broken)

    monkeypatch.setattr(Page, "_end", counted)
    found = page(b"a line\r\n" * 1_000_000, [], Wanted(first=first, lines=2, chars=9, tokens=99))
    assert found.shown == [f"{first:>6}\ta line", f"{first + 1:>6}\ta line"]
    assert (found.total, found.crlf) == (1_000_000, True)
    assert len(looked_at) < 20_000


@given(text=TEXTS.filter(lambda text: text.strip()))
def test_every_text_is_taken_for_what_it_is(text: str) -> None:
    assert encoding_of(text.encode()) == "utf-8"
    assert encoding_of(text.encode("utf-8-sig")) == "utf-8-sig"


def test_a_character_may_be_cut_at_the_end_of_a_beginning() -> None:
    for encoding, text in (("utf-8", "漢"), ("utf-16-le", "a" * 9 + "🎈")):
        cut = text.encode(encoding)[:-1]
        assert encoding_of(cut, whole=False) == encoding
        assert encoding_of(cut) != encoding


@given(data=st.binary(max_size=40))
def test_any_bytes_are_a_text_that_can_be_shown_or_none(data: bytes) -> None:
    encoding = encoding_of(data)
    if encoding is not None:
        page(data, [1, 3], Wanted(lines=9, chars=9, tokens=100), encoding)
