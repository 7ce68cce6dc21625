"""`noeta plugins show`: all that is known of a plugin."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_type_hints

import click
import msgspec

from noeta_cli.output import show as say
from noeta_cli.output import show_json
from noeta_cli.plugins.here import USABLE, agents_here, catalog_here, kind, named, of_agent, place
from noeta_cli.stores import json_option

if TYPE_CHECKING:
    from noeta import Extension
    from noeta.host.catalog import Catalog, Entry


@click.command("show")
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show what is known of NAME: where it is, its hooks, tools, records and settings.

    A plugin that may be used is imported for that. Of secrets it is only said that there is one.
    """
    catalog = catalog_here()
    found = [_facts(catalog, entry) for entry in named(catalog, name)]
    if as_json:
        show_json(found)
        return
    say("\n\n".join("\n".join(_lines(each)) for each in found))


def _facts(catalog: Catalog, entry: Entry) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": entry.name,
        "kind": kind(entry),
        "version": entry.version,
        "from": place(entry),
        "state": entry.state,
        "reason": entry.reason,
    }
    if entry.state in USABLE:
        facts["sha256"] = catalog.content(entry.name, entry.group)
        if kind(entry) == "plugin":
            facts["agents"] = [a.name for a in agents_here(catalog) if entry.name in of_agent(catalog, a)]
            facts |= _imported(catalog, entry)
    return facts


def _imported(catalog: Catalog, entry: Entry) -> dict[str, Any]:
    """What only the class of a plugin, and an instance of it, can say."""
    from noeta import Extension, NoetaError
    from noeta.toolkit.errors import ComposeError
    from noeta.toolkit.hooks import HOOKS

    try:
        cls: type[Extension] = catalog.thing(entry.name)
    except ComposeError as error:
        return {"state": "failed", "reason": error.why}
    now = catalog.find(entry.name) or entry
    facts: dict[str, Any] = {
        "state": now.state,
        "seconds": now.seconds,
        "about": inspect.cleandoc(vars(cls).get("__doc__") or "").partition("\n\n")[0],
        "hooks": [hook for hook in HOOKS if getattr(cls, hook) is not getattr(Extension, hook)],
        "tools": [],
        "records": {},
        "settings": [],
    }
    try:
        facts["settings"] = [*_settings(catalog, entry.name, cls)]
        facts["records"] = {kind: _fields(type_) for kind, type_ in (cls.record_types or {}).items()}
        facts["tools"] = _tools(catalog.extension(entry.name))
    except NoetaError as error:
        facts["reason"] = str(error)
    except Exception as error:
        # Whatever a class may hold, what is known by then is shown.
        facts["reason"] = f"not all of it can be told: {type(error).__name__}: {error}"
    return facts


def _tools(extension: Extension) -> list[dict[str, Any]]:
    """The tools that a new task would be offered."""
    from noeta.testing.views import Rehearsal

    task = Rehearsal(extension, strict=False)
    return [
        {"name": tool.name, "read_only": tool.read_only, "description": tool.description}
        for _, tools in task.hooks.tools(task)
        for tool in tools
    ]


def _settings(catalog: Catalog, name: str, cls: type[Extension]) -> Iterator[dict[str, Any]]:
    """Each setting with its type and default, and what counts for it, with the place that says so."""
    from noeta.host.secrets import shown
    from noeta.toolkit.settings import of_every_place

    settings = catalog.settings
    if (enabled := settings.value("plugins", name, "enabled")) is not None:
        yield {"name": "enabled", "type": "bool", "default": True, **_value(enabled.value, enabled.place)}
    if cls.Settings is None:
        return
    hints, added_up = get_type_hints(cls.Settings), of_every_place(cls.Settings)
    for field in msgspec.structs.fields(cls.Settings):
        about: dict[str, Any] = {"name": field.encode_name, "type": _type(hints[field.name])}
        if field.default is not msgspec.NODEFAULT:
            about["default"] = field.default
        elif field.default_factory is not msgspec.NODEFAULT:
            about["default"] = field.default_factory()
        key = ("plugins", name, field.encode_name)
        if field.name in added_up and (held := settings.everywhere(*key)):
            values = [entry for each in held for entry in shown(each)]
            about |= _value(values, ", ".join(str(each.place) for each in held))
        elif (value := settings.value(*key)) is not None:
            about |= _value(shown(value), value.place)
        yield about


def _value(value: Any, place: object) -> dict[str, Any]:
    return {"value": value, "place": str(place)}


def _fields(type_: Any) -> dict[str, str]:
    """The fields of a record's data, if its type has some."""
    if not (isinstance(type_, type) and issubclass(type_, msgspec.Struct)):
        return {}
    return {name: _type(hint) for name, hint in get_type_hints(type_).items()}


def _type(hint: Any) -> str:
    return inspect.formatannotation(hint).replace("typing.", "").replace("collections.abc.", "")


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """The facts for people."""
    yield f"{facts['kind']} {facts['name']} {facts['version']}".rstrip()
    if facts.get("about"):
        yield f"  {facts['about']}"
    yield _line("from", facts["from"])
    why = f" ({facts['reason']})" if facts["reason"] else ""
    took = f" in {facts['seconds'] * 1000:.0f} ms" if facts.get("seconds") is not None else ""
    yield _line("state", f"{facts['state']}{took}{why}")
    if "sha256" in facts:
        yield _line("content", facts["sha256"] or "unknown")
    if "agents" in facts:
        yield _line("agents", ", ".join(facts["agents"]) or "none")
    if "hooks" in facts:
        yield _line("hooks", ", ".join(facts["hooks"]) or "none")
        tools = [f"{tool['name']}{' (read only)' if tool['read_only'] else ''}" for tool in facts["tools"]]
        yield _line("tools", ", ".join(tools) or "none")
        records = [f"{kind}({', '.join(fields)})" for kind, fields in facts["records"].items()]
        yield _line("records", ", ".join(records) or "none declared")
        yield _line("settings", "" if facts["settings"] else "none")
    for each in facts.get("settings", ()):
        default = f" = {each['default']!r}" if "default" in each else " (needed)"
        now = f"; is {each['value']!r}, from {each['place']}" if "place" in each else ""
        yield f"    {each['name']}: {each['type']}{default}{now}"


def _line(head: str, text: str) -> str:
    return f"  {head:9} {text}".rstrip()
