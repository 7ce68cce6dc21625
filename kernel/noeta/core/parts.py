"""What hooks hand back: pieces of a prompt, reminders, commands, changes to the tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from noeta.core.ports import ToolSpec
from noeta.core.tool import Tool


class ContextPart(Struct, frozen=True):
    """Text of the system prompt, appended after a newline in `order`, inside the cached block.

    With `before` it stands ahead of the prompt's first line equal to that. It must be stable: text that
    changes is recorded as a message instead.
    """

    text: str
    order: int = 100
    before: str = ""


class Reminder(Struct, frozen=True):
    """A note that is recorded as (extension, `kind`, `data`) with its message.

    With role ``user`` it rides in the person's turn, with ``system`` it is a system turn after it. User ones
    come first, then system ones, each by `order`.
    """

    text: str
    kind: str = "reminder"
    data: Any = None
    origin: Literal["system", "memory"] = "system"
    role: Literal["user", "system"] = "user"
    order: int = 100


class Command(Struct, frozen=True):
    """A slash command.

    `template`, with ``{args}`` filled in, is the message sent; when it is empty, `run_command` gives it. The
    text of a `local` command is shown to the person and never reaches the model.
    """

    name: str
    description: str
    template: str = ""
    argument_hint: str = ""
    local: bool = False


class CommandContext(Struct, frozen=True):
    """Where a command is listed or run: the directory, and the task if there is one yet."""

    cwd: str
    task_id: str | None = None


class ToolEntry(Struct, frozen=True):
    """An entry of the tool list that is never called, such as a vendor's mode switch.

    It stands right before the tool named `before`, else after the tools that are not `listed_last`.
    """

    spec: ToolSpec
    before: str = ""


class ToolChanges(Struct, frozen=True):
    """A plugin's changes to what the task offers.

    `add`: tools besides the plugins' own. `withhold`: offered tools left out of the request, each with the
    error that a call to it gets, before any gate. `entries`: what the request lists that is no tool.
    """

    add: Sequence[Tool] = ()
    withhold: Mapping[str, str] = {}
    entries: Sequence[ToolEntry] = ()


class Offer(Struct, frozen=True):
    """What a task offers its model at one step.

    The tools by name, each with its plugin; those left out, and what a call to one is told; and the request's
    entries that are no tool, each with its plugin.
    """

    tools: Mapping[str, tuple[str, Tool]] = {}
    withheld: Mapping[str, str] = {}
    entries: Sequence[tuple[str, ToolEntry]] = ()
