"""What the header of a GGUF file says of the model in it.

The format is that of llama.cpp, described in `docs/gguf.md` of the project ggml: a magic number, the version,
the numbers of tensors and of entries, then the entries (a key, a type, a value) and a line for each tensor.
"""

from __future__ import annotations

import os
import struct
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

MAGIC = b"GGUF"
VERSIONS = (2, 3)
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The types of fixed size, by their number, as `struct` names them."""
TEXT, ARRAY = 8, 9


class NotGguf(ValueError):
    """The file is no GGUF file that can be read."""


class Header(Struct, frozen=True, kw_only=True):
    """A model: how many weights it has, its longest window in tokens, and the template of its chats."""

    parameters: int
    window: int | None
    template: str


def read_header(path: Path) -> Header:
    """The header of the file at `path`, read once for each state of the file.

    Raises `NotGguf`, and `OSError` for a file that cannot be read.
    """
    now = path.stat()
    return _read(path, now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=64)
def _read(path: Path, changed: int, size: int) -> Header:
    with path.open("rb") as file:
        try:
            if file.read(4) != MAGIC or _number(file, "I") not in VERSIONS:
                raise NotGguf(f"{path} is no GGUF file of version 2 or 3")
            tensors, count = _number(file, "Q"), _number(file, "Q")
            entries = {_text(file): _value(file, _number(file, "I")) for _ in range(count)}
            parameters = sum(_weights(file) for _ in range(tensors))
        except (struct.error, UnicodeDecodeError, KeyError, OverflowError, RecursionError) as error:
            raise NotGguf(f"{path} is a damaged GGUF file") from error
    window = entries.get(f"{entries.get('general.architecture')}.context_length")
    template = entries.get("tokenizer.chat_template")
    return Header(
        parameters=parameters,
        window=window if isinstance(window, int) else None,
        template=template if isinstance(template, str) else "",
    )


def _number(file: IO[bytes], form: str) -> Any:
    form = "<" + form
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _text(file: IO[bytes]) -> str:
    return _bytes(file).decode()


def _bytes(file: IO[bytes]) -> bytes:
    length = _number(file, "Q")
    if length > os.fstat(file.fileno()).st_size or len(data := file.read(length)) != length:
        raise struct.error("the file ends in a text")
    return data


def _value(file: IO[bytes], of: int) -> Any:
    """A value. Of an array nothing but its end is of interest: a vocabulary has a hundred thousand texts."""
    if of == TEXT:
        return _bytes(file).decode(errors="replace")
    if of != ARRAY:
        return _number(file, SCALARS[of])
    inner, length = _number(file, "I"), _number(file, "Q")
    if inner in SCALARS:
        _skip(file, length * struct.calcsize("<" + SCALARS[inner]))
    else:
        for _ in range(length):
            _value(file, inner)
    return None


def _skip(file: IO[bytes], length: int) -> None:
    if length > os.fstat(file.fileno()).st_size:
        raise struct.error("the file ends in a list")
    file.seek(length, os.SEEK_CUR)


def _weights(file: IO[bytes]) -> int:
    """How many weights a tensor has. Behind its sizes stand its type and its place."""
    _bytes(file)
    sizes = [_number(file, "Q") for _ in range(_number(file, "I"))]
    _number(file, "I")
    _number(file, "Q")
    return prod(sizes)
