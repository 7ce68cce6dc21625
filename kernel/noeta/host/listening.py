"""What the runner of a task sees of its store: an inbox that costs nothing while nothing comes."""

from __future__ import annotations

from noeta.core.log import Append, Appended, Claim, InboxItem, Log
from noeta.toolkit.store import Watch


class Listening:
    """The log of one claimed task. Its inbox is read only when `watch` hears that something may have come.

    A runner asks for its inbox twice a step. In a store on disk that costs as much as a commit.
    """

    def __init__(self, log: Log, watch: Watch) -> None:
        self._log, self._watch = log, watch
        self._unread = True

    async def append(self, claim: Claim, append: Append) -> Appended:
        """As `Log.append`."""
        try:
            return await self._log.append(claim, append)
        except BaseException:
            # It may be refused for what came, before anything was heard of it.
            self._unread = True
            raise

    async def inbox(self, task: str, limit: int = 100) -> list[InboxItem]:
        """As `Log.inbox`; nothing while nothing was heard since it was found empty."""
        self._unread = self._unread or await self._watch.wait(0)
        if not self._unread:
            return []
        items = await self._log.inbox(task, limit)
        # What it was given, the runner records.
        self._unread = len(items) >= limit
        return items

    async def look(self, task: str, limit: int) -> list[InboxItem]:
        """As `Log.inbox`, whatever was heard. The runner then finds what this found."""
        items = await self._log.inbox(task, limit)
        self._unread = self._unread or bool(items)
        return items
