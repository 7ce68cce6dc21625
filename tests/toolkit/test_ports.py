"""The modules for those who implement a port or read records have every name that these need."""

from __future__ import annotations

import typing
from typing import Any

import msgspec
import pytest

from noeta.core import records as core_records
from noeta.toolkit import env, provider, records


def names_in(hint: Any) -> set[str]:
    """Return the names of noeta's classes in a type."""
    found = {name for inner in typing.get_args(hint) for name in names_in(inner)}
    if getattr(hint, "__module__", "").startswith("noeta."):
        found.add(hint.__name__)
    return found


def needed(*types: type) -> set[str]:
    """Return the names that the methods and fields of these types speak of."""
    found: set[str] = set()
    for type_ in types:
        hints = typing.get_type_hints(type_)
        for name, method in vars(type_).items():
            if callable(method) and not name.startswith("_"):
                hints |= {f"{name}.{key}": hint for key, hint in typing.get_type_hints(method).items()}
        found |= {name for hint in hints.values() for name in names_in(hint)}
    return found


@pytest.mark.parametrize(
    ("module", "types"),
    [
        (provider, [provider.Provider, provider.ModelRequest, provider.ModelResponse, provider.Message]),
        (env, [env.ExecEnv, env.Process]),
    ],
    ids=["provider", "env"],
)
def test_a_port_comes_with_every_type_it_speaks_of(module: Any, types: list[type]) -> None:
    wanted = needed(*types)
    assert wanted
    assert wanted - set(vars(module)) == set()


def test_the_errors_of_a_port_come_with_it() -> None:
    assert issubclass(provider.ProviderError, Exception)
    assert issubclass(env.Changed, Exception)


def test_every_kind_of_the_kernel_and_every_part_of_one_can_be_read() -> None:
    structs = list(core_records.CORE_KINDS.values())
    parts = {
        name
        for struct in structs
        for field in msgspec.structs.fields(struct)
        for name in names_in(field.type)
    } - {"Message", "Usage"}
    wanted = {struct.__name__ for struct in structs} | parts
    assert wanted - set(vars(records)) == set()
    assert records.ERASED_KIND == "core.erased"
