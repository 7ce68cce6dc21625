"""What the plugins and tools of a task reach beyond the task: other tasks, inboxes, the model's counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noeta.core.errors import ProviderError
from noeta.core.items import NewEntry, post_of
from noeta.core.messages import Message, user
from noeta.core.ports import ModelRequest
from noeta.core.records import Recorded
from noeta.host.claimed import Means
from noeta.host.models import Models
from noeta.host.reading import Reader, children_of
from noeta.toolkit.store import UnknownTask


class Reach:
    """The reach of one task. `model` is the one it runs on."""

    def __init__(self, means: Means, task: str) -> None:
        self.model: str = ""
        self._means, self._task = means, task
        self._reader = Reader(means.store, means.agents)

    @property
    def of_views(self) -> dict[str, Any]:
        """The fields of a `TaskView`."""
        return {
            "post": self.post_here,
            "count_tokens": self.count_tokens,
            "read_log": self.read_log,
            "child_tasks": self.child_tasks,
        }

    @property
    def of_calls(self) -> dict[str, Any]:
        """The fields of a `ToolContext`."""
        return {
            "post": self.post,
            "count_tokens": self.count_tokens,
            "read_log": self.read_log,
            "tasks": self._means.store.tasks,
            "task": self._means.store.task,
        }

    async def post(
        self, body: str | Message | NewEntry, task_id: str | None = None, dedupe_key: str | None = None
    ) -> None:
        """Post to this task, or to another one, at once. Raises what `Store.post` raises."""
        key = dedupe_key or self._means.ids.new()
        await self._means.store.post(post_of(task_id or self._task, key, body))

    async def post_here(self, body: str | Message | NewEntry, dedupe_key: str | None = None) -> None:
        """Post to this task at once. Raises what `Store.post` raises."""
        await self.post(body, dedupe_key=dedupe_key)

    async def read_log(self, task_id: str, after: int = 0) -> Sequence[Recorded]:
        """Another task's records; of an unknown task none."""
        try:
            return await self._reader.log(task_id, after)
        except UnknownTask:
            return []

    async def child_tasks(self, task_id: str) -> list[str]:
        """The ids of a task's children, the oldest first."""
        return [row.task for row in await children_of(self._means.store, task_id)]

    async def count_tokens(self, text: str) -> int | None:
        """The provider's count of one message with this text, None when it cannot tell."""
        if not isinstance(self._means.model, Models):
            return None
        try:
            provider, name = self._means.model.find(self.model)
            return await provider.count_tokens(ModelRequest(model=name, messages=[user(text)]))
        except ProviderError:
            return None
