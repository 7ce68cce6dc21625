"""The tool with which the agent ticks an item off."""

from typing import Any

from noeta import ToolContext, ToolFlags, ToolOutput, text_output
from noeta_checklist.records import NAME, Ticked
from noeta_checklist.settings import TICK, ChecklistSettings


class Tick:
    """Ticks an item off, and says which are left."""

    name = TICK
    description = "Tick an item of the checklist off once it is done."
    read_only = False
    clearable = False
    # It acts on nothing outside, so after a crash it may simply run again.
    flags = ToolFlags(retry_safe=True)

    def __init__(self, settings: ChecklistSettings) -> None:
        self._settings = settings
        self.input_schema: dict[str, Any] = {
            "type": "object",
            "properties": {
                "item": {"type": "string", "enum": list(dict.fromkeys(settings.items))},
                "how": {"type": "string", "description": "How you know that it is done."},
            },
            "required": ["item", "how"],
            "additionalProperties": False,
        }

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        """Record the item. The input was checked against the schema before."""
        ctx.record(NAME, "ticked", Ticked(input["item"], input["how"]))
        left = [item for item in self._settings.left(ctx.state[NAME]) if item != input["item"]]
        return text_output(f"Left: {' '.join(left)}" if left else "Everything is ticked off.")
