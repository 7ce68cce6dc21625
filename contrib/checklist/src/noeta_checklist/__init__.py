"""Tools of an agent that wait until a checklist is done."""

from noeta_checklist.extension import Checklist as Checklist
from noeta_checklist.settings import ChecklistSettings as ChecklistSettings

__all__ = ["Checklist", "ChecklistSettings"]
