"""Tasks that this host must not run, though it has their agent."""

from __future__ import annotations

from noeta.core.errors import NoetaError
from noeta.core.work import Work


class Unfit(NoetaError):
    """This host cannot run the task; another one may. `why` says why."""

    def __init__(self, task: str, why: str) -> None:
        self.task: str = task
        self.why: str = why
        super().__init__(f"Task {task!r} is not run here: {why}.")


def check_fit(work: Work) -> None:
    """Raise `Unfit` for a log that this version cannot use."""
    state = work.state
    if problem := state.corrupt or state.newer:
        raise Unfit(state.task, f"record {problem.seq}: {problem.why}")


def lacking(work: Work) -> str:
    """The first plugin that the task requires and that is not part of its agent here, else the empty text."""
    here = {plugin.name for plugin in work.outside.installed}
    required = (plugin.name for plugin in work.state.plugins if plugin.required)
    return next((name for name in required if name not in here), "")
