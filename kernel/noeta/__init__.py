"""noeta runs agents that have to keep running. This is what the author of a plugin needs."""

from typing import TYPE_CHECKING

from noeta.core.errors import NoetaError as NoetaError
from noeta.core.errors import RequestStale as RequestStale
from noeta.core.errors import SettingsError as SettingsError
from noeta.core.errors import TurnDone as TurnDone
from noeta.core.errors import TurnFailed as TurnFailed
from noeta.core.extension import Extension as Extension
from noeta.core.gates import Allow as Allow
from noeta.core.gates import Ask as Ask
from noeta.core.gates import Deny as Deny
from noeta.core.gates import Gate as Gate
from noeta.core.gates import Rewrite as Rewrite
from noeta.core.messages import Image as Image
from noeta.core.messages import Message as Message
from noeta.core.messages import Text as Text
from noeta.core.messages import ToolReference as ToolReference
from noeta.core.messages import ToolUse as ToolUse
from noeta.core.parts import Command as Command
from noeta.core.parts import CommandContext as CommandContext
from noeta.core.parts import ContextPart as ContextPart
from noeta.core.parts import Reminder as Reminder
from noeta.core.parts import ToolChanges as ToolChanges
from noeta.core.parts import ToolEntry as ToolEntry
from noeta.core.ports import Effort as Effort
from noeta.core.ports import ModelRequest as ModelRequest
from noeta.core.ports import ModelResponse as ModelResponse
from noeta.core.ports import ToolSpec as ToolSpec
from noeta.core.records import ERASED_KIND as ERASED_KIND
from noeta.core.records import Answer as Answer
from noeta.core.records import ChildEnded as ChildEnded
from noeta.core.records import Compacted as Compacted
from noeta.core.records import CoreNotices as CoreNotices
from noeta.core.records import Recorded as Recorded
from noeta.core.records import TaskEnded as TaskEnded
from noeta.core.state import TaskState as TaskState
from noeta.core.tool import MAX_ATTEMPTS as MAX_ATTEMPTS
from noeta.core.tool import NO_FLAGS as NO_FLAGS
from noeta.core.tool import RESULT_CEILING_CHARS as RESULT_CEILING_CHARS
from noeta.core.tool import Display as Display
from noeta.core.tool import Park as Park
from noeta.core.tool import Tool as Tool
from noeta.core.tool import ToolContext as ToolContext
from noeta.core.tool import ToolFlags as ToolFlags
from noeta.core.tool import ToolOutput as ToolOutput
from noeta.core.tool import text_output as text_output
from noeta.core.tool import tool_flags as tool_flags
from noeta.core.view import TaskView as TaskView
from noeta.toolkit.agent import Agent as Agent
from noeta.toolkit.env import ExecEnv as ExecEnv
from noeta.toolkit.errors import ComposeError as ComposeError
from noeta.toolkit.errors import UnknownTask as UnknownTask
from noeta.toolkit.function_tool import function_tool as function_tool
from noeta.toolkit.keep import KeptClaim as KeptClaim
from noeta.toolkit.questions import ask as ask
from noeta.toolkit.questions import read_answer as read_answer
from noeta.toolkit.tool_set import ToolSet as ToolSet

if TYPE_CHECKING:
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
    # Who writes a plugin needs no host, and importing one costs more than all the rest.
    if name == "Host":
        from noeta.host.host import Host

        return Host
    raise AttributeError(f"module 'noeta' has no attribute {name!r}")


del TYPE_CHECKING
