"""A bound for the model calls of a run, as a plugin that joins its agent."""

from __future__ import annotations

from noeta import Extension, ModelRequest, TaskView, TurnFailed


class MaxTurns(Extension):
    """Fails the turn instead of the model call that would be one too many. Children are not counted.

    It counts in this process: who goes on with the task has the whole number again.
    """

    name = "max-turns"
    version = "1"

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        # A call that is built or tried again is one call.
        self._calls: set[tuple[str, int, int]] = set()

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        """Let it pass, or fail the turn."""
        turn = view.state.turn
        if view.state.parent or turn is None:
            return request
        self._calls.add((view.task_id, turn.seq, turn.steps))
        if len(self._calls) > self._most:
            plural = "" if self._most == 1 else "s"
            raise TurnFailed(
                "max_turns", f"The run made {self._most} model call{plural}, as many as --max-turns allows."
            )
        return request
