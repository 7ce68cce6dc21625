"""Pages: some lines of a text, numbered, made while the text comes in pieces of any size."""

from __future__ import annotations

import codecs

from msgspec import Struct

TOKEN = 4
"""The bytes of UTF-8 that count as one token."""

BLOCK = 1 << 16
"""Text is looked at in blocks of so many characters; one with nothing to show in it is only counted."""


class Wanted(Struct, frozen=True, kw_only=True):
    """Which lines are wanted, from `first` on, and how much of them fits."""

    first: int = 1
    lines: int
    chars: int
    tokens: int


class Page:
    """The wanted lines of a text that is fed in pieces. No more is kept than is shown.

    - `shown`: the numbered lines, `count` of them.
    - `total`: how many lines the text has, as far as it was fed.
    - `cut`: how many shown lines were cut at their end.
    - `full`: a wanted line did not fit any more.
    - `crlf`: the first line ends in CRLF.
    """

    def __init__(self, wanted: Wanted, encoding: str) -> None:
        self.shown: list[str] = []
        self.total: int = 0
        self.cut: int = 0
        self.full: bool = False
        self.crlf: bool = False
        self._wanted = wanted
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._room = wanted.tokens * TOKEN
        # The line that has not ended yet: its beginning, and how much more there was.
        self._line, self._more = "", 0

    @property
    def count(self) -> int:
        """How many lines are shown."""
        return len(self.shown)

    @property
    def done(self) -> bool:
        """Whether no further piece adds anything to what is shown."""
        return self.full or self.total >= self._wanted.first - 1 + self._wanted.lines

    def feed(self, data: bytes, *, last: bool = False) -> None:
        """Take the next bytes. The `last` ones end the text."""
        text = self._decoder.decode(data, final=last)
        for start in range(0, len(text), BLOCK):
            self._take(text[start : start + BLOCK])
        if last and (self._line or self._more):
            self._end(broken=False)

    def _take(self, text: str) -> None:
        count = text.count("\n")
        if count and self._passes_over(count):
            self.total += count
            self._line, self._more = "", 0
            self._add(text.rpartition("\n")[2])
            return
        *ended, rest = text.split("\n")
        for line in ended:
            self._add(line)
            self._end()
        self._add(rest)

    def _passes_over(self, count: int) -> bool:
        """Whether none of the next `count` lines is shown, so that counting them is enough."""
        # How the first line ends is told in any case.
        return self.done or 0 < self.total < self._wanted.first - count

    def _add(self, text: str) -> None:
        # One more than is shown, so that a CR at the very end is seen.
        room = max(self._wanted.chars + 1 - len(self._line), 0)
        self._line += text[:room]
        self._more += len(text[room:])

    def _end(self, *, broken: bool = True) -> None:
        line, more, self._line, self._more = self._line, self._more, "", 0
        self.total += 1
        if broken and not more and line.endswith("\r"):
            line = line[:-1]
            self.crlf = self.crlf or self.total == 1
        place = self.total - self._wanted.first
        if self.full or not 0 <= place < self._wanted.lines:
            return
        over = len(line) + more - self._wanted.chars
        text = f"{line[: self._wanted.chars]} [{over:,} more characters]" if over > 0 else line
        numbered = f"{self.total:>6}\t{text}"
        self._room -= len(numbered.encode(errors="surrogatepass")) + 1
        # The first line is shown in any case, for nothing smaller can be asked for.
        if self._room < 0 and self.shown:
            self.full = True
            return
        self.cut += over > 0
        self.shown.append(numbered)
