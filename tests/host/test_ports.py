"""A host opens by name what it is not given, when it is needed, and closes what it opened."""

# ruff: noqa: ASYNC240 -- a look at files of the test.

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from noeta.host import ports
from noeta.host.host import Host
from noeta.testing.clock import FrozenClock, SeededIds
from noeta.testing.nowhere import Nowhere
from noeta.testing.scripted_provider import ScriptedProvider
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.in_memory import InMemoryStore

pytestmark = pytest.mark.anyio

PORTS = """
    import anyio
    from noeta import Extension
    from noeta.testing import Nowhere, ScriptedProvider
    from noeta.toolkit.in_memory import InMemoryStore
    from noeta.toolkit.provider import ProviderError
    from noeta.toolkit.system import RandomIds, SystemClock

    opened, closed, fails = [], [], set()

    async def close(name):
        await anyio.lowlevel.checkpoint()
        if name == "slow":
            await anyio.sleep_forever()
        closed.append(name)
        if name in fails:
            raise SystemExit(name) if name == "place" else OSError(name)

    class Model(ScriptedProvider):
        name = "model"

        async def aclose(self):
            await close(self.name)

    class Slow(Model):
        name = "slow"

    class Kept(InMemoryStore):
        async def aclose(self):
            await super().aclose()
            await close("store")

    class Place(Nowhere):
        async def aclose(self):
            await close("place")

    class Plugin(Extension):
        name = "looks"
        seen = []

        async def on_start(self, view):
            self.seen.append(view.env)

    def model(settings):
        opened.append(("model", settings))
        return Model(respond=lambda request: f"I am {request.model}.")

    def slow(settings):
        return Slow(["Hello."])

    def keyless(settings):
        raise ProviderError("auth", "there is no key")

    def clumsy(settings):
        raise KeyError("url")

    def store(url, settings):
        opened.append((url, settings))
        return Kept(SystemClock(), RandomIds())

    def place(settings):
        opened.append(("place", settings))
        return Place()

    def nowhere(settings):
        return Nowhere()
"""


@pytest.fixture
def installed(site: Any) -> Any:
    """Distributions with one of each port; the module behind them, once something was imported."""
    site.install(
        "noeta-ports",
        {
            "noeta.extensions": {"looks": "ports_m:Plugin"},
            "noeta.providers": {name: f"ports_m:{name}" for name in ("model", "slow", "keyless", "clumsy")},
            "noeta.stores": {"kept": "ports_m:store"},
            "noeta.environments": {"place": "ports_m:place", "nowhere": "ports_m:nowhere"},
        },
        ports_m=PORTS,
    )
    return lambda: sys.modules["ports_m"]


def agent(model: str = "model:x") -> Agent:
    return Agent("agent", model=model, plugins=["looks"])


async def test_everything_that_has_a_name_is_opened_by_it_and_closed_last_one_first(installed: Any) -> None:
    async with Host([agent()], store="kept:here?a=b", env="place") as host:
        assert installed().opened == [("kept:here?a=b", {}), ("place", {})]
        assert (await host.run("agent", "hi")).text == "I am x."
        await host.run("agent", "hi")
        assert installed().opened[2:] == [("model", {})]
        assert {type(env).__name__ for env in installed().Plugin.seen} == {"Place"}
        assert {entry.state for entry in host.catalog.entries() if entry.name == "looks"} == {"imported"}
        assert installed().closed == []
    assert installed().closed == ["model", "place", "store"]


async def test_what_the_host_was_given_stays_open(installed: Any) -> None:
    class Given(InMemoryStore):
        async def aclose(self) -> None:
            raise AssertionError

    class Env(Nowhere):
        async def aclose(self) -> None:
            raise AssertionError

    class Model(ScriptedProvider):
        async def aclose(self) -> None:
            raise AssertionError

    store = Given(FrozenClock(), SeededIds())
    async with Host([agent("test:x")], store=store, env=Env(), providers={"test": Model(["Hello."])}) as host:
        assert (await host.run("agent", "hi")).text == "Hello."
    assert installed().opened == []


async def test_a_place_that_needs_no_closing_is_left_alone(installed: Any) -> None:
    async with Host([agent()], env="nowhere") as host:
        assert (await host.run("agent", "hi", cwd="/a/../b")).text == "I am x."
    assert installed().closed == ["model"]


async def test_a_provider_that_was_given_goes_before_one_that_is_installed(installed: Any) -> None:
    async with Host([agent()], providers={"model": ScriptedProvider(["Mine."])}) as host:
        assert (await host.run("agent", "hi")).text == "Mine."
    assert installed().opened == []


async def test_models_without_a_prefix_stay_with_the_one_provider_that_was_given(installed: Any) -> None:
    agents = [agent(), Agent("plain", model="x")]
    async with Host(agents, providers={"test": ScriptedProvider(["Mine."])}) as host:
        assert (await host.run("agent", "hi")).text == "I am x."
        assert (await host.run("plain", "hi")).text == "Mine."


