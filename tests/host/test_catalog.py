"""What is installed is found by name and imported when it is used; what is broken stands in nobody's way."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

from noeta.core.errors import SettingsError
from noeta.host.agents import Agents
from noeta.host.catalog import GROUPS, Catalog, Entry
from noeta.host.settings import as_settings
from noeta.testing.nowhere import Nowhere
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import ComposeError

EXTENSIONS, PROVIDERS, STORES = "noeta.extensions", "noeta.providers", "noeta.stores"
READERS = "noeta.readers"
BY_URL = {STORES, READERS}
PLUGIN = """
    from noeta import Extension

    class Plugin(Extension):
        name = "{name}"
"""


def plugin(name: str) -> str:
    return PLUGIN.format(name=name)


def of(catalog: Catalog, *distributions: str) -> list[Entry]:
    return [entry for entry in catalog.entries() if entry.distribution in distributions]


def states(catalog: Catalog, *distributions: str) -> dict[str, str]:
    return {entry.name: entry.state for entry in of(catalog, *distributions)}


# ---- listing


def test_listing_names_what_every_distribution_offers_and_imports_none_of_it(site: Any) -> None:
    loud = "print('imported')\nraise SystemExit(3)\n"
    points = {group: {f"one{i}": "loud_one:thing"} for i, group in enumerate(GROUPS)}
    site.install("one", points, "2.1", loud_one=loud)
    run = site.run("""
        import sys
        from noeta.host.catalog import Catalog
        for entry in Catalog().entries():
            if entry.distribution == "one":
                print(entry.group, entry.name, entry.version, entry.state, entry.seconds, repr(entry.reason))
        print("loud_one" in sys.modules)
    """)
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        "noeta.environments one4 2.1 not imported None ''",
        "noeta.extensions one0 2.1 not imported None ''",
        "noeta.providers one1 2.1 not imported None ''",
        "noeta.readers one3 2.1 not imported None ''",
        "noeta.stores one2 2.1 not imported None ''",
        "False",
    ]


def test_a_distribution_of_the_old_form_is_listed_too(site: Any) -> None:
    info = site.folder / "noeta_old-1.2.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: noeta-old\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[noeta.extensions]\nold = old_m:Old\n")
    [entry] = of(Catalog(), "noeta-old")
    assert (entry.name, entry.version, entry.state) == ("old", "1.2", "not imported")


def test_installed_packages_are_looked_at_only_when_a_name_is_asked_for(site: Any) -> None:
    run = site.run("""
        import sys
        from noeta import Agent, Extension, Host, ToolSet
        from noeta.host.catalog import Catalog
        host = Host([Agent("a", model="test:model", plugins=[ToolSet([])])])
        print("importlib_metadata" in sys.modules)
        host.catalog.entries()
        print("importlib_metadata" in sys.modules)
    """)
    assert (run.stdout, run.stderr) == ("False\nTrue\n", "")


def test_other_groups_are_not_listed(site: Any) -> None:
    site.install("one", {"noeta.cli": {"main": "m:main"}, "console_scripts": {"one": "m:main"}})
    assert of(Catalog(), "one") == []


def test_a_distribution_that_cannot_be_read_is_named_and_hides_no_other(
    site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a-bytes", "b-line", "c-nameless", "d-good"):
        site.install(name, {EXTENSIONS: {name: "m:M"}})
    (site.folder / "a_bytes-1.0.dist-info" / "entry_points.txt").write_bytes(
        b"[noeta.extensions]\nx = \xff:x\n"
    )
    (site.folder / "b_line-1.0.dist-info" / "entry_points.txt").write_text("[noeta.extensions]\nno value\n")
    (site.folder / "c_nameless-1.0.dist-info" / "METADATA").unlink()
    names = [entry.name for entry in of(Catalog(), "a-bytes", "b-line", "c-nameless", "d-good")]
    assert names == ["d-good"]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert all("cannot be read, so what it offers is unknown" in line for line in said)


def test_a_distribution_that_is_on_the_path_twice_is_one(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = site.folder / "first"
    first.mkdir()
    site.install("some.plugin", {EXTENSIONS: {"some": "m:M"}}, "1.0")
    type(site)(first).install("Some_Plugin", {EXTENSIONS: {"some": "m:M"}}, "2.0")
    monkeypatch.syspath_prepend(first)
    [entry] = of(Catalog(), "some.plugin", "Some_Plugin")
    assert (entry.version, entry.state) == ("2.0", "not imported")


# ---- using


def test_a_plugin_is_imported_when_it_is_asked_for_and_only_once(site: Any) -> None:
    site.install("noeta-one", {EXTENSIONS: {"one": "one_m:Plugin"}}, "2.1", one_m=plugin("one"))
    catalog = Catalog()
    first, second = catalog.extension("one"), catalog.extension("one")
    assert (first.name, first.version) == ("one", "2.1")
    assert first is not second
    assert type(first) is type(second) is sys.modules["one_m"].Plugin
    [entry] = of(catalog, "noeta-one")
    assert entry.state == "imported"
    assert entry.seconds is not None
    assert entry.seconds > 0


def test_a_plugin_that_states_its_version_keeps_it(site: Any) -> None:
    source = plugin("one") + '        version = "mine"\n'
    site.install("noeta-one", {EXTENSIONS: {"one": "one_m:Plugin"}}, "2.1", one_m=source)
    assert Catalog().extension("one").version == "mine"


def test_what_a_module_prints_while_it_is_imported_leaves_standard_output_alone(site: Any) -> None:
    source = '    print("imported")' + plugin("one")
    site.install("noeta-one", {EXTENSIONS: {"one": "one_m:Plugin"}}, one_m=source)
    run = site.run("""
        from noeta.host.catalog import Catalog
        print(Catalog().extension("one").name)
        print("answer")
    """)
    assert (run.stdout, run.stderr) == ("one\nanswer\n", "imported\n")


BROKEN = {
    "import no_such_module\n": "ModuleNotFoundError: No module named 'no_such_module' ({file}, line 1)",
    "x = 1\nx / 0\n": "ZeroDivisionError: division by zero ({file}, line 2)",
    "raise SystemExit(3)\n": "SystemExit: 3 ({file}, line 1)",
    "class End(BaseException): pass\nraise End('now')\n": "End: now ({file}, line 2)",
    "x = 1\n": "AttributeError: module 'broken_m' has no attribute 'Plugin'",
    "def (\n": "SyntaxError: invalid syntax (broken_m.py, line 1)",
}


@pytest.mark.parametrize("source", BROKEN, ids=[value.partition(":")[0] for value in BROKEN.values()])
def test_a_plugin_that_cannot_be_imported_is_an_entry_with_its_reason(site: Any, source: str) -> None:
    site.install("noeta-broken", {EXTENSIONS: {"broken": "broken_m:Plugin"}}, broken_m=source)
    site.install("noeta-whole", {EXTENSIONS: {"whole": "whole_m:Plugin"}}, whole_m=plugin("whole"))
    catalog = Catalog()
    with pytest.raises(ComposeError) as caught:
        Agents([Agent("helper", plugins=["whole", "broken"])], catalog=catalog)
    why = BROKEN[source].format(file=site.folder / "broken_m.py")
    assert str(caught.value) == (
        f"Plugin 'broken', agent 'helper': it could not be imported: {why}. Mend or remove noeta-broken 1.0."
    )
    assert states(catalog, "noeta-broken", "noeta-whole") == {"broken": "failed", "whole": "imported"}
    [entry] = of(catalog, "noeta-broken")
    assert entry.reason == f"it could not be imported: {why}"
    assert Agents([Agent("helper", plugins=["whole"])], catalog=catalog)["helper"].plugins[0].name == "whole"


def test_a_module_that_is_not_there_is_told_without_a_place(site: Any) -> None:
    site.install("noeta-gone", {EXTENSIONS: {"gone": "gone_m:Plugin"}})
    with pytest.raises(ComposeError, match=r"No module named 'gone_m'\. Mend or remove noeta-gone 1\.0\."):
        Catalog().extension("gone")


def test_a_plugin_that_failed_is_not_imported_again(site: Any) -> None:
    source = "import sys\nsys.tried = getattr(sys, 'tried', 0) + 1\nraise ValueError('no')\n"
    site.install("noeta-broken", {EXTENSIONS: {"broken": "broken_m:Plugin"}}, broken_m=source)
    run = site.run("""
        import sys
        from noeta.host.catalog import Catalog
        from noeta.toolkit.errors import ComposeError
        catalog = Catalog()
        for _ in range(2):
            try:
                catalog.extension("broken")
            except ComposeError as error:
                print(error.why.partition(" (")[0])
        print(sys.tried)
    """)
    assert run.stdout.splitlines() == ["it could not be imported: ValueError: no"] * 2 + ["1"]


def test_a_person_who_interrupts_an_import_is_obeyed(site: Any) -> None:
    source = "raise KeyboardInterrupt\n"
    site.install("noeta-slow", {EXTENSIONS: {"slow": "slow_m:Plugin"}}, slow_m=source)
    catalog = Catalog()
    with pytest.raises(KeyboardInterrupt):
        catalog.extension("slow")
    assert states(catalog, "noeta-slow") == {"slow": "not imported"}


def test_a_store_has_a_reader_when_something_installed_reads_such_stores(site: Any) -> None:
    source = """
        class Looks:
            def __init__(self, url, settings):
                self.made_of = url, settings

            def task(self, *given, **more): ...

            tasks = read = messages = inbox = timers = snapshot = read_blob = task
    """
    site.install("noeta-paper", {READERS: {"paper": "paper_m:Looks"}}, paper_m=source)
    settings = as_settings({"stores": {"paper": {"sheets": 3}}}, {})
    catalog = Catalog(settings)
    reader: Any = catalog.reader("paper:here")
    assert reader.made_of == ("paper:here", {"sheets": 3})
    assert catalog.reader("stone:here") is None
    with pytest.raises(ValueError, match="it has no scheme"):
        catalog.reader("paper")
    with pytest.raises(ComposeError, match=r"no installed store has this name; it is a reader"):
        catalog.store("paper:here")


# ---- wrong things

WRONG = {
    "wrong_m": "wrong_m is of type module, not a class",
    "wrong_m:number": "wrong_m:number is of type int, not a class",
    "wrong_m:make": "wrong_m:make is of type function, not a class",
    "wrong_m:Other": "wrong_m:Other is no subclass of Extension",
    "wrong_m:Nameless": "its class has the name None, and its entry point 'wrong'; they must be the same",
    "wrong_m:Misnamed": "its class has the name 'rong', and its entry point 'wrong'; they must be the same",
    "wrong-m:Other": "it could not be imported: ValueError",
}


@pytest.mark.parametrize("value", WRONG)
def test_what_is_no_plugin_of_that_name_is_refused(site: Any, value: str) -> None:
    source = """
        from noeta import Extension
        number = 7
        def make(): ...
        class Other: ...
        class Nameless(Extension): ...
        class Misnamed(Extension):
            name = "rong"
    """
    site.install("noeta-wrong", {EXTENSIONS: {"wrong": value}}, wrong_m=source)
    catalog = Catalog()
    with pytest.raises(ComposeError, match=re.escape(WRONG[value])):
        catalog.extension("wrong")
    assert states(catalog, "noeta-wrong") == {"wrong": "failed"}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("wrong_m", "wrong_m is of type module, not a factory"),
        ("wrong_m:number", "wrong_m:number is of type int, not a factory"),
        ("wrong_m:later", "its factory is async"),
        ("wrong_m:nothing", "its factory gave a NoneType, which has no 'aclose'"),
    ],
)
@pytest.mark.parametrize("group", [group for group in GROUPS if group != EXTENSIONS])
def test_what_is_no_factory_of_its_port_is_refused(site: Any, group: str, value: str, says: str) -> None:
    source = "number = 7\nasync def later(*given): ...\ndef nothing(*given): ...\n"
    site.install("noeta-wrong", {group: {"wrong": value}}, wrong_m=source)
    catalog = Catalog()
    first = {STORES: "aclose", READERS: "inbox", PROVIDERS: "aclose"}.get(group, "cwd")
    says = says.replace("aclose", first)
    asks = {STORES: catalog.store, READERS: catalog.reader, PROVIDERS: catalog.provider}
    ask = asks.get(group, catalog.env)
    kind = GROUPS[group].capitalize()
    with pytest.raises(ComposeError, match=re.escape(f"{kind} 'wrong', {group}: {says}")):
        ask("wrong:" if group in BY_URL else "wrong")


@pytest.mark.parametrize("raises", ["sys.exit(3)", "raise asyncio.CancelledError"])
@pytest.mark.parametrize("group", GROUPS)
def test_one_that_ends_the_process_when_it_is_called_is_refused(site: Any, group: str, raises: str) -> None:
    source = f"""
        import asyncio, sys
        from noeta import Extension

        class Ends(Extension):
            name = "ends"

            def __init__(self, *given):
                {raises}

        def ends(*given):
            {raises}
    """
    value = "ends_m:Ends" if group == EXTENSIONS else "ends_m:ends"
    site.install("noeta-ends", {group: {"ends": value}}, ends_m=source)
    catalog = Catalog()
    asks: dict[str, Callable[[str], object]] = {EXTENSIONS: catalog.extension, STORES: catalog.store}
    asks |= {READERS: catalog.reader, PROVIDERS: catalog.provider}
    with pytest.raises(ComposeError, match=r"(SystemExit|CancelledError)"):
        asks.get(group, catalog.env)("ends:" if group in BY_URL else "ends")


def test_a_plugin_that_cannot_do_without_settings_says_which(site: Any) -> None:
    source = """
        import msgspec
        from noeta import Extension

        class Settings(msgspec.Struct):
            root: str

        class Plugin(Extension):
            name = "one"
            Settings = Settings
    """
    site.install("noeta-one", {EXTENSIONS: {"one": "one_m:Plugin"}}, one_m=source)
    with pytest.raises(SettingsError, match="'one', setting 'root': it is missing"):
        Catalog().extension("one")


LOOKED_AT = {
    "its name": """
        class Meta(type):
            @property
            def name(cls):
                raise ValueError("there is none")
    """,
    "its version": """
        class Meta(type):
            name = "odd"

            def __setattr__(cls, name, value):
                raise ValueError("there is none")
    """,
}


@pytest.mark.parametrize("meta", LOOKED_AT.values(), ids=LOOKED_AT)
def test_a_class_that_raises_when_it_is_looked_at_is_an_entry_with_its_reason(site: Any, meta: str) -> None:
    source = dedent(meta) + dedent("""
        from noeta import Extension

        class Plugin(Extension, metaclass=Meta):
            version = ""
    """)
    site.install("odd", {EXTENSIONS: {"odd": "odd_class:Plugin"}}, odd_class=source)
    catalog = Catalog()
    with pytest.raises(ComposeError, match="it cannot be looked at: ValueError: there is none"):
        catalog.extension("odd")
    assert states(catalog, "odd") == {"odd": "failed"}


def test_a_plugin_that_ends_the_process_when_it_is_made_is_refused(site: Any) -> None:
    source = plugin("quits") + "\n        def __init__(self):\n            raise SystemExit(4)\n"
    site.install("quits", {EXTENSIONS: {"quits": "quitting:Plugin"}}, quitting=source)
    with pytest.raises(ComposeError, match="SystemExit: 4"):
        Catalog().extension("quits")


def test_a_plugin_that_cannot_be_made_without_arguments_says_so(site: Any) -> None:
    source = plugin("one") + "        def __init__(self, root): ...\n"
    site.install("noeta-one", {EXTENSIONS: {"one": "one_m:Plugin"}}, one_m=source)
    with pytest.raises(ComposeError, match=r"TypeError.*'root'\. Give an instance of it instead of the name"):
        Catalog().extension("one")


# ---- names


def test_of_two_distributions_with_one_name_the_first_in_the_alphabet_has_it(
    site: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install("b-plugins", {EXTENSIONS: {"one": "b_m:Plugin"}}, "9.0", b_m=plugin("one"))
    later = site.folder / "later"
    later.mkdir()
    type(site)(later).install("A_plugins", {EXTENSIONS: {"one": "z_m:Plugin"}}, "0.1", z_m=plugin("one"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(later)])
    catalog = Catalog()
    with caplog.at_level(logging.WARNING, "noeta"):
        assert type(catalog.extension("one")).__module__ == "z_m"
        catalog.extension("one")
        catalog.entries()
    said = "noeta.extensions: 'one' is offered by A_plugins 0.1, b-plugins 9.0; the first one has it"
    assert [record.getMessage() for record in caplog.records] == [said]
    assert [
        (entry.distribution, entry.state, entry.reason) for entry in catalog.entries() if entry.name == "one"
    ] == [
        ("A_plugins", "imported", ""),
        ("b-plugins", "shadowed", "A_plugins offers this name too, and comes first"),
    ]
    assert "b_m" not in sys.modules


def test_a_first_one_that_is_broken_is_not_passed_over_in_silence(site: Any) -> None:
    site.install("a-plugins", {EXTENSIONS: {"one": "a_m:Plugin"}}, a_m="1 / 0\n")
    site.install("b-plugins", {EXTENSIONS: {"one": "b_m:Plugin"}}, b_m=plugin("one"))
    with pytest.raises(ComposeError, match=r"division by zero .*Mend or remove a-plugins 1\.0"):
        Catalog().extension("one")


def test_an_unknown_name_says_what_may_have_been_meant(site: Any) -> None:
    site.install("noeta-one", {EXTENSIONS: {"reminders": "m:M"}, PROVIDERS: {"anthropic": "m:make"}})
    catalog = Catalog()
    for ask, says in (
        (
            lambda: catalog.extension("remainders"),
            "no installed plugin has this name (did you mean 'reminders'?)",
        ),
        (lambda: catalog.extension("anthropic"), "no installed plugin has this name; it is a provider"),
        (
            lambda: catalog.provider("antropic"),
            "no installed provider has this name (did you mean 'anthropic'?)",
        ),
        (lambda: catalog.store("reminders:x"), "no installed store has this name; it is a plugin"),
        (lambda: catalog.env("zzz"), "no installed environment has this name. Install what has it"),
    ):
        with pytest.raises(ComposeError, match=re.escape(says)):
            ask()


@pytest.mark.parametrize("text", ["noeta.db", ":noeta.db", ""])
def test_a_store_without_a_scheme_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{text!r} names no store") + ".*'sqlite:noeta.db'"):
        Catalog().store(text)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"max_tokens": float("nan")},
            "Agent 'a', max_tokens: nan is no number of tokens. Write a whole number",
        ),
        ({"max_tokens": 0}, "max_tokens: 0 is no number of tokens"),
        ({"max_tokens": True}, "max_tokens: True is no number of tokens"),
        (
            {"effort": "hihg"},
            "Agent 'a', effort: 'hihg' is no effort (did you mean 'high'?). Choose one of low",
        ),
        ({"model": None}, "Agent 'a', model: it is of type NoneType, not a text. Write model='...'"),
        ({"prompt": ["Be brief."]}, "Agent 'a', prompt: it is of type list, not a text"),
    ],
)
def test_what_an_agent_cannot_say_of_itself_is_refused_when_it_is_composed(fields: Any, says: str) -> None:
    with pytest.raises(ComposeError, match=re.escape(says)):
        Agents([Agent("a", **fields)])


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        ({"tools": "read"}, "Tool 'read', agent 'a': tools is a text. Write tools=['read']"),
        ({"denied": "read"}, "Tool 'read', agent 'a': denied is a text. Write denied=['read']"),
        ({"fallbacks": "x:y"}, "Model 'x:y', agent 'a': fallbacks is a text. Write fallbacks=['x:y']"),
        ({"tools": 5}, "Tool '5', agent 'a': tools is no list. Write a list of names"),
        (
            {"denied": [Nowhere()]},
            "Tool 'Nowhere', agent 'a': denied holds a Nowhere, not a name. Write its name",
        ),
        ({"fallbacks": [None]}, "Model 'NoneType', agent 'a': fallbacks holds a NoneType, not a name"),
    ],
)
def test_what_is_no_list_of_names_is_refused_when_the_agent_is_composed(lists: Any, says: str) -> None:
    with pytest.raises(ComposeError, match=re.escape(says)):
        Agents([Agent("a", **lists)])


def test_a_text_in_the_place_of_a_list_of_plugins_is_refused() -> None:
    with pytest.raises(ComposeError, match=r"Plugin 'fs', agent 'a': plugins is a text\. Write \['fs'\]"):
        Agents([Agent("a", plugins="fs")])


def test_agents_that_name_a_plugin_share_it_and_keep_its_place(site: Any) -> None:
    site.install("noeta-one", {EXTENSIONS: {"one": "one_m:Plugin"}}, "2.1", one_m=plugin("one"))
    site.install("noeta-two", {EXTENSIONS: {"two": "two_m:Plugin"}}, "0.3", two_m=plugin("two"))
    mine = Catalog().extension("two")
    agents = Agents([Agent("a", plugins=["one", mine]), Agent("b", plugins=["two", "one"])])
    known = [(p.name, p.version) for p in agents["b"].plugins]
    assert known == [("two", "0.3"), ("one", "2.1")]
    of_a, of_b = (agents.by_name[name].plugins for name in "ab")
    assert of_a[0] is of_b[1]
    assert of_a[1] is mine is not of_b[0]


def test_a_plugin_named_twice_is_refused(site: Any) -> None:
    site.install("noeta-one", {EXTENSIONS: {"one": "one_m:Plugin"}}, one_m=plugin("one"))
    with pytest.raises(ComposeError, match="have the same name"):
        Agents([Agent("a", plugins=["one", "one"])])
