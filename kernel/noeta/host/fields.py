"""What an agent says of itself, checked; and its lists of tools, once it is known what the plugins offer."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import get_args

from noeta.core.ports import Effort
from noeta.core.text import meant
from noeta.toolkit.agent import Agent
from noeta.toolkit.errors import ComposeError

EFFORTS: tuple[str, ...] = get_args(Effort)


def check_fields(agent: Agent) -> None:
    """Raise `ComposeError` for the first thing that an agent says of itself and that cannot be."""
    for field in ("model", "prompt", "identity", "description"):
        if not isinstance(given := getattr(agent, field), str):
            why = f"it is of type {type(given).__name__}, not a text"
            raise ComposeError(agent.name, field, why, f"Write {field}='...'", kind="agent")
    effort, most = agent.effort, agent.max_tokens
    if effort not in (None, *EFFORTS):
        why = f"{effort!r} is no effort{meant(str(effort), EFFORTS)}"
        raise ComposeError(agent.name, "effort", why, f"Choose one of {', '.join(EFFORTS)}", kind="agent")
    if most is not None and (type(most) is not int or most < 1):
        why = f"{most!r} is no number of tokens"
        raise ComposeError(agent.name, "max_tokens", why, "Write a whole number, such as 4096", kind="agent")
    _check_lists(agent)


def misnamed(
    allowed: Collection[str] | None, denied: Collection[str], names: Collection[str]
) -> Iterator[str]:
    """What is strange about an agent's lists, if these are the names that its plugins offer.

    A tool that is denied need not be there, unless another one is there that may be meant.
    """
    for name in allowed or ():
        if name not in names:
            none = f"the agent's list of tools names {name!r}, which no plugin offers{meant(name, names)}"
            yield f"{none}; the names offered are {', '.join(sorted(names)) or 'none'}"
    for name in denied:
        if name not in names and (hint := meant(name, names, 0.8)):
            yield f"the agent denies {name!r}, which no plugin offers{hint}, so that denies nothing"


def _check_lists(agent: Agent) -> None:
    place = f"agent {agent.name!r}"
    lists: dict[str, object] = {"tools": agent.tools, "denied": agent.denied, "fallbacks": agent.fallbacks}
    for field, given in lists.items():
        kind = "model" if field == "fallbacks" else "tool"
        if isinstance(given, str):
            raise ComposeError(given, place, f"{field} is a text", f"Write {field}=[{given!r}]", kind=kind)
        if given is not None and not isinstance(given, Collection):
            raise ComposeError(repr(given), place, f"{field} is no list", "Write a list of names", kind=kind)
        for name in given or ():
            if not isinstance(name, str):
                shown = getattr(name, "name", None) or type(name).__name__
                why = f"{field} holds a {type(name).__name__}, not a name"
                way_out = f"Write its name, and give the {kind} itself to a plugin such as ToolSet"
                way_out = way_out if kind == "tool" else "Write 'provider:model'"
                raise ComposeError(str(shown), place, why, way_out, kind=kind)
