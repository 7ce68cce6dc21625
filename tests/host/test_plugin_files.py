"""A plugin file joins agents once it is trusted, is run from the bytes that were judged, and stops nobody."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noeta.core.errors import SettingsError
from noeta.core.extension import Extension
from noeta.host.agents import Agents
from noeta.host.catalog import EXTENSIONS, PROVIDERS, Catalog, Entry
from noeta.host.plugin_source import NO_TUPLE, Declared, declared
from noeta.host.settings import Settings
from noeta.host.trust import Trust, trust
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.trust import digest

MARK = "import sys\nsys.ran = [*getattr(sys, 'ran', []), __name__]\n"


@pytest.fixture(autouse=True)
def _forget() -> Any:
    yield
    vars(sys).pop("ran", None)


def ran() -> list[str]:
    return getattr(sys, "ran", [])


def marked(path: Path) -> Path:
    """Let a plugin file note that it was run."""
    path.write_text(MARK + path.read_text())
    return path


def compose(person: Any, *plugins: Any, agent: str = "helper", **more: Any) -> Agents:
    return Agents([Agent(agent, plugins=plugins)], catalog=Catalog(person.settings(**more)))


def names(agents: Agents, agent: str = "helper") -> list[str]:
    return [plugin.name for plugin in agents[agent].hooks.extensions]


def entry(person: Any, name: str, **more: Any) -> Entry:
    found = Catalog(person.settings(**more)).find(name)
    assert found
    return found


# ---- joining


def test_a_trusted_file_joins_after_the_agents_own_plugins(person: Any) -> None:
    person.plugin("mine", own=True)
    person.plugin("theirs")
    person.trust()
    own = type("Own", (Extension,), {"name": "own"})()
    agents = compose(person, own)
    assert names(agents) == ["own", "theirs", "mine"]
    path = person.places.user_plugins / "mine.py"
    assert agents.why("helper", "mine") == f"Plugin 'mine' is in agent 'helper': {path} adds it."
    assert agents.why("helper", "own") == "Plugin 'own' is in agent 'helper': code put it into its list."


def test_add_to_names_the_agents(person: Any) -> None:
    path = marked(person.plugin("mine", 'add_to = ("coder", "other")', own=True))
    assert names(compose(person)) == []
    assert ran() == []
    agents = compose(person)
    why = f"its list does not name it, and add_to in {path} says 'coder' and 'other'"
    assert agents.why("helper", "mine") == f"Plugin 'mine' is not in agent 'helper': {why}."
    assert names(compose(person, agent="coder"), "coder") == ["mine"]
    assert len(ran()) == 1
    assert names(compose(person, "mine")) == ["mine"]


def test_a_package_does_not_join_by_itself(person: Any, site: Any) -> None:
    source = "from noeta import Extension\nclass P(Extension):\n    name = 'one'\n    add_to = ('*',)\n"
    site.install("noeta-one", {EXTENSIONS: {"one": "joining_m:P"}}, joining_m=source)
    agents = compose(person)
    assert names(agents) == []
    assert agents.why("helper", "one") == (
        "Plugin 'one' is not in agent 'helper': its list does not name it. "
        "It is installed with noeta-one 1.0."
    )
    assert names(compose(person, "one")) == ["one"]


def test_a_plugin_that_is_named_keeps_its_place_and_is_there_once(person: Any) -> None:
    person.plugin("mine", own=True)
    other = type("Own", (Extension,), {"name": "own"})()
    assert names(compose(person, "mine", other)) == ["mine", "own"]


def test_a_plugin_of_code_goes_before_a_file_of_its_name(person: Any) -> None:
    marked(person.plugin("own", own=True))
    other = type("Own", (Extension,), {"name": "own"})()
    agents = compose(person, other)
    assert [*agents["helper"].hooks.extensions] == [other]
    assert ran() == []


def test_a_host_without_settings_has_no_plugin_files(person: Any) -> None:
    person.plugin("mine", own=True)
    assert Catalog().find("mine") is None
    assert Catalog(Settings()).joining("helper") == []


def test_a_file_has_its_settings_and_the_hash_of_its_bytes_as_version(person: Any) -> None:
    body = """
        import msgspec
        from noeta import Extension
        class Settings(msgspec.Struct):
            times: int = 1
        class Mine(Extension):
            name = "mine"
            add_to = ("*",)
            version = "2"
            Settings = Settings
    """
    path = person.write(person.places.user_plugins / "mine.py", body)
    person.own("[plugins.mine]\ntimes = 3\n")
    [plugin] = compose(person)["helper"].hooks.extensions
    assert plugin.settings.times == 3
    assert plugin.version == f"2+{digest(path.read_bytes())[:12]}"
    file = person.own("[plugins.mine]\ntime = 3\n")
    with pytest.raises(SettingsError) as caught:
        compose(person)
    why = "there is no such setting (did you mean 'times'?). It takes times"
    assert str(caught.value) == f"{file}, plugins.mine.time: {why}."


def test_what_a_file_prints_leaves_standard_output_alone(
    person: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = person.plugin("mine", own=True)
    path.write_text("print('hello')\n" + path.read_text())
    compose(person)
    assert capsys.readouterr() == ("", "hello\n")


def test_annotations_that_are_texts_are_found_in_the_file(person: Any) -> None:
    person.write(
        person.places.user_plugins / "mine.py",
        """
        from __future__ import annotations
        import msgspec
        from noeta import Extension
        class Inner(msgspec.Struct):
            x: int
        class Settings(msgspec.Struct):
            inner: Inner
        class Mine(Extension):
            name = "mine"
            Settings = Settings
        """,
    )
    person.own("[plugins.mine.inner]\nx = 3\n")
    assert compose(person, "mine")["helper"].hooks.extensions[0].settings.inner.x == 3


# ---- trust


def test_a_file_of_the_project_is_not_run_and_not_parsed_until_it_is_trusted(
    person: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = marked(person.plugin("theirs"))
    person.bring("def (", ".noeta/plugins/broken.py")
    with caplog.at_level(logging.WARNING, "noeta"):
        agents = compose(person)
    assert (names(agents), ran()) == ([], [])
    why = "it is not trusted; look at it, then run: noeta plugins trust"
    assert f"plugin file {path} is not used: {why}" in caplog.messages
    assert (entry(person, "theirs").state, entry(person, "theirs").reason) == ("untrusted", why)
    assert entry(person, "broken").state == "untrusted"
    assert agents.why("helper", "theirs") == (
        f"Plugin 'theirs' is not in agent 'helper': it is untrusted ({why})."
    )
    with pytest.raises(ComposeError, match="it is not trusted; look at it"):
        compose(person, "theirs")
    assert ran() == []


def test_a_file_that_is_not_trusted_is_known_by_its_own_name_alone(person: Any) -> None:
    person.plugin("inside").rename(person.places.project_plugins / "outside.py")
    catalog = Catalog(person.settings())
    assert catalog.find("outside").state == "untrusted"
    assert catalog.find("inside") is None


def test_a_changed_byte_keeps_a_file_out(person: Any) -> None:
    path = person.plugin("theirs")
    person.trust()
    assert names(compose(person)) == ["theirs"]
    path.write_text(MARK + path.read_text())
    assert names(compose(person)) == []
    assert entry(person, "theirs").reason.startswith("it changed since it was trusted")
    assert ran() == []


def test_what_is_run_is_what_was_judged_even_if_the_file_changes_in_between(person: Any) -> None:
    path = person.plugin("theirs")
    person.trust()
    catalog = Catalog(person.settings())
    assert catalog.find("theirs").state == "not imported"
    path.write_text(MARK + path.read_text())
    assert catalog.extension("theirs").name == "theirs"
    assert ran() == []


def test_a_link_in_the_project_is_judged_by_its_place_and_by_what_it_leads_to(person: Any) -> None:
    real = person.write(person.home / "elsewhere.py", "")
    marked(person.plugin("theirs")).rename(real)
    link = person.places.project_plugins / "theirs.py"
    link.symlink_to(real)
    assert (names(compose(person)), ran()) == ([], [])
    # To trust the file the link leads to is not to trust the link.
    trust(person.places, [Trust(person.places).look(real, "plugin file")])
    assert (names(compose(person)), ran()) == ([], [])
    person.trust()
    assert names(compose(person)) == ["theirs"]
    real.write_text(real.read_text() + "\n")
    assert names(compose(person)) == []


def test_a_link_from_the_own_folder_into_the_project_is_not_trusted(person: Any) -> None:
    target = marked(person.plugin("theirs")).rename(person.project / "theirs.py")
    person.places.user_plugins.mkdir(parents=True)
    (person.places.user_plugins / "theirs.py").symlink_to(target)
    assert (names(compose(person)), ran()) == ([], [])
    assert entry(person, "theirs").state == "untrusted"


def test_a_file_of_the_project_cannot_take_the_name_of_a_package_before_it_is_trusted(
    person: Any, site: Any
) -> None:
    source = "from noeta import Extension\nclass P(Extension):\n    name = 'one'\n"
    site.install("noeta-one", {EXTENSIONS: {"one": "taken_m:P"}}, taken_m=source)
    marked(person.plugin("one"))
    assert compose(person, "one")["helper"].hooks.extensions[0].version == "1.0"
    assert ran() == []
    person.trust()
    assert compose(person, "one")["helper"].hooks.extensions[0].version != "1.0"


# ---- the same name and the same file


def test_project_goes_before_person_before_package(
    person: Any, site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    source = "from noeta import Extension\nclass P(Extension):\n    name = 'one'\n"
    site.install("noeta-one", {EXTENSIONS: {"one": "shadowed_m:P"}}, shadowed_m=source)
    theirs, mine = person.plugin("one"), person.plugin("one", "x = 1", own=True)
    person.trust()
    catalog = Catalog(person.settings())
    found = [each for each in catalog.entries() if each.name == "one"]
    why = f"{theirs} offers this name too, and comes first"
    assert [(each.path or each.distribution, each.state, each.reason) for each in found] == [
        (str(theirs), "not imported", ""),
        (str(mine), "shadowed", why),
        ("noeta-one", "shadowed", why),
    ]
    said = f"noeta.extensions: 'one' is offered by {theirs}, {mine}, noeta-one 1.0; the first one has it"
    assert said in caplog.messages


def test_a_file_that_is_there_twice_counts_once(person: Any) -> None:
    mine = person.plugin("mine", own=True)
    person.places.project_plugins.mkdir(parents=True)
    (person.places.project_plugins / "mine.py").symlink_to(mine)
    found = [each for each in Catalog(person.settings()).entries() if each.name == "mine"]
    assert [(each.path, each.state) for each in found] == [(str(mine), "not imported")]


def test_a_file_is_run_once_for_all_catalogs_and_all_its_plugins(person: Any) -> None:
    path = person.plugin("one", own=True)
    more = 'class Two(Extension):\n    name = "two"\n    add_to = ("*",)\n'
    path.write_text(MARK + path.read_text() + more)
    assert names(compose(person)) == ["one", "two"]
    assert names(compose(person)) == ["one", "two"]
    assert len(ran()) == 1


# ---- broken ones

HEAD = "from noeta import Extension\n"
BAD = "class P(Extension):\n    name = 'bad'\n    add_to = ('*',)\n"
BROKEN = {
    "def (\n": "it could not be imported: SyntaxError: invalid syntax (bad.py, line 1)",
    "x = 1\n": "it holds no plugin: write a class that derives from Extension, with name = '...'",
    f"{HEAD}1 / 0\n{BAD}": "it could not be imported: ZeroDivisionError: division by zero ({path}, line 2)",
    f"{HEAD}raise SystemExit(3)\n{BAD}": "it could not be imported: SystemExit: 3 ({path}, line 2)",
    f"{HEAD}{BAD}P.name = 'worse'\n": (
        "it could not be imported: TypeError: the name 'worse' of a class is computed; "
        "write it out in the class"
    ),
    f"{HEAD}{BAD}P.add_to = ()\n": "add_to is computed: (); write it out in the class",
    f"from elsewhere_m import Other as Extension\n{BAD}": "its class 'bad' is no subclass of Extension",
}


@pytest.mark.parametrize("source", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_is_an_entry_with_its_reason_and_stops_no_agent(
    person: Any, site: Any, source: str
) -> None:
    site.install("elsewhere", {}, elsewhere_m="class Other: ...\n")
    path = person.write(person.places.user_plugins / "bad.py", source)
    person.plugin("good", own=True)
    catalog = Catalog(person.settings())
    agents = Agents([Agent("helper")], catalog=catalog)
    assert names(agents) == ["good"]
    found = catalog.find("bad")
    why = BROKEN[source].format(path=path)
    assert (found.state, found.reason) == ("failed", why)
    assert why in agents.why("helper", "bad")
    with pytest.raises(
        ComposeError, match=re.escape(f"Plugin 'bad', agent 'helper': {why}. Mend or remove {path}.")
    ):
        Agents([Agent("helper", plugins=["bad"])], catalog=catalog)


@pytest.mark.parametrize(
    "body", ["befor_tool = lambda self, view, call: None", "def before_tool(self, vew): ..."]
)
def test_a_file_whose_hooks_cannot_work_is_left_out_and_named(
    person: Any, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    person.plugin("bad", body, own=True)
    agents = compose(person)
    assert names(agents) == []
    assert "did you mean" in agents.why("helper", "bad")
    assert caplog.messages[0].startswith("agent 'helper' does without: Plugin 'bad', ")


def test_no_agent_starts_without_a_file_that_says_it_is_required(person: Any) -> None:
    path = person.plugin("gate", "required = True", own=True)
    path.write_text(path.read_text() + "1 / 0\n")
    with pytest.raises(ComposeError, match="division by zero"):
        compose(person)


def test_a_file_that_lacks_a_setting_is_left_out_with_the_reason(person: Any) -> None:
    body = "class Settings(__import__('msgspec').Struct):\n    root: str\n"
    person.plugin("needy", body, own=True)
    agents = compose(person)
    assert names(agents) == []
    assert "it is missing. It takes root" in agents.why("helper", "needy")


# ---- switched off and blocked


def test_a_plugin_that_is_switched_off_is_in_no_agent_and_not_imported(person: Any, site: Any) -> None:
    site.install("noeta-one", {EXTENSIONS: {"one": "off_m:P"}}, off_m="raise ValueError('imported')")
    marked(person.plugin("mine", own=True))
    tables = [f"[plugins.{name}]\nenabled = false\n" for name in ("mine", "one", "code")]
    file = person.own("".join(tables))
    code = type("Code", (Extension,), {"name": "code"})()
    agents = compose(person, "one", code)
    assert (names(agents), ran()) == ([], [])
    assert "off_m" not in sys.modules
    for name in ("one", "mine"):
        assert (entry(person, name).state, entry(person, name).reason) == (
            "disabled",
            f"enabled = false in {file}, plugins.{name}.enabled",
        )
        assert f"it is disabled (enabled = false in {file}, plugins.{name}.enabled)" in agents.why(
            "helper", name
        )
    assert f"it is off (enabled = false in {file}, plugins.code.enabled)" in agents.why("helper", "code")


def test_a_required_plugin_of_code_is_not_switched_off_in_silence(person: Any) -> None:
    person.own("[plugins.gate]\nenabled = false\n")
    gate = type("Gate", (Extension,), {"name": "gate", "required": True})()
    with pytest.raises(ComposeError, match="it is required, and off: enabled = false in"):
        compose(person, gate)


@pytest.mark.parametrize("name", ["one", "noeta-one"])
def test_a_package_that_is_blocked_by_a_name_is_not_imported(person: Any, site: Any, name: str) -> None:
    site.install("noeta-one", {EXTENSIONS: {"one": "blocked_m:P"}}, blocked_m="raise ValueError('imported')")
    person.manage(f'[blocked]\nplugins = ["{name}"]\n')
    agents = compose(person, "one")
    assert names(agents) == []
    assert entry(person, "one").state == "blocked"
    assert f"it is blocked ({person.managed} blocks '{name}')" in agents.why("helper", "one")
    assert "blocked_m" not in sys.modules


def test_a_provider_that_is_blocked_is_not_imported(person: Any, site: Any) -> None:
    site.install(
        "noeta-one", {PROVIDERS: {"one": "blocked_p:make"}}, blocked_p="raise ValueError('imported')"
    )
    person.manage('[blocked]\nplugins = ["noeta-one"]\n')
    with pytest.raises(ComposeError, match="blocks 'noeta-one'"):
        Catalog(person.settings()).provider("one")
    assert "blocked_p" not in sys.modules


@pytest.mark.parametrize("name", ["mine", "mine.py", "sneaky"])
def test_a_file_that_is_blocked_by_a_name_is_not_run(person: Any, name: str) -> None:
    path = marked(person.plugin("sneaky", own=True))
    path.rename(path.with_name("mine.py"))
    person.manage(f'[blocked]\nplugins = ["{name}"]\n')
    assert (names(compose(person)), ran()) == ([], [])
    assert entry(person, "sneaky").state == "blocked"


def test_a_file_that_is_blocked_by_its_hash_is_not_run_under_any_name(person: Any) -> None:
    path = marked(person.plugin("mine", own=True))
    person.manage(f'[blocked]\nsha256 = ["{digest(path.read_bytes()).upper()}"]\n')
    path.rename(path.with_name("other.py"))
    assert (names(compose(person)), ran()) == ([], [])
    assert "blocks what has the hash" in entry(person, "mine").reason
    path.with_name("other.py").write_text(path.with_name("other.py").read_text() + "#\n")
    assert names(compose(person)) == ["mine"]


def test_a_package_that_is_blocked_by_its_hash_is_not_imported(person: Any, site: Any) -> None:
    package = site.folder / "hashed_m"
    package.mkdir()
    (package / "__init__.py").write_text("raise ValueError('imported')\n")
    (package / "more.py").write_text("x = 1\n")
    site.install("noeta-one", {EXTENSIONS: {"one": "hashed_m.more:P"}})
    content = Catalog(person.settings()).content("one")
    person.manage(f'[blocked]\nsha256 = ["{content}"]\n')
    assert entry(person, "one").state == "blocked"
    (package / "more.py").write_text("x = 2\n")
    assert entry(person, "one").state == "not imported"
    assert "hashed_m" not in sys.modules


def test_a_plugin_of_code_that_is_blocked_is_left_out(person: Any) -> None:
    person.manage('[blocked]\nplugins = ["code"]\n')
    assert names(compose(person, type("Code", (Extension,), {"name": "code"})())) == []


def test_a_list_of_every_place_is_added_up_so_that_no_place_drops_what_another_says(person: Any) -> None:
    body = """
        from typing import Annotated
        import msgspec
        from noeta import Extension
        from noeta.toolkit.settings import EVERY_PLACE
        class Settings(msgspec.Struct):
            deny: Annotated[list[str], EVERY_PLACE] = []
            plain: list[str] = []
        class Rules(Extension):
            name = "rules"
            Settings = Settings
    """
    person.write(person.places.user_plugins / "rules.py", body)
    person.environ["WHO"] = "eve"
    file = person.own("[plugins.rules]\ndeny = ['own', {env = 'WHO'}]\nplain = ['own']\n")
    person.bring("[plugins.rules]\ndeny = []\nplain = []\n")
    person.trust()
    assert compose(person, "rules")["helper"].hooks.extensions[0].settings.deny == ["own", "eve"]
    person.manage("[plugins.rules]\ndeny = ['managed']\nplain = ['managed']\n")
    [plugin] = compose(person, "rules")["helper"].hooks.extensions
    assert (plugin.settings.deny, plugin.settings.plain) == (["managed", "own", "eve"], ["managed"])
    code = type(plugin)(deny=["code"], plain=["code"])
    [made] = compose(person, code)["helper"].hooks.extensions
    assert (made.settings.deny, made.settings.plain) == (["managed", "code"], ["managed"])
    file.write_text("[plugins.rules]\ndeny = 'all'\n")
    with pytest.raises(SettingsError, match=re.escape(f"{file}, plugins.rules.deny: expected a list")):
        compose(person, "rules")


def test_an_instance_of_a_blocked_package_is_left_out(person: Any, site: Any) -> None:
    source = "from noeta import Extension\nclass P(Extension):\n    name = 'one'\n"
    site.install("noeta-one", {EXTENSIONS: {"one": "instance_m:P"}}, instance_m=source)
    plugin = Catalog(person.settings()).extension("one")
    person.manage('[blocked]\nplugins = ["noeta-one"]\n')
    assert names(compose(person, plugin)) == []
    person.manage(f'[blocked]\nsha256 = ["{Catalog(person.settings()).content("one")}"]\n')
    assert names(compose(person, plugin)) == []


def test_settings_that_rule_go_before_those_of_an_instance(person: Any) -> None:
    struct = msgspec.defstruct("Settings", [("a", int, 1), ("b", int, 1)])
    code = type("Code", (Extension,), {"name": "code", "Settings": struct})
    plugin = code(a=2, b=2)
    person.own("[plugins.code]\na = 5\nb = 5\n")
    assert compose(person, plugin)["helper"].hooks.extensions[0] is plugin
    person.manage("[plugins.code]\na = 3\n")
    [made] = compose(person, plugin)["helper"].hooks.extensions
    assert (made.settings, plugin.settings) == (struct(a=3, b=2), struct(a=2, b=2))


# ---- safe mode


def test_safe_mode_uses_no_file_and_no_package_of_strangers(person: Any, site: Any) -> None:
    plugin = "from noeta import Extension\nclass P(Extension):\n    name = '{}'\n"
    site.install("noeta-ours", {EXTENSIONS: {"ours": "ours_m:P"}}, ours_m=plugin.format("ours"))
    site.install("noeta-theirs", {EXTENSIONS: {"theirs": "theirs_m:P"}}, theirs_m=plugin.format("theirs"))
    site.install("noeta", {}, "9.0")
    with (site.folder / "noeta-9.0.dist-info" / "METADATA").open("a") as file:
        file.write("Provides-Extra: ours\nRequires-Dist: noeta-ours==1.0; extra == 'ours'\n")
        file.write("Requires-Dist: noeta-theirs\n")
    marked(person.plugin("mine", own=True))
    assert names(compose(person, "ours", "theirs")) == ["ours", "theirs", "mine"]
    agents = compose(person, "ours", "theirs", safe=True)
    assert names(agents) == ["ours"]
    for name in ("theirs", "mine"):
        assert (entry(person, name, safe=True).state) == "blocked"
        assert "safe mode leaves it out" in agents.why("helper", name)


# ---- reading without running


def test_a_class_is_a_plugin_if_it_derives_from_one_and_has_a_name() -> None:
    source = b"""
