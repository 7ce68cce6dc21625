"""What plugins say about a call, and how many opinions become one decision. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from noeta.core.messages import ToolUse
from noeta.core.records import Opinion

MAX_REWRITES = 3
"""How often a call may be rewritten; one rewrite more is a Deny."""


class Allow(Struct, frozen=True, omit_defaults=True, tag_field="verdict", tag="allow"):
    """No objection.

    `approve`: the plugin vouches for the call, which satisfies other plugins' asks that are not firm.
    `outright`: a permission layer allows it by its own settings; the tool sees
    `ToolContext.allowed_outright`. `source` is the rule behind it and its place, recorded and never sent to
    the model.
    """

    approve: bool = False
    outright: bool = False
    source: str = ""


class Deny(Struct, frozen=True, omit_defaults=True, tag_field="verdict", tag="deny"):
    """Refuse the call. The model sees `reason`; `source` is the rule behind it and its place."""

    reason: str = ""
    source: str = ""


class Ask(Struct, frozen=True, omit_defaults=True, tag_field="verdict", tag="ask"):
    """Park the call until someone answers.

    `prompt` is what a front end shows, `detail` more of it. A `firm` ask is not satisfied by another plugin's
    approving Allow. `source` is the rule behind it and its place.
    """

    prompt: str = ""
    detail: dict[str, Any] = {}
    firm: bool = False
    source: str = ""


class Rewrite(Struct, frozen=True, omit_defaults=True, tag_field="verdict", tag="rewrite"):
    """Run the call with other `input`, or as the tool `name`. It is then checked and gated as a new one."""

    input: dict[str, Any]
    name: str | None = None
    source: str = ""


Gate: TypeAlias = Allow | Deny | Ask | Rewrite
"""An answer of `before_tool` and `resolve_ask`."""
Answers: TypeAlias = Sequence[tuple[str, Gate | None]]
"""Each plugin that was asked and its answer, in plugin order. None is no opinion."""


class Decision(Struct, frozen=True, kw_only=True):
    """What becomes of a call.

    `gate` is the answer that decided and `winner` its place among the opinions; both None when nobody
    objected. `asks` are the asks that nothing satisfied, the shown one first. `outright`: a permission layer
    allowed it and nobody was asked.
    """

    verdict: Literal["run", "deny", "rewrite", "ask"]
    gate: Gate | None = None
    winner: int | None = None
    asks: tuple[Ask, ...] = ()
    outright: bool = False


def resolve(call: ToolUse, answers: Answers, *, rewrites: int = 0, approved: bool = False) -> Decision:
    """Decide about `call`, which was rewritten `rewrites` times and, if `approved`, allowed by a person.

    Any Deny wins; then the first Rewrite; then what is left of the asks. A Rewrite to what the call is
    already is no opinion. A person's approval satisfies every Ask, an approving Allow those not firm.
    """
    given = list(enumerate(gate for _, gate in answers if gate is not None))
    for i, gate in given:
        if isinstance(gate, Deny):
            return Decision(verdict="deny", gate=gate, winner=i)
    for i, gate in given:
        if isinstance(gate, Rewrite) and changes(call, gate):
            if rewrites < MAX_REWRITES:
                return Decision(verdict="rewrite", gate=gate, winner=i)
            many = Deny(f"The call was rewritten {MAX_REWRITES} times already.", gate.source)
            return Decision(verdict="deny", gate=many, winner=i)
    vouched = any(isinstance(gate, Allow) and gate.approve for _, gate in given)
    asks = [(i, a) for i, a in given if isinstance(a, Ask) and not approved and (a.firm or not vouched)]
    if asks:
        first, shown = asks[0]
        return Decision(verdict="ask", gate=shown, winner=first, asks=tuple(ask for _, ask in asks))
    # The strongest word for the call: a rule that allows it, then a plugin that vouches for it.
    allows = [(gate.outright, gate.approve, -i, gate) for i, gate in given if isinstance(gate, Allow)]
    if not allows:
        return Decision(verdict="run")
    outright, _, place, best = max(allows, key=lambda allow: allow[:3])
    return Decision(verdict="run", gate=best, winner=-place, outright=outright and not approved)


def resolve_asks(call: ToolUse, decision: Decision, answer: Gate | None, *, rewrites: int = 0) -> Decision:
    """What becomes of a `decision` to ask when a plugin has answered it through `resolve_ask`.

    None, or a Rewrite to what the call is already, leaves it; an Ask replaces the asks.
    """
    if isinstance(answer, Ask):
        return Decision(verdict="ask", gate=answer, asks=(answer,))
    if answer is None or (isinstance(answer, Rewrite) and not changes(call, answer)):
        return decision
    return resolve(call, [("", answer)], rewrites=rewrites)


def changes(call: ToolUse, rewrite: Rewrite) -> bool:
    """Whether `rewrite` makes another call of `call`."""
    # As JSON, since Python takes 1 and True for the same.
    new, old = _sorted(rewrite.input), _sorted(call.input)
    return (rewrite.name or call.name, new) != (call.name, old)


_sorted = msgspec.json.Encoder(order="sorted").encode


def opinions(answers: Answers) -> list[Opinion]:
    """The answers as `Gated` records them, without those who had no opinion."""
    found = []
    for by, gate in answers:
        if gate is not None:
            detail = msgspec.to_builtins(gate)
            told = {name: detail.pop(name, "") for name in ("verdict", "reason", "source")}
            found.append(Opinion(by=by, detail=detail, **told))
    return found
