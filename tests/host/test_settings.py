"""Settings come from their places in order, every value knows its own, and nothing misspelt passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.errors import SettingsError
from noeta.host.layers import Layer, Place, Value, laid_over, together
from noeta.host.places import find_places
from noeta.host.secrets import HIDDEN, shown
from noeta.host.settings import Settings, as_settings, load_settings

# ---- places


def test_the_places_are_those_of_the_home(tmp_path: Path) -> None:
    places = find_places({"HOME": str(tmp_path)}, tmp_path)
    assert places.user_file == tmp_path / ".config" / "noeta" / "noeta.toml"
    assert places.user_plugins == tmp_path / ".config" / "noeta" / "plugins"
    assert places.store == f"sqlite:{tmp_path}/.local/share/noeta/noeta.db"
    assert places.spill == tmp_path / ".local" / "share" / "noeta" / "spill"
    assert places.managed == Path("/etc/noeta/noeta.toml")


def test_variables_move_the_folders_and_a_relative_one_is_no_place(tmp_path: Path) -> None:
    base = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "here/d"}
    places = find_places(base, tmp_path)
    assert (places.config, places.data) == (Path("/c/noeta"), tmp_path / ".local/share/noeta")
    moved = find_places({**base, "NOETA_HOME": "/n"}, tmp_path)
    assert (moved.config, moved.data, moved.user_file) == (Path("/n"), Path("/n"), Path("/n/noeta.toml"))
    assert (moved.managed, moved.trust_file) == (places.managed, Path("/n/trust.json"))
    assert find_places({**base, "NOETA_HOME": "~/n"}, tmp_path).data == tmp_path / "n"
    with pytest.raises(ValueError, match=r"NOETA_HOME is 'n'; it has to be an absolute path"):
        find_places({**base, "NOETA_HOME": "n"}, tmp_path)


@pytest.mark.parametrize("mark", ["noeta.toml", ".git"])
def test_the_project_is_the_nearest_folder_upward_that_is_marked(tmp_path: Path, mark: str) -> None:
    deep = tmp_path / "one" / "two" / "three"
    deep.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert find_places({}, deep).project == tmp_path
    (tmp_path / "one" / mark).touch()
    assert find_places({}, deep).project == tmp_path / "one"


def test_without_a_mark_the_project_is_the_folder_itself() -> None:
    assert find_places({}, "/").project == Path("/")


# ---- order

LEVELS = ("managed", "command line", "code", "local", "project", "user")


def everywhere(person: Any) -> dict[str, str]:
    """Put a store of its own into every place; the file of each."""
    files = {
        "managed": person.manage('store = "managed:"\n'),
        "local": person.bring('store = "local:"\n', ".noeta/local.toml"),
        "project": person.bring('store = "project:"\n'),
        "user": person.own('store = "user:"\n'),
    }
    person.trust()
    return {level: str(path) for level, path in files.items()}


@pytest.mark.parametrize("first", LEVELS)
def test_the_first_place_that_has_a_key_has_it(person: Any, first: str) -> None:
    files = everywhere(person)
    for level in LEVELS[: LEVELS.index(first)]:
        if level in files:
            Path(files[level]).write_text("")
    person.trust()
    more: dict[str, Any] = {}
    if first in {"managed", "command line"}:
        more["flags"] = ["store=command line:"]
    if first in {"managed", "command line", "code"}:
        more["code"] = {"store": "code:"}
    settings = person.settings(**more)
    found = settings.value("store")
    assert (found.value, found.place) == (f"{first}:", Place(first, files.get(first, "")))
    below = [value.place.level for value in settings.everywhere("store")]
    assert below == [level for level in LEVELS if level in below] == list(LEVELS[LEVELS.index(first) :])


def test_keys_of_one_table_come_from_several_places_and_each_knows_its_own(person: Any) -> None:
    own = person.own('[plugins.fs]\nroot = "/a"\nlimits = {a = 1, b = 2}\n')
    managed = person.manage("[plugins.fs]\nlimits = {a = 3}\n")
    settings = person.settings()
    assert settings.table("plugins", "fs") == {"root": "/a", "limits": {"a": 3}}
    assert [value.where for value in settings.values()] == [
        f"{managed}, plugins.fs.limits",
        f"{own}, plugins.fs.root",
    ]


def test_a_plugin_that_any_place_switches_off_is_off(person: Any) -> None:
    own = person.own("[plugins.fs]\nenabled = false\n")
    person.manage("[plugins.fs]\nenabled = true\n")
    settings = person.settings(flags=["plugins.fs.enabled=true"])
    assert settings.off("fs") == f"enabled = false in {own}, plugins.fs.enabled"
    assert settings.off("other") == ""
    assert settings.table("plugins", "fs") == {}


def layers() -> st.SearchStrategy[Layer]:
    keys = st.one_of(
        st.sampled_from([("model",), ("store",), ("prefer", "Read")]),
        st.tuples(st.just("plugins"), st.sampled_from("ab"), st.sampled_from(["enabled", "x"])),
    )
    values = st.one_of(
        st.booleans(), st.integers(0, 3), st.dictionaries(st.sampled_from("pq"), st.integers(0, 3))
    )
    places = st.integers(0, 99).map(lambda n: Place("user", str(n)))
    built = st.builds(Value, keys, values, places)
    return st.lists(built, max_size=6).map(lambda found: {value.key: value for value in found})


@given(layers(), layers(), layers())
def test_laying_layers_over_each_other_does_not_depend_on_where_one_begins(
    a: Layer, b: Layer, c: Layer
) -> None:
    assert laid_over(laid_over(a, b), c) == laid_over(a, laid_over(b, c))
    assert laid_over(a, {}) == laid_over({}, a) == laid_over(a, a) == a


@given(st.lists(layers(), max_size=5))
def test_every_value_is_one_that_its_place_holds_and_the_first_that_counts(found: list[Layer]) -> None:
    made = together(found)
    assert made.keys() == {key for layer in found for key in layer}
    for key, value in made.items():
        held = [layer[key] for layer in found if key in layer]
        off = [each for each in held if key[2:] == ("enabled",) and each.value is False]
        assert value is (off or held)[0]


# ---- mistakes

WRONG = {
    "modle = 1": "modle: there is no such table or key (did you mean 'model'?).",
    "[plugin.fs]\nroot = 1": "plugin: there is no such table or key (did you mean 'plugins'?).",
    "zzz = 1": "zzz: there is no such table or key; there are agent, model, store, env, agents, plugins,",
    "model = 3": "model: expected a text, got a whole number.",
    "model = true": "model: expected a text, got true or false.",
    "plugins = 3": "plugins: expected a table, got a whole number; write [plugins].",
    "[plugins]\nfs = true": "plugins.fs: expected a table, got true or false; write [plugins.fs].",
    "[plugins.fs]\nenabled = 'no'": "plugins.fs.enabled: expected true or false, got a text.",
    "[agents.coder]\nplugin = []": "agents.coder.plugin: there is no such key (did you mean 'plugins'?).",
    "[agents.coder]\nplugins = 'fs'": "agents.coder.plugins: expected a list, got a text.",
    "[agents.coder]\nplugins = ['fs', 3]": "agents.coder.plugins[1]: expected a text, got a whole number.",
    "[agents.coder]\neffort = 'hihg'": "it can be low, medium, high, xhigh and max (did you mean 'high'?).",
    "[agents.coder]\nmax_tokens = 1.5": "agents.coder.max_tokens: expected a whole number, got a number.",
    "[agents.'a b'.prompts]\n'tool/Read' = 1": 'agents."a b".prompts[...]: expected a text',
    "[agents.'']\nmodel = 'x:y'": "agents: a name is empty.",
    "[plugins.fs]\n'' = 1": "plugins.fs: a key is empty.",
    "[models.'a:b']\nmodel = 'x:y'": 'models."a:b": the name of a model here has no colon',
    "[models.fast]\nfallbacks = []": "models.fast: it names no model; write model = ",
    "[models.a]\nmodel = 'b'\n[models.b]\nmodel = 'a'": "models.a: it leads back to itself: a -> b -> a.",
    "[prefer]\nRead = ['fs']": "prefer.Read: expected a text, got a list.",
    "[blocked]\nplugins = ['fs']": "blocked: only managed settings block plugins; write enabled = false into "
    "[plugins.NAME].",
    "model = ": "it is no TOML: Invalid value (at line 1, column 9).",
    "model = 'a'\nmodel = 'b'": "it is no TOML: Cannot overwrite a value",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_names_the_file_the_key_and_what_is_wanted(person: Any, text: str) -> None:
    file = person.own(text + "\n")
    with pytest.raises(SettingsError) as caught:
        person.settings()
    said = str(caught.value)
    assert said.startswith(f"{file}, " if not WRONG[text].startswith("it is no") else f"{file}: ")
    assert WRONG[text] in said


def test_bytes_that_are_no_text_are_refused_with_their_file(person: Any) -> None:
    person.own("").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=re.escape(f"{person.places.user_file}: it is no TOML")):
        person.settings()


def test_managed_settings_that_cannot_be_read_let_nobody_start(person: Any) -> None:
    person.managed.mkdir()
    with pytest.raises(SettingsError, match=r"etc/noeta\.toml: it cannot be read: .*no ordinary file"):
        person.settings()


@pytest.mark.parametrize(
    ("flag", "key", "value"),
    [
        ("model=openai:gpt-5", ("model",), "openai:gpt-5"),
        ("plugins.fs.limit=3", ("plugins", "fs", "limit"), 3),
        ("plugins.fs.on=true", ("plugins", "fs", "on"), True),
        ('plugins."a.b".names=["x"]', ("plugins", "a.b", "names"), ["x"]),
        ("plugins.fs.text=a=b", ("plugins", "fs", "text"), "a=b"),
        ('plugins.fs.text=say "hi"\n[x]', ("plugins", "fs", "text"), 'say "hi"\n[x]'),
        ("agents.coder.prompt=", ("agents", "coder", "prompt"), ""),
    ],
)
def test_a_flag_is_a_value_of_a_file_or_else_a_text(person: Any, flag: str, key: Any, value: Any) -> None:
    found = person.settings(flags=["model=first:one", flag]).value(*key)
    assert (found.value, str(found.place)) == (value, "the command line")


@pytest.mark.parametrize("flag", ["model", "=x", "a b c=1", "model=3"])
def test_a_flag_that_sets_nothing_is_refused(person: Any, flag: str) -> None:
    with pytest.raises(SettingsError, match="the command line"):
        person.settings(flags=[flag])


def test_tables_of_a_program_are_checked_as_files_are() -> None:
    with pytest.raises(SettingsError, match=r"keyword arguments, plugins\.fs: expected a table, got a text"):
        as_settings({"plugins": {"fs": "x"}}, {})
    assert as_settings({"plugins": {"fs": {"root": "/"}}}, {}).table("plugins", "fs") == {"root": "/"}
    assert as_settings(None, {}).values() == []


# ---- models


def test_a_name_of_a_model_leads_over_others_to_models(person: Any) -> None:
    person.own("""
        [models.fast]
        model = "small"
        fallbacks = ["openai:mini", "small"]
        [models.small]
        model = "anthropic:haiku"
    """)
    assert person.settings().models == {
        "fast": ["anthropic:haiku", "openai:mini"],
        "small": ["anthropic:haiku"],
    }


# ---- secrets


def test_a_reference_is_looked_up_when_it_is_handed_over_and_not_before(person: Any) -> None:
    file = person.own("""
        [providers.anthropic]
        api_key = {env = "KEY"}
        headers = [{token = {env = "OTHER"}}]
        base_url = "https://ann:pass@host/"
        password = "open"
        env = {env = {A = "b"}}
    """)
    settings = person.settings()
    with pytest.raises(SettingsError, match=r"providers\.anthropic\.api_key"):
        settings.table("providers", "anthropic")
    person.environ |= {"KEY": "s3cret", "OTHER": "t0ken"}
    settings = person.settings()
    assert settings.table("providers", "anthropic") == {
        "api_key": "s3cret",
        "headers": [{"token": "t0ken"}],
        "base_url": "https://ann:pass@host/",
        "password": "open",
        "env": {"env": {"A": "b"}},
    }
    for value in settings.values():
        assert "s3cret" not in repr(value)
    assert {value.key[-1]: shown(value) for value in settings.values()} == {
        "api_key": {"env": "KEY"},
        "headers": [{"token": {"env": "OTHER"}}],
        "base_url": f"https://{HIDDEN}@host/",
        "password": HIDDEN,
        "env": {"env": {"A": "b"}},
    }
    del person.environ["KEY"]
    with pytest.raises(SettingsError) as caught:
        person.settings().table("providers", "anthropic")
    why = "the environment has no variable KEY; set it, or take the key out"
    assert str(caught.value) == f"{file}, providers.anthropic.api_key: {why}."


def test_texts_for_a_model_are_never_taken_for_references(person: Any) -> None:
    person.own('[agents.a]\nprompts = {env = "HOME"}\n')
    assert person.settings().table("agents", "a") == {"prompts": {"env": "HOME"}}


def test_settings_without_places_are_empty() -> None:
    settings = Settings()
    assert (settings.values(), settings.skipped, settings.models) == ([], (), {})


def test_nothing_there_is_nothing_set(person: Any) -> None:
    settings = load_settings(person.places, person.environ)
    assert (settings.values(), settings.skipped) == ([], [])
