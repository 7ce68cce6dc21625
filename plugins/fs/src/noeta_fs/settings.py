"""What a person may choose about reading and finding files."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class FilesSettings(Struct, frozen=True, kw_only=True):
    """Settings of the plugin ``fs``.

    - `read_tokens`: the most that one Read gives, in tokens; a token is counted as four bytes of UTF-8.
    - `read_lines`: the lines that a Read without `limit` gives at most.
    - `line_chars`: the characters after which a line is cut.
    - `image_bytes`: the size up to which an image is shown.
    - `glob_files`: the most paths that one Glob gives.
    - `glob_seconds`: the time after which a Glob gives what it has found.
    """

    read_tokens: Annotated[int, Meta(ge=100)] = 25_000
    read_lines: Annotated[int, Meta(ge=1)] = 2_000
    line_chars: Annotated[int, Meta(ge=20)] = 2_000
    image_bytes: Annotated[int, Meta(ge=0)] = 3_750_000
    glob_files: Annotated[int, Meta(ge=1)] = 100
    glob_seconds: Annotated[float, Meta(gt=0)] = 20.0
