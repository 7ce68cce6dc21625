"""Making tasks: the first record of a task, its prompt, and where it continues another one."""

from __future__ import annotations

from noeta.core.codec import encode
from noeta.core.items import post_of
from noeta.core.log import NewTask
from noeta.core.messages import Message
from noeta.core.records import CORE, TaskCreated


def new_task(
    created: TaskCreated, *, at: float, prompt: str | Message | None = None, prompt_key: str = "prompt"
) -> NewTask:
    """The task that begins with `created`, with `prompt` in its inbox."""
    through = created.history_through
    made = encode(through + 1, at, CORE, created.kind, created)
    return NewTask(
        task=created.task,
        agent=created.agent,
        root=created.root,
        parent=created.parent,
        key=created.key,
        queue=created.queue,
        base=created.history_from,
        through=through,
        lines=[made.line],
        blobs=made.blobs,
        posts=[] if prompt is None else [post_of(created.task, prompt_key, prompt)],
    )
