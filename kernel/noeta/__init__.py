"""noeta runs agents that have to keep running. This is what the author of a plugin needs."""

from noeta.core.records import Recorded as Recorded
from noeta.core.state import TaskState as TaskState

__all__ = ["Recorded", "TaskState"]
