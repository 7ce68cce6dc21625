"""The JSON Schema of a settings file, for editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from noeta.host.catalog import Catalog
from noeta.host.tables import AgentTable, Blocked, ModelTable, PluginTable, Top
from noeta.toolkit.errors import ComposeError

REFERENCE: dict[str, Any] = {
    "type": "object",
    "description": "The variable of the environment that holds the value.",
    "properties": {"env": {"type": "string"}},
    "required": ["env"],
    "additionalProperties": False,
}


def settings_schema(catalog: Catalog | None = None, plugins: Iterable[str] = ()) -> dict[str, Any]:
    """The schema of ``noeta.toml``. Of these plugins it knows the settings too; that imports them.

    A plugin that cannot be imported, or has settings that no schema can describe, may have any. Nothing is
    required, since another place may hold it.
    """
    defs: dict[str, Any] = {"reference": REFERENCE}
    known = {name: _plugin(name, _struct(catalog, name), defs) for name in plugins} if catalog else {}
    named = {"agents": _closed(AgentTable, defs), "models": _closed(ModelTable, defs)}
    tables = {table: {"type": "object", "additionalProperties": each} for table, each in named.items()}
    anything = {"type": "object", "additionalProperties": {"type": "object"}}
    any_plugin = {"type": "object", "properties": _properties(PluginTable, defs, "plugin")}
    properties = {
        **_properties(Top, defs, "top"),
        **tables,
        "plugins": {"type": "object", "properties": known, "additionalProperties": any_plugin},
        **dict.fromkeys(("providers", "stores", "environments"), anything),
        "prefer": {"type": "object", "additionalProperties": {"type": "string"}},
        "blocked": _closed(Blocked, defs),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of noeta",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": defs,
    }


def _struct(catalog: Catalog, name: str) -> type[Struct] | None:
    try:
        return catalog.struct(name)
    except ComposeError:
        return Struct


def _plugin(name: str, struct: type[Struct] | None, defs: dict[str, Any]) -> dict[str, Any]:
    enabled = _properties(PluginTable, defs, "plugin")
    if struct is Struct:
        return {"type": "object", "properties": enabled}
    try:
        own = _properties(struct, defs, f"plugins.{name}") if struct is not None else {}
    except TypeError:
        return {"type": "object", "properties": enabled}
    either = {key: {"anyOf": [each, {"$ref": "#/$defs/reference"}]} for key, each in own.items()}
    return {"type": "object", "properties": {**either, **enabled}, "additionalProperties": False}


def _closed(struct: type[Struct], defs: dict[str, Any]) -> dict[str, Any]:
    properties = _properties(struct, defs, struct.__name__)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _properties(struct: type[Struct], defs: dict[str, Any], prefix: str) -> Mapping[str, Any]:
    """The schemas of a struct's fields; what they refer to goes into `defs`, under names of its own."""
    (schema,), parts = msgspec.json.schema_components([struct], ref_template=f"#/$defs/{prefix}.{{name}}")
    name = schema["$ref"].rpartition(f"{prefix}.")[2]
    defs.update({f"{prefix}.{each}": part for each, part in parts.items() if each != name})
    found: Mapping[str, Any] = parts[name]["properties"]
    return found
