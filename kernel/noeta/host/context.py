"""What a running call sees."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noeta.core.state import Call
from noeta.core.tool import ToolContext
from noeta.core.view import Spawn, TaskView, child_id
from noeta.core.work import Work


class Progress(Struct, frozen=True):
    """What a running call reports to those who watch live."""

    call: str
    text: str


def context_of(work: Work, call: Call, stage: TaskView, fields: Mapping[str, Any]) -> ToolContext:
    """The context of `call`, which stages on `stage`. `fields` are those that the host adds."""
    state, gating = work.state, work.gatings.get(call.id)

    def spawn(agent: str, prompt: str, *, config: Any = None, queue: str | None = None, **more: Any) -> str:
        key = f"{call.id}.{len(stage.creates)}"
        made = Spawn(
            child=child_id(state.task, key), agent=agent, prompt=prompt, key=key, call=call.id, **more
        )
        stage.creates.append(work.admit(replace(made, config=config or {}, queue=queue or "")))
        return made.child

    return ToolContext(
        task_id=state.task,
        call_id=call.id,
        record=stage.record,
        state=MappingProxyType(state.states),
        root_id=state.root or state.task,
        approved=bool(gating and gating.approved),
        allowed_outright=bool(gating and gating.outright),
        prompt=stage.prompt,
        spawn=spawn,
        progress=lambda text: work.outside.live(Progress(call.id, text)),
        complete=stage.complete,
        **fields,
    )
