"""What the plugin writes into a log. Logs outlive code, so a new field needs a default."""

from msgspec import Struct

from noeta.toolkit.record_types import record_types

NAME = "checklist"


class Ticked(Struct, frozen=True):
    """The agent did an item, and said how."""

    item: str
    how: str


class Used(Struct, frozen=True):
    """The list was done and a call made use of it, so the list begins again."""

    call: str
    tool: str


RECORD_TYPES = record_types(Ticked, Used)
