"""noeta runs agents that have to keep running. This is what the author of a plugin needs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noeta._public import *
    from noeta.host.host import Host as Host

__all__ = [
    "ERASED_KIND",
    "MAX_ATTEMPTS",
    "NO_FLAGS",
    "RESULT_CEILING_CHARS",
    "Agent",
    "Allow",
    "Answer",
    "Ask",
    "ChildEnded",
    "Command",
    "CommandContext",
    "Compacted",
    "ComposeError",
    "ContextPart",
    "CoreNotices",
    "Deny",
    "Display",
    "Effort",
    "ExecEnv",
    "Extension",
    "Gate",
    "Host",
    "Image",
    "KeptClaim",
    "Message",
    "ModelRequest",
    "ModelResponse",
    "NoetaError",
    "Park",
    "Recorded",
    "Reminder",
    "RequestStale",
    "Rewrite",
    "SettingsError",
    "TaskEnded",
    "TaskState",
    "TaskView",
    "Text",
    "Tool",
    "ToolChanges",
    "ToolContext",
    "ToolEntry",
    "ToolFlags",
    "ToolOutput",
    "ToolReference",
    "ToolSet",
    "ToolSpec",
    "ToolUse",
    "TurnDone",
    "TurnFailed",
    "UnknownTask",
    "ask",
    "function_tool",
    "read_answer",
    "text_output",
    "tool_flags",
]


def __getattr__(name: str) -> object:
    # A command that only prints something pays for nothing else. Who writes a plugin needs no host, and
    # importing that costs more than all the rest.
    if name == "Host":
        from noeta.host.host import Host

        return Host
    if name in __all__:
        from noeta import _public

        globals().update({each: getattr(_public, each) for each in __all__ if each != "Host"})
        return globals()[name]
    raise AttributeError(f"module 'noeta' has no attribute {name!r}")


del TYPE_CHECKING