@pytest.mark.parametrize(
    ("model", "reason", "says"),
    [
        ("clumsy:x", "invalid", "provider 'clumsy' cannot be opened: KeyError: 'url'"),
        ("keyless:x", "auth", "there is no key"),
    ],
    ids=["clumsy", "keyless"],
)
async def test_a_provider_that_cannot_be_had_fails_the_turn_and_says_why(
    installed: Any, model: str, reason: str, says: str
) -> None:
    async with Host([agent(model)], providers={"test": ScriptedProvider()}) as host:
        outcome = await host.run("agent", "hi")
        assert (outcome.status, outcome.reason) == ("failed", reason)
        [failure] = [record.data for record in await host.log(outcome.task) if record.kind == "turn_failed"]
        assert says in failure.detail


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("modle:x", "no installed provider has this name (did you mean 'model'?)"),
        ("tets:x", "no installed provider has this name (did you mean 'test'?)"),
        ("kept:x", "no installed provider has this name; it is a store"),
        ("x", "it names no provider, and this host is given 2. Write 'provider:x'"),
    ],
)
@pytest.mark.parametrize("fallback", [False, True], ids=["model", "fallback"])
async def test_a_model_whose_provider_nobody_has_is_refused_when_the_host_is_entered(
    installed: Any, model: str, says: str, fallback: bool
) -> None:
    made = agent("test:x")
    made = replace(made, fallbacks=[model]) if fallback else replace(made, model=model)
    providers = {"test": ScriptedProvider(), "other": ScriptedProvider()}
    with pytest.raises(ComposeError) as caught:
        await Host([made], store="kept:here", providers=providers).__aenter__()
    assert says in str(caught.value)
    assert f"model {model!r} of agent 'agent'" in str(caught.value)
    # What it opened it has closed, and one that calls no model needs none.
    assert installed().closed == ["store"]
    async with Host([made], store="kept:here", providers=providers, works=False):
        pass


async def test_a_model_of_a_task_alone_is_looked_up_when_it_is_called(installed: Any) -> None:
    async with Host([agent("test:x")], providers={"test": ScriptedProvider()}) as host:
        outcome = await host.run("agent", "hi", config={"model": "tets:x"})
        assert (outcome.status, outcome.reason) == ("failed", "invalid")
        assert "this host has no provider 'tets' (did you mean 'test'?): " in outcome.text


async def test_one_that_cannot_be_closed_keeps_no_other_open(
    installed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with Host([agent()], store="kept:secret", env="place") as host:
            await host.run("agent", "hi")
            installed().fails |= {"model", "place", "store"}

    with pytest.raises(OSError, match="model"):
        await run()
    assert installed().closed == ["model", "place", "store"]
    assert "store 'kept' could not be closed: OSError: store" in caplog.text
    assert "secret" not in caplog.text


async def test_one_that_is_slow_to_close_is_not_waited_for(
    installed: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ports, "CLOSE_SECONDS", 0.05)
    async with Host([agent("slow:x")], store="kept:") as host:
        await host.run("agent", "hi")
    assert installed().closed == ["store"]
    assert "provider 'slow' was not closed within 0.05 s" in caplog.text


async def test_what_was_opened_is_closed_also_when_the_host_is_cancelled(installed: Any) -> None:
    with anyio.CancelScope() as scope:
        async with Host([agent()], store="kept:", env="place") as host:
            await host.run("agent", "hi")
            scope.cancel()
            await anyio.sleep_forever()
    assert installed().closed == ["model", "place", "store"]


def test_nothing_is_opened_for_agents_that_cannot_be_put_together(installed: Any) -> None:
    with pytest.raises(ComposeError, match="'absent', agent 'other'"):
        Host([agent(), Agent("other", plugins=["absent"])], store="kept:", env="place")
    with pytest.raises(ComposeError, match=r"Store 'absent', .*: no installed store"):
        Host([agent()], store="absent:", env="place")
    assert installed().opened == []


async def test_a_task_outlives_its_host_in_a_file_that_is_named(tmp_path: Path) -> None:
    def host(says: str) -> Host:
        providers = {"test": ScriptedProvider([says])}
        return Host(
            [Agent("agent", model="test:x")], store=f"sqlite:{tmp_path / 'noeta.db'}", providers=providers
        )

    async with host("Hello.") as here:
        task = (await here.run("agent", "hi")).task
    assert sorted(path.name for path in tmp_path.iterdir()) == ["noeta.db", "noeta.db.lock"]
    async with host("Again.") as here:
        await here.post(task, "hi")
        assert (await here.wait(task)).text == "Again."


def test_a_host_for_plain_code_opens_and_closes_its_file_too(tmp_path: Path) -> None:
    providers = {"test": ScriptedProvider(["Hello."])}
    url = f"sqlite:{tmp_path / 'noeta.db'}"
    with Host([Agent("agent", model="test:x")], store=url, providers=providers).sync() as host:
        assert host.run("agent", "hi").text == "Hello."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["noeta.db", "noeta.db.lock"]
