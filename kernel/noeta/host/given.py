"""What a host is given, looked at before anything is opened or run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from noeta.host.catalog import Catalog, lacks
from noeta.toolkit.agent import Agent
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.provider import Provider
from noeta.toolkit.store import Store

LEAST_LEASE_SECONDS = 1.0
"""With a shorter lease, a worker that is only busy would lose its tasks, or end its process."""


def nonsense(capacity: int, queues: object, lease: float, grace: float) -> str:
    """What is wrong with the settings of a worker, else the empty text."""
    if capacity < 1:
        return f"the capacity is {capacity}; a worker runs 1 task at least"
    if isinstance(queues, str):
        return f"queues is a text; write [{queues!r}]"
    if not LEAST_LEASE_SECONDS <= lease < math.inf:
        return f"the lease is {lease:g} s; it has to be {LEAST_LEASE_SECONDS:g} s at least, and to end"
    return "" if 0 <= grace < math.inf else f"the grace is {grace:g} s; it has to be 0 or more, and to end"


def check_ports(store: object, env: object, providers: object) -> None:
    """Raise `TypeError` for the first of these that is not what it has to be. A name is looked up later."""
    if not isinstance(store, str):
        _check_port("the store", store, Store)
    if not isinstance(env, str | None):
        _check_port("the environment", env, ExecEnv)
    if not isinstance(providers, Mapping):
        shown = type(providers).__name__
        raise TypeError(f"providers is of type {shown}; write a dict, such as {{'anthropic': provider}}")
    for name, provider in providers.items():
        if not isinstance(name, str) or ":" in name:
            raise TypeError(f"{name!r} names no provider; write what stands before the colon of its models")
        _check_port(f"the provider {name!r}", provider, Provider)


def check_models(agents: Iterable[Agent], providers: Mapping[str, Provider], catalog: Catalog) -> None:
    """Raise `ComposeError` for the first model of an agent whose provider neither is given nor installed.

    A name of the settings counts as the models it stands for. Whether an installed one works is seen when it
    is first needed.
    """
    for agent in agents:
        names = catalog.settings.models
        given = filter(None, (agent.model, *agent.fallbacks))
        for model in [each for name in given for each in names.get(name, [name])]:
            name, colon, _ = model.partition(":")
            place = f"model {model!r} of agent {agent.name!r}"
            if colon and name not in providers:
                catalog.check_provider(name, place, providers)
            elif not colon and len(providers) != 1:
                why = f"it names no provider, and this host is given {len(providers) or 'none'}"
                raise ComposeError(model, place, why, f"Write 'provider:{model}'", kind="model")


def _check_port(what: str, given: object, port: type) -> None:
    if isinstance(given, type):
        raise TypeError(f"{what} is the class {given.__name__}; write {given.__name__}(...)")
    if why := lacks(given, port):
        raise TypeError(f"{what} is of type {why}")
