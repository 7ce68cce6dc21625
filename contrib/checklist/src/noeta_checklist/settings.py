"""What a person may choose, and what follows from it."""

from fnmatch import fnmatchcase
from typing import Annotated

from msgspec import Meta, Struct

from noeta_checklist.state import Ticks

TICK = "tick"


class ChecklistSettings(Struct, frozen=True):
    """The items of the list, and the tools that wait for it. ``*`` in a name stands for any letters."""

    items: Annotated[tuple[str, ...], Meta(min_length=1)] = (
        "The tests pass.",
        "The change was read once more.",
    )
    tools: tuple[str, ...] = ("*deploy*", "*publish*", "*release*")

    def waits(self, tool: str) -> bool:
        """Whether this tool waits for the list. The one that ticks off never does."""
        return tool != TICK and any(fnmatchcase(tool.lower(), name.lower()) for name in self.tools)

    def left(self, ticks: Ticks) -> list[str]:
        """The items that are open."""
        return [item for item in dict.fromkeys(self.items) if item not in ticks.how]
