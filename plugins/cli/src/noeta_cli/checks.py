"""What `noeta doctor` looks at. Each check gives findings, and none stops another."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from noeta.host.catalog import Catalog, Entry
    from noeta.host.places import Places
    from noeta.host.settings import Settings
    from noeta.toolkit.agent import Agent

LITTLE, TOO_LITTLE = 1_000_000_000, 100_000_000
"""Free bytes below which the person is warned, and below which noeta is about to stop."""
LOCAL_ENV = "local"
WAYS = {
    "untrusted": "Look at it, then run: noeta plugins trust",
    "shadowed": "Take one of them away, or give an instance of it.",
}


class Finding(Struct, frozen=True, kw_only=True):
    """What a check found: `way_out` says what to do about a ``warn`` or a ``fail``."""

    check: str
    status: Literal["ok", "warn", "fail"]
    text: str
    way_out: str = ""


def findings(store: str | None) -> Iterator[Finding]:
    """All of them, in order. `store` is that of the command line."""
    from noeta.host.catalog import Catalog
    from noeta.host.places import find_places
    from noeta_cli.stores import here

    yield Finding(check="python", status="ok", text=f"{platform.python_version()} on {platform.system()}")
    folder = here()
    try:
        places = find_places(os.environ, folder)
    except ValueError as error:
        yield Finding(check="places", status="fail", text=str(error), way_out="Set it right, or unset it.")
        return
    settings, found = _settings(places)
    yield from found
    catalog = Catalog(settings)
    looks: tuple[Callable[[], Iterator[Finding]], ...] = (
        lambda: _versions(catalog),
        lambda: _trust(places, settings),
        lambda: _plugins(catalog),
        lambda: _model(catalog),
        lambda: _environment(catalog),
        lambda: _store(catalog, store),
        lambda: _disk(places.data),
    )
    for look in looks:
        try:
            yield from look()
        except Exception as error:
            # A check that itself goes wrong says where to look, like any other.
            text = f"{type(error).__name__}: {error}"
            yield Finding(check="doctor", status="fail", text=text, way_out="Report this.")


def _settings(places: Places) -> tuple[Settings, list[Finding]]:
    """The settings, or those of nobody when they cannot be used."""
    from noeta import SettingsError
    from noeta.host.settings import Settings, load_settings
    from noeta.host.trust import Trust

    try:
        settings = load_settings(places, os.environ)
    except SettingsError as error:
        bare = Settings(environ=os.environ, places=places, trust=Trust(places))
        return bare, [Finding(check="settings", status="fail", text=str(error), way_out="Mend that place.")]
    skipped = {each.path: each.reason for each in settings.skipped}
    files = (places.managed, places.local_file, places.project_file, places.user_file)
    read = [str(file) for file in files if file.is_file() and str(file) not in skipped]
    text = f"read from {', '.join(read)}" if read else "there are no files with settings"
    found = [Finding(check="settings", status="ok", text=text)]
    for path, reason in skipped.items():
        why, _, way_out = reason.partition("; ")
        found.append(_warn("settings", f"{path} does not count: {why}", way_out))
    return settings, found


def _versions(catalog: Catalog) -> Iterator[Finding]:
    from importlib_metadata import version

    others = {e.distribution: e.version for e in catalog.entries() if e.distribution}
    names = ["noeta", "noeta-cli", *sorted({*others} - {"noeta", "noeta-cli"})]
    told = ", ".join(f"{name} {others.get(name) or version(name)}" for name in names)
    yield Finding(check="versions", status="ok", text=told)


def _trust(places: Places, settings: Settings) -> Iterator[Finding]:
    fault = settings.trust.fault if settings.trust else ""
    if fault:
        yield Finding(
            check="trust", status="fail", text=fault, way_out="Until then nothing of projects counts."
        )
    elif places.trust_file.exists():
        yield Finding(check="trust", status="ok", text=f"{places.trust_file} can be read")
    else:
        yield Finding(check="trust", status="ok", text="no file of a project is trusted")


def _plugins(catalog: Catalog) -> Iterator[Finding]:
    from noeta import ComposeError, SettingsError
    from noeta.host.catalog import EXTENSIONS

    for entry in catalog.entries():
        if entry.group == EXTENSIONS and entry.state == "not imported":
            try:
                catalog.extension(entry.name, "the check")
            except (ComposeError, SettingsError) as error:
                # A setting that has to be given is missing only for who uses the plugin.
                yield _failed(entry, str(error), of_settings=isinstance(error, SettingsError))
    usable = 0
    for entry in (each for each in catalog.entries() if each.group == EXTENSIONS):
        usable += entry.state == "imported"
        if entry.state in WAYS:
            why = entry.reason.partition("; ")[0]
            yield _warn("plugins", f"{_name(entry)} is {entry.state}: {why}", WAYS[entry.state])
    yield Finding(check="plugins", status="ok", text=f"{usable} can be used")


def _failed(entry: Entry, why: str, *, of_settings: bool) -> Finding:
    status: Literal["warn", "fail"] = "warn" if of_settings else "fail"
    way_out = "Set it before an agent uses the plugin." if of_settings else f"Mend or remove {_name(entry)}."
    return Finding(check="plugins", status=status, text=why, way_out=way_out)


def _model(catalog: Catalog) -> Iterator[Finding]:
    from noeta import NoetaError
    from noeta.host.catalog import PROVIDERS
    from noeta.host.model_choice import choose_model
    from noeta.host.settings_agents import agents_from
    from noeta.toolkit.errors import meant

    settings = catalog.settings
    name = settings.get("agent", default="coder")
    agents = {agent.name: agent for agent in agents_from(catalog)}
    if name not in agents:
        held = settings.value("agent")
        where = held.where if held else "settings"
        text = f"there is no agent {name!r}{meant(name, agents)}, which {where} names"
        yield Finding(check="agent", status="fail", text=text, way_out="Name another one, or describe it.")
        return
    agent = agents[name]
    yield Finding(check="agent", status="ok", text=f"{name}, with {_listed(agent)}")
    providers = {entry.name for entry in catalog.entries() if entry.group == PROVIDERS}
    reason = choose_model(settings, name, providers=providers).reason
    try:
        _check_model(catalog, agent.model)
    except (NoetaError, OSError, ValueError) as error:
        yield Finding(check="model", status="fail", text=reason, way_out=str(error))
    else:
        yield Finding(check="model", status="ok", text=reason)


def _check_model(catalog: Catalog, model: str) -> None:
    """Raise what says why a model cannot be called, as far as that shows without a call."""
    from anyio import run

    prefix, _, rest = model.partition(":")

    async def look() -> None:
        provider: Any = catalog.provider(prefix)
        try:
            if (check := getattr(provider, "check", None)) is not None:
                check(rest)
        finally:
            await provider.aclose()

    run(look)


def _environment(catalog: Catalog) -> Iterator[Finding]:
    from noeta.host.catalog import ENVIRONMENTS

    name = catalog.settings.chosen("env", None, LOCAL_ENV)
    entry = catalog.find(name, ENVIRONMENTS)
    if entry is None and catalog.settings.value("env") is None:
        text = "none is installed, so agents have no place to act"
        yield _warn("environment", text, "Install one: pip install noeta-local")
    elif entry is None or entry.reason:
        why = f": {entry.reason}" if entry else " is not installed"
        yield Finding(check="environment", status="fail", text=f"{name}{why}", way_out="Install or mend it.")
    else:
        yield Finding(
            check="environment", status="ok", text=f"{name}, of {entry.distribution} {entry.version}"
        )


def _store(catalog: Catalog, given: str | None) -> Iterator[Finding]:
    from noeta import NoetaError
    from noeta.toolkit.store import Unavailable
    from noeta_cli.readers import Wrong, reader_of
    from noeta_cli.stores import store_url

    url = store_url(catalog.settings, given)
    # The rest of a URL may be a secret.
    shown = url if url.startswith("sqlite:") else f"{url.partition(':')[0]}:..."
    try:
        with reader_of(catalog, url) as reader:
            count = getattr(reader, "stats", None)
            tasks = sum(count().tasks.values()) if count else len(reader.tasks(limit=1_000))
    except Unavailable as error:
        if error.reason != "missing":
            yield Finding(check="store", status="fail", text=shown, way_out=str(error))
            return
        yield Finding(check="store", status="ok", text=f"{shown} is not there yet; the first task makes it")
    except Wrong as error:
        yield _warn("store", shown, error.format_message())
    except (NoetaError, OSError, ValueError) as error:
        yield Finding(check="store", status="fail", text=shown, way_out=str(error))
    else:
        yield Finding(check="store", status="ok", text=f"{shown} holds {tasks} tasks")


def _disk(folder: Path) -> Iterator[Finding]:
    place = next(each for each in (folder, *folder.parents) if each.is_dir())
    free = shutil.disk_usage(place).free
    from noeta_cli.output import size

    text = f"{size(free)} free for {folder}"
    if not os.access(place, os.W_OK):
        yield Finding(
            check="disk", status="fail", text=f"{place} cannot be written to", way_out="Let this user."
        )
    status: Literal["ok", "warn", "fail"] = "fail" if free < TOO_LITTLE else "warn" if free < LITTLE else "ok"
    yield Finding(check="disk", status=status, text=text, way_out="" if status == "ok" else "Free some.")


def _warn(check: str, text: str, way_out: str) -> Finding:
    return Finding(check=check, status="warn", text=text, way_out=way_out)


def _name(entry: Entry) -> str:
    return f"{entry.name} of {entry.path or entry.distribution}"


def _listed(agent: Agent) -> str:
    names = [each if isinstance(each, str) else each.name for each in agent.plugins]
    return ", ".join(names) or "no plugins"
