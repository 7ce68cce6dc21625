"""Settings of what is no extension are taken by the same rules as those of one."""

from __future__ import annotations

import msgspec
import pytest

from noeta import Extension, SettingsError
from noeta.toolkit.settings import settings_of


class Settings(msgspec.Struct, frozen=True):
    url: str
    retries: int = 3


class Plugin(Extension):
    name = "one"
    Settings = Settings


def test_settings_become_the_struct() -> None:
    assert settings_of("one", Settings, {"url": "x"}) == Settings("x", 3)
    assert settings_of("one", Settings, {"retries": 5, "url": "x"}) == Plugin(retries=5, url="x").settings


@pytest.mark.parametrize(
    ("given", "setting"),
    [({"url": "x", "retry": 1}, "retry"), ({"url": "x", "retries": "1"}, "retries"), ({}, "url")],
)
def test_a_wrong_one_is_refused_as_an_extension_refuses_it(given: dict[str, object], setting: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_of("one", Settings, given)
    assert (caught.value.plugin, caught.value.setting) == ("one", setting)
    with pytest.raises(SettingsError) as same:
        Plugin(**given)
    assert str(caught.value) == str(same.value)
