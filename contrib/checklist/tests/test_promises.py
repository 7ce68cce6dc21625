"""The plugin keeps what the kernel builds on."""

from pathlib import Path

import pytest

from noeta import SettingsError
from noeta.testing import check_extension
from noeta_checklist import Checklist

# What released versions wrote. Add a file for each version, and never change one.
SAMPLES = [
    line
    for file in sorted((Path(__file__).parent / "samples").glob("*.jsonl"))
    for line in file.read_bytes().splitlines()
]


def test_every_promise_of_a_plugin_is_kept() -> None:
    check_extension(Checklist, samples=SAMPLES)


def test_every_promise_is_kept_with_other_settings() -> None:
    check_extension(lambda: Checklist(items=["One.", "One."], tools=["*"]))


def test_a_list_without_items_is_refused() -> None:
    with pytest.raises(SettingsError, match="'checklist', setting 'items'"):
        Checklist(items=[])
