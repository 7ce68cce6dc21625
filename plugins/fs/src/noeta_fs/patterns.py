"""Patterns of paths: ``*``, ``?``, ``[a-z]``, ``{a,b}`` and ``**``, matched folder by folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import TypeAlias

MOST = 1_000
"""How many patterns the braces of one may stand for."""
DEEP = "**"
MAGIC = re.compile(r"[*?\[]")
State: TypeAlias = "frozenset[tuple[int, int]]"
"""Where matching stands: which pattern, and which of its parts comes next."""


class Pattern:
    """A pattern, matched part by part while a tree is walked.

    `base` are the leading folders without a wildcard, as they were written. `start` is the state at `base`.
    A part ``**`` stands for any number of folders; last, for any file below. Raises `ValueError` with a
    sentence for a pattern that makes no sense.
    """

    def __init__(self, text: str) -> None:
        if "\0" in text:
            raise ValueError(f"The pattern {text!r} has a null byte, which no path can hold. Leave it out.")
        written = braces(text)
        split = [_parts(each) for each in written]
        shared = _shared(split)
        mixed = len({each.startswith("/") for each in written}) > 1
        if mixed or any(".." in parts[shared:] for parts in split):
            raise ValueError(
                f"The pattern {text!r} has no one folder to begin in. Write its folders in front."
            )
        self.base: str = "/" * written[0].startswith("/") + "/".join(split[0][:shared])
        self._patterns = [[_Part(part) for part in parts[shared:]] for parts in split]
        self._named = {part for parts in split for part in parts}
        self.start: State = self._closed((number, 0) for number in range(len(self._patterns)))

    @property
    def deep(self) -> bool:
        """Whether it looks below other folders than those it names."""
        return any(part.deep or len(parts) > 1 for parts in self._patterns for part in parts)

    def names(self, folder: str) -> bool:
        """Whether a part of the pattern is exactly this name."""
        return folder in self._named

    def step(self, state: State, name: str) -> tuple[bool, State, State]:
        """What `name`, met in `state`, is: a match as a file; the state in it as a folder; and that as a link
        to one, which no ``**`` goes through.
        """
        matches, below, linked = False, set(), set()
        for number, place in state:
            parts = self._patterns[number]
            part, last = parts[place], place + 1 == len(parts)
            if part.deep:
                below.add((number, place))
                matches = matches or last
            elif part.match(name):
                if last:
                    matches = True
                else:
                    below.add((number, place + 1))
                    linked.add((number, place + 1))
        return matches, self._closed(below), self._closed(linked)

    def _closed(self, states: Iterable[tuple[int, int]]) -> State:
        """With the states reached by letting ``**`` stand for no folder at all."""
        found = set()
        for number, place in states:
            parts = self._patterns[number]
            found.add((number, place))
            while parts[place].deep and place + 1 < len(parts):
                place += 1  # noqa: PLW2901 -- the places in a row
                found.add((number, place))
        return frozenset(found)


class _Part:
    def __init__(self, text: str) -> None:
        self.deep = text == DEEP
        self.match = re.compile(translate(text)).match


def braces(text: str) -> list[str]:
    """The patterns that one with ``{a,b}`` stands for, nested ones too. A lone brace is a letter."""
    found, left = [], [text]
    while left:
        text = left.pop()
        if (group := _group(text)) is None:
            found.append(text)
        else:
            start, end, choices = group
            left += [text[:start] + choice + text[end:] for choice in reversed(choices)]
        if len(found) + len(left) > MOST:
            raise ValueError(f"The braces of the pattern stand for more than {MOST:,} patterns. Use fewer.")
    return list(dict.fromkeys(found))


def _group(text: str) -> tuple[int, int, list[str]] | None:
    """The first braces with a comma: where they begin and end, and the choices in them."""
    for opening in (match.start() for match in re.finditer(r"\{", text)):
        depth, since, choices = 0, opening + 1, []
        for place in range(opening, len(text)):
            letter = text[place]
            if letter == "{":
                depth += 1
            elif letter == "," and depth == 1:
                choices.append(text[since:place])
                since = place + 1
            elif letter == "}":
                depth -= 1
                if depth == 0:
                    if choices:
                        return opening, place + 1, [*choices, text[since:place]]
                    break
    return None


def _parts(text: str) -> list[str]:
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not parts or parts[-1] == "..":
        raise ValueError(f"The pattern {text!r} names no file. Write for example '**/*.py'.")
    # Two in a row say the same as one.
    return [
        part for place, part in enumerate(parts) if not (part == DEEP and parts[place - 1 : place] == [DEEP])
    ]


def _shared(split: list[list[str]]) -> int:
    """How many leading folders all have in common, and without a wildcard."""
    shared = 0
    while all(
        len(parts) > shared + 1 and parts[shared] == split[0][shared] and not MAGIC.search(parts[shared])
        for parts in split
    ):
        shared += 1
    return shared
