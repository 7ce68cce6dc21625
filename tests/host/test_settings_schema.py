"""The schema for editors takes what the host takes, and refuses what it refuses."""

from __future__ import annotations

import tomllib
from typing import Any

import jsonschema
import pytest

from noeta.core.errors import SettingsError
from noeta.host.catalog import EXTENSIONS, Catalog
from noeta.host.settings_schema import settings_schema

PLUGINS = """
    import msgspec
    from noeta import Extension

    class Server(msgspec.Struct):
        command: str
        env: dict[str, str] = {}

    class Settings(msgspec.Struct):
        root: str
        limit: int = 3
        servers: dict[str, Server] = {}

    class Plugin(Extension):
        name = "one"
        Settings = Settings

    class Plain(Extension):
        name = "plain"
"""


@pytest.fixture
def schema(person: Any, site: Any) -> dict[str, Any]:
    points = {"one": "schema_m:Plugin", "plain": "schema_m:Plain", "broken": "no_such_module:X"}
    site.install("noeta-one", {EXTENSIONS: points}, schema_m=PLUGINS)
    made = settings_schema(Catalog(person.settings()), ["one", "plain", "broken"])
    jsonschema.Draft202012Validator.check_schema(made)
    return made


GOOD = [
    "",
    'agent = "a"\nmodel = "x:y"\nstore = "memory:"\nenv = "local"',
    '[agents.a]\nmodel = "x:y"\nplugins = ["one"]\neffort = "low"\n[agents.a.prompts]\nx = "y"',
    '[models.fast]\nmodel = "x:y"\nfallbacks = ["z:a"]',
    '[plugins.one]\nlimit = 4\n[plugins.one.servers.git]\ncommand = "git"',
    '[plugins.one]\nroot = {env = "ROOT"}\nenabled = false',
    "[plugins.unknown]\nanything = [1]\nenabled = true",
    "[plugins.broken]\nanything = [1]",
    '[providers.x]\nkey = {env = "KEY"}\n[stores.y]\na = 1\n[environments.z]\nb = 2',
    '[prefer]\nRead = "one"',
]
BAD = [
    "modle = 'x'",
    "model = 3",
    "[agents.a]\nplugin = []",
    "[agents.a]\neffort = 'hihg'",
    "[models.fast]\nfallback = []",
    "[plugins.unknown]\nenabled = 'yes'",
    "[prefer]\nRead = 3",
    "[plugins]\none = 3",
]
BAD_WHEN_USED = [
    "[plugins.one]\nlimit = 'x'\nroot = ''",
    "[plugins.one]\nlimits = 3\nroot = ''",
    "[plugins.one]\nroot = ''\n[plugins.one.servers.git]\ncommand = 3",
    "[plugins.plain]\nx = 1",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_the_host_takes_fits(person: Any, schema: dict[str, Any], text: str) -> None:
    person.own(text)
    person.settings()
    jsonschema.validate(tomllib.loads(text), schema)


@pytest.mark.parametrize("text", BAD)
def test_what_the_host_refuses_does_not_fit(person: Any, schema: dict[str, Any], text: str) -> None:
    person.own(text)
    with pytest.raises(SettingsError):
        person.settings()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), schema)


@pytest.mark.parametrize("text", BAD_WHEN_USED)
def test_what_a_plugin_refuses_does_not_fit_and_the_host_says_so_when_it_is_used(
    person: Any, schema: dict[str, Any], text: str
) -> None:
    file = person.own(text)
    catalog = Catalog(person.settings())
    name = "one" if "one" in text else "plain"
    with pytest.raises(SettingsError, match=f"^{file}, plugins.{name}"):
        catalog.extension(name)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(text), schema)


def test_without_a_catalog_plugins_may_have_any_settings() -> None:
    made = settings_schema()
    jsonschema.validate({"plugins": {"one": {"x": 1}}}, made)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"plugins": {"one": {"enabled": 1}}}, made)
