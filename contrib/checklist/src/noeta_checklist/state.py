"""What is ticked off: the fold of the records."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class Ticks(Struct, frozen=True):
    """How each item was done since the list last began, and the call that made use of the list before."""

    how: dict[str, str] = {}
    used_by: str | None = None


def folded(ticks: Ticks, kind: str, data: Any) -> Ticks:
    """The state after a record. What is of no interest changes nothing."""
    match kind:
        case "ticked":
            return replace(ticks, how={**ticks.how, data.item: data.how})
        case "used":
            return Ticks(used_by=data.call)
    return ticks
