"""Which text the bytes of a file are."""

from __future__ import annotations

import codecs

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # The mark of UTF-32 begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b\b"))


def image_type(data: bytes) -> str | None:
    """The media type of an image that models can see, None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((type_ for mark, type_ in IMAGES if data.startswith(mark)), None)


def encoding_of(data: bytes, *, whole: bool = True) -> str | None:
    """The encoding of a text that is `data`, or not `whole` begins with it; None when it is no text.

    A byte order mark decides. Without one it is UTF-8 if it can be, UTF-16 if every other byte is mostly
    zero, and latin-1 if nothing else speaks against a text. Latin-1 takes any bytes, and gives them back.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return encoding
    if 0 in data:
        return _utf16(data, whole)
    try:
        # The last character of a beginning may be cut.
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
    except UnicodeDecodeError:
        controls = len(data) - len(data.translate(None, CONTROLS))
        return "latin-1" if controls * 100 <= len(data) else None
    return "utf-8"


def _utf16(data: bytes, whole: bool) -> str | None:
    """UTF-16 without a mark, as far as its letters are mostly Latin ones."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    half = len(data) // 2
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros * 10 >= half * 7 and others * 100 <= half:
            try:
                codecs.getincrementaldecoder(encoding)().decode(data, final=whole)
            except UnicodeDecodeError:
                return None
            return encoding
    return None
