"""Which model an agent runs on, and why: a sentence that people are told."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from noeta.host.layers import Value
from noeta.host.settings import ABOVE_CODE, Settings

KEYS = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-4-5",
    "OPENAI_API_KEY": "openai:gpt-5",
}
"""The models to take when the environment has a key for them, the first one first."""
LOCAL = "llamacpp:smollm2"
"""The model that needs no key."""


class ModelChoice(Struct, frozen=True):
    """A model, those to go on with when it is not to be had, and the reason for it as a sentence."""

    model: str
    reason: str
    fallbacks: Sequence[str] = ()


def choose_model(
    settings: Settings,
    agent: str,
    *,
    own: str = "",
    flag: str = "",
    providers: Collection[str] | None = None,
) -> ModelChoice:
    """The model of an agent: of the command line, the agent, the settings, a key that is set, or a local one.

    Managed settings go before the command line. `own` is the model that the agent has by itself, `flag` that
    of the command line. `providers` are the providers there are, so that a key for another one is passed
    over; None for any.
    """
    of_agent, of_all = settings.value("agents", agent, "model"), settings.value("model")
    if flag and not any(_rules(found) for found in (of_agent, of_all)):
        return _chosen(settings, flag, "the command line names it")
    if own and (of_agent is None or of_agent.place.level not in ABOVE_CODE):
        return _chosen(settings, own, f"agent {agent!r} has it")
    if of_agent is not None and of_agent.value:
        return _chosen(settings, of_agent.value, f"agent {agent!r} has it in {of_agent.where}")
    if of_all is not None and of_all.value:
        return _chosen(settings, of_all.value, f"{of_all.where} names it")
    passed = ""
    for key, model in KEYS.items():
        if not settings.environ.get(key):
            continue
        provider = model.partition(":")[0]
        if providers is None or provider in providers:
            return _chosen(settings, model, f"no settings name one, and {key} is set{passed}")
        passed += f"; {key} is set, but provider {provider!r} is not installed"
    return _chosen(settings, LOCAL, f"no settings name one, and no key for a model was found{passed}")


def _rules(found: Value | None) -> bool:
    return found is not None and found.place.level == "managed" and bool(found.value)


def _chosen(settings: Settings, name: str, why: str) -> ModelChoice:
    model, *fallbacks = settings.models.get(name, (name,))
    held = settings.value("models", name, "model")
    also = f"; {name!r} means that in {held.where}" if held is not None else ""
    return ModelChoice(model, f"The model is {model}, since {why}{also}.", fallbacks)
