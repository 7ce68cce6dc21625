"""What the header of a file says, and what becomes of files that are damaged."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noeta_llamacpp.files import file_of
from noeta_llamacpp.gguf import NotGguf, read_header


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


ENTRIES = [
    text("general.architecture") + struct.pack("<I", 8) + text("tiny"),
    text("tiny.context_length") + struct.pack("<II", 4, 512),
    text("tiny.rates") + struct.pack("<IIQ", 9, 6, 2) + struct.pack("<ff", 0.5, 1.5),
    text("tokenizer.words") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
    text("tokenizer.chat_template") + struct.pack("<I", 8) + text("{{ tools }}"),
]
TENSORS = [
    text("one") + struct.pack("<IQQIQ", 2, 3, 5, 0, 0),
    text("two") + struct.pack("<IQIQ", 1, 7, 0, 64),
]
WHOLE = b"GGUF" + struct.pack("<IQQ", 3, len(TENSORS), len(ENTRIES)) + b"".join([*ENTRIES, *TENSORS])


def test_the_header_tells_weights_window_and_template(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(WHOLE + b"weights")
    header = read_header(path)
    assert (header.parameters, header.window, header.template) == (3 * 5 + 7, 512, "{{ tools }}")


def test_the_model_that_ships_has_the_weights_that_its_name_says() -> None:
    header = read_header(file_of("smollm2", {}))
    assert header.parameters == 134_515_008
    assert header.window == 8192
    assert "<|im_start|>" in header.template


def test_a_file_that_was_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(WHOLE)
    assert read_header(path).window == 512
    path.write_bytes(WHOLE.replace(struct.pack("<II", 4, 512), struct.pack("<II", 4, 128)) + b"more")
    assert read_header(path).window == 128


@given(cut=st.integers(0, len(WHOLE) - 1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_that_ends_anywhere_is_named_as_damaged(tmp_path: Path, cut: int) -> None:
    path = tmp_path / f"cut{cut}.gguf"
    path.write_bytes(WHOLE[:cut])
    with pytest.raises(NotGguf, match="GGUF file"):
        read_header(path)


@given(place=st.integers(0, len(WHOLE) - 1), value=st.integers(0, 255))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_byte_that_is_wrong_gives_another_header_or_the_error_that_says_so(
    tmp_path: Path, place: int, value: int
) -> None:
    path = tmp_path / f"wrong{place}_{value}.gguf"
    path.write_bytes(WHOLE[:place] + bytes([value]) + WHOLE[place + 1 :])
    with suppress(NotGguf):
        assert read_header(path).parameters >= 0
