"""Checking values against JSON Schema, in sentences that a model or a person can act on.

The schema library is loaded at the first call, so that importing noeta stays cheap. Nothing is ever loaded
from elsewhere: a ``$ref`` reaches its own schema and the published meta-schemas, and no network or file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noeta.toolkit.schema_checker import Checker

MAX_SCHEMAS = 512
"""How many prepared schemas are kept; the one unused for longest goes first."""


def check_schema(schema: dict[str, Any], value: object) -> str | None:
    """None when `value` fits `schema`, else one sentence that names the place and what is wrong there.

    Such as ``$.files[2].path: must be of type string, not integer``. Of several mistakes one is told, the
    highest up first; an unknown property comes with the one that was meant. A schema that cannot be used
    gives a sentence that begins with ``the schema is wrong``. Never raises.

    `schema` is JSON Schema, draft 2020-12 unless its ``$schema`` names another. A ``format`` is not checked,
    nor a ``pattern`` that Python cannot read. `value` is what JSON gives. A schema is prepared when it is
    first seen and known by its identity from then on, so do not change it afterwards.
    """
    checker = _checker(_Same(schema))
    return f"the schema is wrong: {checker.fault}" if checker.fault else checker.check(value)


def schema_fault(schema: object) -> str | None:
    """Why `schema` cannot describe the input of a tool, in a sentence; None when it can.

    It has to be valid JSON Schema whose ``type`` is ``object``, and each ``$ref`` has to lead somewhere.
    Never raises.
    """
    if isinstance(schema, dict) and schema.get("type") != "object":
        given = f"its type is {schema['type']!r}" if "type" in schema else "it has no type"
        return f"{given}, and the input of a tool is an object: write 'type': 'object'"
    return _checker(_Same(schema)).fault


class _Same:
    """A schema as a key: equal to itself alone. Holding it keeps its identity from being used again."""

    __slots__ = ("schema",)

    def __init__(self, schema: object) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.schema is other.schema


@lru_cache(maxsize=MAX_SCHEMAS)
def _checker(key: _Same) -> Checker:
    from noeta.toolkit.schema_checker import Checker

    return Checker(key.schema)
