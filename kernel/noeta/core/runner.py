"""The loop: take a claimed task as far as it goes, then let it wait or end."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

import anyio
from msgspec.structs import asdict, replace

from noeta.core import records as r
from noeta.core.calls import settle, withdraw
from noeta.core.errors import Conflict, PluginFailure, ProviderError, TurnDone, TurnFailed
from noeta.core.inbox import drain
from noeta.core.items import Cancel, Interrupt, Post, encode_body
from noeta.core.messages import Block, Message, ToolUse, blank
from noeta.core.ports import ModelResponse
from noeta.core.state import TaskState
from noeta.core.tool import tool_flags
from noeta.core.work import Built, Work

MAX_ROUNDS = 8
"""How often `on_event` is told of what it staged itself before the task rests."""
MAX_OVERFLOWS = 3
MAX_CONTINUES = 3
TICK_SECONDS = 1.0


class Runner:
    """Runs one claim of a task. What it raises, such as `Fenced`, says that the claim is no longer good."""

    def __init__(self, work: Work) -> None:
        self.work: Work = work
        self._busy: anyio.CancelScope | None = None
        self._begun = True

    def halt(self) -> None:
        """Stop the model or the tools that run now: the inbox holds what ends the turn."""
        if self._busy:
            self._busy.cancel()

    async def run(self) -> None:
        """Run until the task waits, with nothing that keeps it here, or has ended."""
        work, state = self.work, self.work.state
        changed = None if (plugins := list(work.outside.installed)) == state.plugins else plugins
        work.put(r.Claimed(fence=work.claim.fence, worker=work.claim.worker, plugins=changed))
        resting = not state.ended and await self._steered(self._begin)
        while not resting:
            await drain(work)
            while work.stops:
                await self._stop(work.stops.pop(0))
            step = self._advance if self._begun else self._begin
            resting = await (self._end() if state.ended else self._steered(step))

    async def _steered(self, step: Callable[[], Awaitable[bool | None]]) -> bool:
        """Take a step that a hook may steer, or spoil. True when the claim is given up."""
        try:
            return bool(await step())
        except TurnDone:
            self._over(r.TurnDoneRecord(reason="hook"))
        except TurnFailed as failed:
            self._over(r.TurnFailedRecord(reason=failed.reason, detail=failed.detail))
        except PluginFailure as failure:
            if failure.policy == "park":
                # Nothing goes on before the plugins are told that it begins.
                self._begun = step != self._begin
                return await self._rest("plugin")
            self._over(r.TurnFailedRecord(reason="plugin_error", detail=str(failure)))
        return False

    async def _begin(self) -> None:
        self._begun = True
        await self.work.hooks.on_start(self.work)
        await self.work.outside.redeliver(self.work)

    async def _advance(self) -> bool:
        """Do what there is to do until it is done or halted, and let the task wait when there is nothing."""
        work, reason, self._overflows = self.work, "", 0
        with anyio.CancelScope() as self._busy:
            while not (work.stops or work.state.ended or (reason := await self._act())):
                await drain(work)
        return bool(reason) and await self._rest(reason)

    async def _act(self) -> str:
        """Do the next thing there is to do; what the task waits for when there is nothing."""
        work, state = self.work, self.work.state
        if state.open_calls:
            work.look()
            return await settle(work)
        if state.turn is None:
            return "idle"
        done = [call.end_turn for call in state.calls.values() if call.seq > state.turn.seq]
        if texts := [text for text in done if text is not None]:
            self._over(r.TurnDoneRecord(reason="tool", text=texts[-1]))
            return ""
        built = await work.outside.build(work)
        await work.commit()
        await work.tell()
        began = work.outside.clock.monotonic()
        try:
            response = await work.outside.model(built.request, work.outside.live)
        except ProviderError as error:
            return await self._model_failed(error, built)
        self._reply(built, response, int(1000 * (work.outside.clock.monotonic() - began)))
        self._overflows = 0
        await (drain(work) if response.message.calls else self._no_calls(response))
        # Calls are judged by what the request offered, so nobody is asked again.
        return "" if work.stops else await settle(work)

    def _reply(self, built: Built, response: ModelResponse, ms: int) -> None:
        """Record the reply. Calls get ids of the kernel's own; without text and calls there is no message."""
        work, seq = self.work, self.work.state.seq + 1
        refs: list[r.CallRef] = []
        content: list[Block] = []
        for block in response.message.content:
            if isinstance(block, ToolUse):
                id = f"c{seq}_{len(refs)}_{work.claim.token.hex()[:8]}"
                name = re.sub(r"[^a-zA-Z0-9_-]", "_", block.name)[:64] or "_"
                use = replace(block, id=id, name=name, provider_id=block.provider_id or block.id)
                work.uses[id] = use
                refs.append(r.CallRef(id=id, name=use.name))
                content.append(use)
            elif not blank(block):
                content.append(block)
        said = refs or response.message.text.strip()
        model, stop, usage = response.model or built.request.model, response.stop_reason, response.usage
        fact = r.ModelReplied(built_at=built.built_at, request=built.digest, calls=refs, ms=ms, usage=usage)
        fact = replace(fact, model=model, stop_reason=stop)
        work.put(fact, Message(role="assistant", content=content) if said else None)

    async def _no_calls(self, response: ModelResponse) -> None:
        """End the turn with the reply's text, unless there is none and a plugin goes on."""
        work, turn, stop = self.work, self.work.state.turn, response.stop_reason
        text = response.message.text.strip()
        if text or stop != "end_turn" or turn is None:
            self._over(r.TurnDoneRecord(reason="" if stop == "end_turn" else stop, text=text))
        elif any(self._silences(name, ok) for name, ok in turn.tools.items()):
            self._over(r.TurnDoneRecord(reason="silent"))
        else:
            left = turn.continues.get("empty_reply", 0) < MAX_CONTINUES
            if left and (given := await work.hooks.on_empty_reply(work, response)):
                work.put(r.Continue(reason="empty_reply"), given[1], given[0], "on_empty_reply")
            else:
                self._over(r.TurnDoneRecord(reason="empty_reply"))

    def _silences(self, name: str, succeeded: bool) -> bool:
        """Whether an empty reply after a call of this tool is meant."""
        found = self.work.offer.tools.get(name)
        after = tool_flags(found[1]).silent_reply_after if found else None
        return after == "call" or (after == "success" and succeeded)

    async def _model_failed(self, error: ProviderError, built: Built) -> str:
        work, state = self.work, self.work.state
        if error.category == "overflow":
            self._overflows += 1
            size, left = _size(state), self._overflows <= MAX_OVERFLOWS
            if left and await work.hooks.on_context_overflow(work, built.request) and _size(state) < size:
                return ""
            raise TurnFailed("context_overflow", error.detail)
        fact = r.ModelFailed(category=error.category, detail=error.detail, attempt=state.failures + 1)
        work.put(replace(fact, retry_at=error.retry_at, built_at=built.built_at, request=built.digest))
        if error.retry_at is None:
            raise TurnFailed(error.category, error.detail)
        return "provider"

    def _over(self, fact: r.TurnDoneRecord | r.TurnFailedRecord) -> None:
        """The turn is over, and with it a one-shot task."""
        self.work.put(fact)
        if self.work.state.one_shot:
            end = ("done", fact.text) if isinstance(fact, r.TurnDoneRecord) else ("failed", fact.detail)
            self._finish(r.TaskEnded(status=end[0], text=end[1], reason=fact.reason))

    def _finish(self, fact: r.TaskEnded) -> None:
        """End the task: with the record goes word to its parent, and a cancel to its children."""
        work, state = self.work, self.work.state
        work.put(fact)
        self._cancel(state.live_children)
        if state.parent:
            body, key = encode_body(r.ChildEnded(child=state.task, **asdict(fact))), f"child:{state.task}"
            work.batch.posts.append(Post(task=state.parent, key=key, kind="child_ended", body=body))

    async def _stop(self, stop: Interrupt | Cancel) -> None:
        """Stop the turn: every open call gets a result, and the children it waits for are cancelled."""
        work, state = self.work, self.work.state
        if state.ended or (isinstance(stop, Interrupt) and (not state.turn or state.turn.seq != stop.turn)):
            return
        if state.turn:
            with suppress(PluginFailure):
                work.look()
            for call in state.open_calls:
                self._cancel([t for t, c in state.children.items() if c.call == call.id and not c.background])
                await withdraw(work, call, "The person stopped the turn before this call was finished.")
            work.put(r.Interrupted(by=stop.by))
        if isinstance(stop, Cancel) or state.one_shot:
            self._finish(r.TaskEnded(status="cancelled", reason=getattr(stop, "reason", "")))

    def _cancel(self, tasks: list[str]) -> None:
        body = encode_body(Cancel(by=self.work.state.task))
        self.work.batch.posts += [Post(task=t, key=f"cancel:{t}", kind="cancel", body=body) for t in tasks]

    async def _rest(self, reason: str) -> bool:
        """Let the task wait. False when something came meanwhile, or something keeps the claim here."""
        work, outside = self.work, self.work.outside
        if reason != "plugin":
            await self._tell_all()
        kept = outside.kept()
        retry_at = await outside.retry_at(work, reason)
        if not await self._written("waiting", reason=reason, retry_at=retry_at, release=not kept):
            if reason == "plugin":
                # What came waits with the task, unless it stops that.
                await drain(work)
            return reason == "plugin" and not work.stops and await self._rest(reason)
        while kept and outside.kept() and not (retry_at and outside.clock.now() >= retry_at):
            if await outside.log.inbox(work.state.task, 1):
                break
            await outside.wake(TICK_SECONDS)
        return not kept

    async def _end(self) -> bool:
        """Let go of a task that has ended, whatever plugins say to that. False when something came."""
        with suppress(PluginFailure):
            await self._tell_all()
        written = await self._written("ended", reason=self.work.state.ended, release=True)
        with suppress(PluginFailure):
            await self.work.tell()
        return written

    async def _tell_all(self) -> None:
        """Write what is staged and tell the plugins, until they have nothing to add."""
        for _ in range(MAX_ROUNDS if self.work.hooks.impls["on_event"] else 0):
            await self.work.commit()
            if not await self.work.tell():
                return

    async def _written(self, status: Literal["waiting", "ended"], **fields: Any) -> bool:
        """Write the append that lets the task go. False when the inbox has moved: then nothing is written."""
        if self.work.batch.erased:
            # Who has given the claim up can remove nothing.
            await self.work.commit()
        try:
            await self.work.commit(status, **fields)
        except Conflict:
            if not await self.work.outside.log.inbox(self.work.state.task, 1):
                raise
            return False
        return True


def _size(state: TaskState) -> int:
    return sum(len(item.data) for item in state.conversation)
