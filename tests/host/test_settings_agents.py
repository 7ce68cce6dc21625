"""Agents come from settings, with a model that has a reason, and `coder` stays within its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from noeta.core.errors import ProviderError, SettingsError
from noeta.core.extension import Extension
from noeta.core.gates import Rewrite
from noeta.core.parts import ToolChanges
from noeta.core.tool import ToolContext, ToolFlags, ToolOutput, text_output
from noeta.host.catalog import EXTENSIONS, PROVIDERS, STORES, Catalog
from noeta.host.coder import NO_PERMISSIONS, SMALL, STANDARD, Bounds, coder
from noeta.host.host import Host
from noeta.host.model_choice import choose_model
from noeta.host.settings import as_settings
from noeta.host.settings_agents import agents_from
from noeta.testing.scripted_provider import ScriptedProvider, call, reply
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.provider import ModelInfo
from noeta.toolkit.tool_set import ToolSet

PLUGIN = "from noeta import Extension\nclass P(Extension):\n    name = '{}'\n"


def agents(person: Any, **more: Any) -> Mapping[str, Agent]:
    made = agents_from(Catalog(person.settings()), **more)
    return {agent.name: agent for agent in made}


def names(agent: Agent) -> list[str]:
    return [each if isinstance(each, str) else each.name for each in agent.plugins]


# ---- agents


def test_a_table_is_an_agent(person: Any) -> None:
    person.own("""
        [models.fast]
        model = "openai:mini"
        fallbacks = ["anthropic:haiku"]
        [agents.reviewer]
        model = "fast"
        prompt = "You review."
        plugins = ["fs"]
        tools = ["Read"]
        denied = ["Write"]
        fallbacks = ["other:model"]
        prompts = {"tool/Read" = "Read it."}
        identity = "I am."
        description = "Reviews."
        effort = "high"
        max_tokens = 9
        [agents.empty]
    """)
    found = agents(person)
    assert [*found] == ["coder", "empty", "reviewer"]
    assert found["reviewer"] == Agent(
        "reviewer",
        model="openai:mini",
        prompt="You review.",
        plugins=["fs"],
        tools=["Read"],
        denied=["Write"],
        fallbacks=["anthropic:haiku", "other:model"],
        prompts={"tool/Read": "Read it."},
        identity="I am.",
        description="Reviews.",
        effort="high",
        max_tokens=9,
    )
    assert found["empty"] == Agent("empty", model="llamacpp:smollm2", fallbacks=[])


def test_a_plugin_that_settings_name_and_nobody_has_is_told_with_the_agent(person: Any) -> None:
    person.own('[agents.reviewer]\nplugins = ["no-such"]\n')
    settings = person.settings()
    with pytest.raises(ComposeError, match="Plugin 'no-such', agent 'reviewer': no installed plugin"):
        Host(agents_from(Catalog(settings)), store="memory:", settings=settings)


def test_what_a_program_says_of_an_agent_goes_before_files_but_not_before_the_command_line(
    person: Any,
) -> None:
    person.own('[agents.mine]\nprompt = "file"\nmodel = "file:model"\ndescription = "file"\n')
    given = [Agent("mine", model="code:model", prompt="code", description="code")]
    found = agents(person, given=given)["mine"]
    assert (found.model, found.prompt, found.description) == ("code:model", "code", "code")
    person.manage('[agents.mine]\nprompt = "managed"\nmodel = "managed:model"\n')
    found = agents(person, given=given)["mine"]
    assert (found.model, found.prompt, found.description) == ("managed:model", "managed", "code")


# ---- the model


def test_the_model_is_that_of_the_first_who_names_one_and_says_who_that_was(person: Any) -> None:
    def chosen(**more: Any) -> tuple[str, str]:
        found = choose_model(person.settings(), "coder", **more)
        return found.model, found.reason

    local = ("llamacpp:smollm2", "no settings name one, and no key for a model was found")
    assert chosen() == (local[0], f"The model is {local[0]}, since {local[1]}.")
    person.environ |= {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": ""}
    assert chosen() == (
        "openai:gpt-5",
        "The model is openai:gpt-5, since no settings name one, and OPENAI_API_KEY is set.",
    )
    passed = "OPENAI_API_KEY is set, but provider 'openai' is not installed"
    assert chosen(providers=["anthropic"]) == (
        local[0],
        f"The model is {local[0]}, since {local[1]}; {passed}.",
    )
    file = person.own('model = "mine:model"\n')
    assert chosen() == ("mine:model", f"The model is mine:model, since {file}, model names it.")
    person.own('model = "fast"\n[models.fast]\nmodel = "mine:fast"\n')
    why = f"{file}, model names it; 'fast' means that in {file}, models.fast.model"
    assert chosen() == ("mine:fast", f"The model is mine:fast, since {why}.")
    person.own('model = "mine:model"\n[agents.coder]\nmodel = "agent:model"\n')
    why = f"agent 'coder' has it in {file}, agents.coder.model"
    assert chosen() == ("agent:model", f"The model is agent:model, since {why}.")
    assert chosen(own="code:model")[0] == "code:model"
    assert chosen(flag="flag:model", own="code:model") == (
        "flag:model",
        "The model is flag:model, since the command line names it.",
    )
    person.manage('model = "managed:model"\n')
    person.own("")
    assert chosen(flag="flag:model")[0] == "managed:model"


def test_a_project_that_is_not_trusted_does_not_choose_the_model(person: Any) -> None:
    person.bring(
        'model = "evil:model"\n[models."fast"]\nmodel = "evil:model"\n[agents.coder]\nmodel = "evil:model"\n'
    )
    assert agents(person)["coder"].model == "llamacpp:smollm2"
    assert agents(person, model="fast")["coder"].model == "fast"


# ---- coder


class Tool:
    description = "A tool."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}
    clearable = False

    def __init__(self, name: str, read_only: bool, text: str = "done") -> None:
        self.name, self.read_only, self.flags, self.calls = name, read_only, ToolFlags(), 0
        self._text = text

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        self.calls += 1
        return text_output(self._text)


class Late(Extension):
    """Adds a tool when the others are known, and rewrites calls of `Sly` to it."""

    name = "late"

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    def tool_changes(self, view: Any, offered: Any) -> ToolChanges:
        return ToolChanges(add=[self.tool])

    async def before_tool(self, view: Any, call: Any) -> Any:
        return Rewrite({}, name=self.tool.name) if call.name == "Read" and call.input else None


class Sized(ScriptedProvider):
    parameters: int | None = None

    def model_info(self, model: str) -> ModelInfo:
        return ModelInfo(parameters=self.parameters)


async def offered(
    *plugins: Any, parameters: int | None = None, script: Any = ("Hello.",)
) -> tuple[list[str], Any]:
    """The tools of the last request of `coder` with these plugins, and the log of its task."""
    provider = Sized(list(script))
    provider.parameters = parameters
    agent = Agent("coder", model="short", plugins=[*plugins, Bounds()])
    settings = {"models": {"short": {"model": "test:model"}}}
    providers = {"test": provider, "other": ScriptedProvider([])}
    async with Host([agent], providers=providers, settings=settings) as host:
        outcome = await host.run("coder", "Go.")
        assert outcome.status == "done", outcome
        return [tool.name for tool in provider.requests[-1].tools], await host.log(outcome.task)


def told(log: Any) -> str:
    """What the model was told of its calls."""
    return "".join(str(record.message) for record in log if record.kind == "tool_finished")


TOOLS = [("Read", True), ("Glob", True), ("Grep", True), ("Write", False)]


def tools() -> tuple[ToolSet, Late]:
    return ToolSet([Tool(*each) for each in TOOLS]), Late(Tool("Deploy", False))


@pytest.mark.anyio
async def test_coder_only_reads_while_nobody_decides_about_its_calls() -> None:
    assert (await offered(*tools()))[0] == ["Read", "Glob", "Grep"]
    permissions = type("Permissions", (Extension,), {"name": "permissions"})()
    assert (await offered(*tools(), permissions))[0] == ["Read", "Glob", "Grep", "Write", "Deploy"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("parameters", "found"), [(135_000_000, 2), (999_999_999, 2), (1_000_000_000, 3), (None, 3)]
)
async def test_a_small_model_is_offered_two_tools(parameters: int | None, found: int) -> None:
    assert (await offered(*tools(), parameters=parameters))[0] == ["Read", "Glob", "Grep"][:found]
    permissions = type("Permissions", (Extension,), {"name": "permissions"})()
    made, _ = await offered(*tools(), permissions, parameters=parameters)
    assert made == (["Read", "Glob"] if found == 2 else ["Read", "Glob", "Grep", "Write", "Deploy"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "made", [call("Write"), call("Deploy"), call("Read", rewrite="me")], ids=["own", "late", "sly"]
)
async def test_a_call_out_of_bounds_does_not_run_however_it_came_about(made: Any) -> None:
    set_, late = tools()
    _, log = await offered(set_, late, script=[reply("", made), "Well."])
    assert late.tool.calls == 0
    assert [tool.calls for tool in set_.tools(None)] == [0, 0, 0, 0]
    assert NO_PERMISSIONS in told(log)


@pytest.mark.anyio
async def test_a_call_of_what_is_not_offered_is_answered_before_any_gate() -> None:
    _, log = await offered(*tools(), script=[reply("", call("Write")), "Well."])
    assert "gated" not in {record.kind for record in log}


@pytest.mark.anyio
async def test_a_small_model_that_calls_another_tool_is_told_why() -> None:
    set_, late = tools()
    _, log = await offered(set_, late, parameters=1, script=[reply("", call("Grep")), "Well."])
    assert SMALL in told(log)


def test_a_model_that_nobody_knows_is_not_small() -> None:
    def unknown(model: str) -> ModelInfo:
        raise ProviderError("invalid", "no such model")

    bounds = Bounds()
    assert not bounds._is_small("x:y")
    bounds.lend(unknown)
    assert not bounds._is_small("x:y")


def test_coder_has_what_is_installed_of_the_standard_plugins(person: Any, site: Any) -> None:
    for name in ("shell", "permissions", "stranger"):
        site.install(
            f"noeta-{name}", {EXTENSIONS: {name: f"std_{name}:P"}}, **{f"std_{name}": PLUGIN.format(name)}
        )
    agent = coder(Catalog(person.settings()))
    installed = names(agent)
    assert installed[-2:] == ["permissions", "coder"]
    assert "shell" in installed
    assert set(installed) <= {*STANDARD, "coder"}


def test_settings_give_coder_another_list_and_its_bounds_stay(person: Any) -> None:
    person.own('[agents.coder]\nplugins = ["mine"]\nprompt = "Be quick."\n')
    agent = agents(person)["coder"]
    assert (names(agent), agent.prompt) == (["mine", "coder"], "Be quick.")


@pytest.mark.parametrize("off", ["managed", "own"])
def test_nothing_takes_the_bounds_away(person: Any, off: str) -> None:
    person.manage('[blocked]\nplugins = ["coder"]\n') if off == "managed" else person.own(
        "[plugins.coder]\nenabled = false\n"
    )
    settings = person.settings()
    with pytest.raises(ComposeError, match="it is required, and off"):
        Host(agents_from(Catalog(settings)), store="memory:", settings=settings)


def test_a_coder_of_a_program_is_the_programs(person: Any) -> None:
    agent = agents(person, given=[Agent("coder", prompt="Mine.")])["coder"]
    assert (agent.prompt, agent.plugins) == ("Mine.", ())


# ---- a host with settings

STORE = """
    from noeta.toolkit.in_memory import InMemoryStore
    from noeta.toolkit.system import RandomIds, SystemClock

    def make(url, settings):
        store = InMemoryStore(SystemClock(), RandomIds())
        store.made_with = url, settings
        return store