import noeta
from noeta import Extension as E, Tool, ToolSet
from somewhere import Their
from dataclasses import dataclass
class A(E):
    name = "a"
    add_to = ("*", "coder")
class B(A):
    name: str = "b"
    required = True
class C(Their):
    name = "c"
    add_to = make()
class D(noeta.Extension):
    name = "d"
    add_to = ["x"]
class Nameless(E): ...
class Computed(E):
    name = "x" + "y"
class AToolIsNone(Tool):
    name = "tool"
class NorIsThis:
    name = "plain"
def f():
    class Inner(E):
        name = "inner"
"""
    assert declared(source, "f.py") == [
        Declared(name="a", add_to=("*", "coder"), line=6),
        Declared(name="b", add_to=("*", "coder"), required=True, line=9),
        Declared(name="c", line=12, fault=NO_TUPLE),
        Declared(name="d", line=15, fault=NO_TUPLE),
    ]


def test_a_name_that_nothing_offers_is_told_apart(person: Any) -> None:
    person.plugin("mine", own=True)
    agents = compose(person)
    assert agents.why("helper", "mime") == (
        "Plugin 'mime' is not in agent 'helper': nothing here has this name (did you mean 'mine'?)."
    )
    with pytest.raises(ValueError, match="there is no agent 'helpr'"):
        agents.why("helpr", "mine")
