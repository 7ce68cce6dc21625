"""The table of hooks: how answers combine, and what a failure costs. The one place that says it.

pluggy checks, names and blocks plugins (`noeta.host.registry`); `noeta.toolkit.dispatch` calls the hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import pluggy
from msgspec import Struct

from noeta.core.errors import RequestStale, Signal, TurnDone, TurnFailed
from noeta.core.extension import Extension
from noeta.core.gates import Allow, Ask, Deny, Rewrite
from noeta.core.messages import Message
from noeta.core.parts import Command, ContextPart, Reminder, ToolChanges
from noeta.core.ports import ModelRequest
from noeta.core.tool import ToolOutput

hookimpl: pluggy.HookimplMarker = pluggy.HookimplMarker("noeta")
"""Marks a hook ``tryfirst`` or ``trylast``: a tier of its own, ahead of or behind the plain one."""
Rule = Literal["collect", "chain", "first", "vote", "notify", "addressed"]
NONE = type(None)
ANY = ("open", "closed", "park")
SHUT = ("closed", "park")
GATES = (Allow, Deny, Ask, Rewrite, NONE)


class Hook(Struct, frozen=True):
    """One row of the table: a hook, its combining rule, and what a failure costs.

    - `rule`: ``collect`` every answer, ``chain`` one value through all, the ``first`` answer wins, everyone
      has a ``vote``, ``notify`` everyone, or ``addressed`` to one plugin.
    - `on_error`: ``open`` leaves the plugin out this time, ``closed`` makes what the hook is about fail,
      ``park`` lets the task wait, ``broken`` freezes the plugin's state, ``raised`` tells the caller.
    - `choices`: what a plugin may set instead.
    - `gives`: the types of an answer; with `many` it is a sequence of them.
    - `seconds`: the time limit, None for a hook that cannot wait.
    - `signals`: what it may raise to steer the turn.
    """

    name: str
    rule: Rule
    on_error: str
    choices: tuple[str, ...] = ()
    gives: tuple[type, ...] = ()
    many: bool = False
    seconds: float | None = None
    signals: tuple[type[Signal], ...] = ()

    @property
    def spec(self) -> Callable[..., Any]:
        """The method of `Extension` that says its arguments and whether it is awaited."""
        method: Callable[..., Any] = getattr(Extension, self.name)
        return method


HOOKS: Mapping[str, Hook] = {
    hook.name: hook
    for hook in (
        Hook("initial_state", "addressed", "broken"),
        Hook("reduce", "addressed", "broken"),
        Hook("continue_state", "addressed", "broken"),
        Hook("tools", "collect", "open", ANY, (), True),
        Hook("tool_changes", "collect", "open", ANY, (ToolChanges, NONE)),
        Hook("context", "collect", "open", ANY, (ContextPart,), True),
        Hook("reminders", "collect", "open", ANY, (Reminder,), True, 30.0, (TurnDone, TurnFailed)),
        Hook("inherit", "collect", "closed", SHUT, (Mapping,)),
        Hook("on_start", "notify", "open", ANY, (NONE,), False, 30.0),
        Hook(
            *("before_model", "chain", "closed", ANY, (ModelRequest,), False, 30.0),
            (TurnDone, RequestStale, TurnFailed),
        ),
        Hook("on_context_overflow", "first", "closed", ANY, (bool, NONE), False, 30.0, (TurnFailed,)),
        Hook("on_empty_reply", "first", "open", ANY, (Message, NONE), False, 30.0),
        Hook("before_tool", "vote", "closed", SHUT, GATES, False, 600.0),
        Hook("resolve_ask", "first", "closed", SHUT, GATES, False, 600.0),
        Hook("after_tool", "chain", "closed", ANY, (ToolOutput,), False, 30.0),
        Hook("on_event", "notify", "open", ANY, (NONE,), False, 30.0),
        Hook("delivered_through", "addressed", "open", (), (int, NONE)),
        Hook("before_compact", "vote", "open", ANY, (str, Deny, NONE), False, 30.0),
        Hook("resident", "collect", "open", ANY, (Message,), True, 30.0),
        Hook("lead_resident", "collect", "open", ANY, (Message,), True, 30.0),
        Hook("commands", "collect", "open", ("open", "closed"), (Command,), True, 30.0),
        Hook("run_command", "addressed", "raised", (), (str,), False, 30.0),
    )
}
"""Every hook by name, in the order of `Extension`."""
