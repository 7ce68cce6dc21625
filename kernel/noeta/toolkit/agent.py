"""An agent: what a task runs as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from noeta.core.extension import Extension
from noeta.core.ports import Effort


class Agent(Struct, frozen=True):
    """A name, a model, a prompt, a list of plugins, and which of their tools it offers.

    `plugins` are instances, or names that the host looks up; their order is the order in which hooks are
    asked. `tools` names the tools offered (None: all), `denied` those never offered, and a name in them that
    no plugin offers is logged when a task first offers its tools. `fallbacks` are the models to go on with
    when `model` is not to be had. `prompts` replaces texts by name: a plugin asks for one with `view.prompt`,
    and ``tool/<name>`` is a tool's description. `identity` is the line every request opens with,
    `description` what other agents are told of this one. `prefer` names, by tool, the plugin whose tool is
    used where several offer the name; else the first one's is.
    """

    name: str
    model: str = ""
    prompt: str = ""
    plugins: Sequence[str | Extension] = ()
    tools: Sequence[str] | None = None
    denied: Sequence[str] = ()
    fallbacks: Sequence[str] = ()
    prompts: Mapping[str, str] = {}
    identity: str = ""
    description: str = ""
    effort: Effort | None = None
    max_tokens: int | None = None
    prefer: Mapping[str, str] = {}