"""
PROVIDER = """
    import msgspec
    from noeta.testing.scripted_provider import ScriptedProvider
    from noeta.toolkit.settings import settings_of

    class Settings(msgspec.Struct):
        api_key: str = ""

    def make(settings):
        chosen = settings_of("scripted", Settings, settings)
        return ScriptedProvider([f"The key is {chosen.api_key}."] * 2)
"""


@pytest.mark.anyio
async def test_what_is_named_is_made_with_its_settings(person: Any, site: Any) -> None:
    points = {STORES: {"kept": "kept_m:make"}, PROVIDERS: {"scripted": "scripted_m:make"}}
    site.install("noeta-ports", points, kept_m=STORE, scripted_m=PROVIDER)
    person.own("""
        store = "kept:here"
        model = "talk"
        [stores.kept]
        flush = true
        [providers.scripted]
        api_key = {env = "KEY"}
        [models.talk]
        model = "scripted:one"
    """)
    person.environ["KEY"] = "1234"
    settings = person.settings()
    async with Host(
        [*agents_from(Catalog(settings)), Agent("plain", model="talk")], settings=settings
    ) as host:
        assert host._store.made_with == ("kept:here", {"flush": True})
        assert (await host.run("plain", "hi")).text == "The key is 1234."


@pytest.mark.anyio
async def test_a_setting_that_a_provider_does_not_take_fails_the_turn_and_names_the_file(
    person: Any, site: Any
) -> None:
    site.install("noeta-ports", {PROVIDERS: {"scripted": "scripted_n:make"}}, scripted_n=PROVIDER)
    file = person.own("[providers.scripted]\napi_kye = 'x'\n")
    agent = Agent("plain", model="scripted:one")
    async with Host([agent], store="memory:", settings=person.settings()) as host:
        outcome = await host.run("plain", "hi")
    assert outcome.status == "failed"
    assert (
        f"{file}, providers.scripted.api_kye: there is no such setting (did you mean 'api_key'?)"
        in outcome.text
    )


def test_the_store_is_that_of_the_settings_unless_the_program_names_one(person: Any) -> None:
    settings = person.settings()
    assert settings.chosen("store", None, person.places.store) == person.places.store
    person.own('store = "file:"\n')
    assert person.settings().chosen("store", None, "default:") == "file:"
    assert person.settings().chosen("store", "code:", "default:") == "code:"
    assert person.settings(flags=["store=flag:"]).chosen("store", "code:", "default:") == "flag:"


@pytest.mark.anyio
async def test_settings_that_were_read_bring_their_store_spill_folder_and_plugin_files(person: Any) -> None:
    person.plugin("mine", own=True)
    settings = person.settings()
    agent = Agent("a", model="test:model", plugins=[ToolSet([Tool("Read", True, "long " * 20_000)])])
    provider = ScriptedProvider([reply("", call("Read")), "Hello."])
    async with Host([agent], settings=settings, providers={"test": provider}) as host:
        outcome = await host.run("a", "hi")
        [created, *_] = await host.log(outcome.task)
    assert [plugin.name for plugin in created.data.plugins] == ["tools", "mine"]
    assert [len(path.read_text()) for path in person.places.spill.rglob("*") if path.is_file()] == [100_000]
    assert (person.places.data / "noeta.db").is_file()


def test_a_host_takes_tables_for_what_it_names(site: Any) -> None:
    source = (
        "import msgspec\n" + PLUGIN.format("one") + "    class Settings(msgspec.Struct):\n        root: str\n"
    )
    site.install("noeta-one", {EXTENSIONS: {"one": "tabled_m:P"}}, tabled_m=source)
    host = Host([Agent("a", plugins=["one"])], settings={"plugins": {"one": {"root": "/srv"}}})
    assert host.catalog.find("one").state == "imported"
    assert isinstance(host._store, InMemoryStore)
    with pytest.raises(
        SettingsError, match=r"keyword arguments, plugins\.one\.root: Expected `str`, got `int`"
    ):
        Host([Agent("a", plugins=["one"])], settings={"plugins": {"one": {"root": 3}}})
    with pytest.raises(SettingsError, match="there is no such table or key"):
        Host([], settings={"plugin": {}})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("prefer", "first"), [({}, "one"), ({"Read": "two"}, "two"), ({"Read": "zzz"}, "one")]
)
async def test_settings_choose_whose_tool_is_used(prefer: dict[str, str], first: str, caplog: Any) -> None:
    made = {name: Tool("Read", True) for name in ("one", "two")}
    provider = ScriptedProvider([reply("", call("Read")), "Done."])
    agent = Agent("a", model="test:model", plugins=[ToolSet([tool], name) for name, tool in made.items()])
    settings = as_settings({"prefer": prefer}, {})
    async with Host([agent], providers={"test": provider}, settings=settings) as host:
        await host.run("a", "Go.")
    assert {name: tool.calls for name, tool in made.items()} == {**dict.fromkeys(made, 0), first: 1}
