"""What is ticked off: the fold of the records."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class Ticks(Struct, frozen=True):
    """How each item was done since the list last began, and the call that made use of the list before.

    `before` is how the items were done that time, for as long as that call has not begun.
    """

    how: dict[str, str] = {}
    used_by: str | None = None
    before: dict[str, str] = {}


def folded(ticks: Ticks, kind: str, data: Any) -> Ticks:
    """The state after a record. What is of no interest changes nothing."""
    match kind:
        case "ticked":
            return replace(ticks, how={**ticks.how, data.item: data.how})
        case "used":
            return Ticks(used_by=data.call, before=ticks.how)
        case "tool_started" if data.call == ticks.used_by:
            return replace(ticks, before={})
        case "tool_finished" if data.call == ticks.used_by and data.is_error and ticks.before:
            # Somebody else refused it.
            return Ticks(how={**ticks.before, **ticks.how})
    return ticks
