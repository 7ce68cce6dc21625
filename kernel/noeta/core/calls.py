"""Settling the calls of a reply: gate, start, run, and one result for each, whatever happens."""

from __future__ import annotations

from collections.abc import Awaitable
from itertools import takewhile
from typing import Any

import anyio
from msgspec import to_builtins
from msgspec.structs import asdict, replace

from noeta.core import records as r
from noeta.core import tool as t
from noeta.core.errors import NotStorable, told
from noeta.core.gates import Ask, Deny, Rewrite, opinions, resolve, resolve_asks
from noeta.core.messages import Message, Text, ToolResult, ToolUse, blank
from noeta.core.state import Call
from noeta.core.text import meant, storable_text
from noeta.core.tool import Tool, ToolOutput, text_output, tool_flags
from noeta.core.view import TaskView
from noeta.core.work import Gating, Work

SIDE_BY_SIDE = 10
"""How many read-only calls of a reply run at once."""
RECOVER_SECONDS = 30.0
WITHDRAW_SECONDS = 5.0
WAITS = ("question", "children")
"""What a tool may wait for. A call that was never started may also wait for ``approval``."""


async def settle(work: Work) -> str:
    """Take the calls of the last reply as far as they go.

    What they wait for, ``question`` or ``children``, or the empty text when every call has its result.
    """
    ready = [call.id for call in work.state.open_calls if await _prepared(work, call)]
    ready.sort(key=lambda id: tool_flags(_tool(work, id)).run_last)
    while ready:
        reads = list(takewhile(lambda id: _tool(work, id).read_only, ready[:SIDE_BY_SIDE]))
        together = reads or ready[:1]
        await _run(work, together)
        ready = ready[len(together) :]
    waits = {call.on for call in work.state.open_calls}
    return "children" if waits == {"children"} else "question" if waits else ""


async def _prepared(work: Work, call: Call) -> bool:
    """Whether the call is to run now; else it has its result, or waits."""
    tool = work.tool(call)
    if call.inherited:
        return _refused(work, call, f"The call of {call.name} was not finished where this task begins.")
    if call.status == "parked":
        return False
    if call.status == "started":
        return await _recovered(work, call, tool)
    if call.status == "answered" and call.on in WAITS:
        return tool is not None or _refused(work, call, f"The tool {call.name} is no longer there.")
    return await gate(work, call)


async def _recovered(work: Work, call: Call, tool: Tool | None) -> bool:
    """Whether a call that a crash left running is to run again; else it has its result."""
    unknown = f"The worker was lost while {call.name} ran, so the outcome of the call is unknown."
    if tool is None:
        return _refused(work, call, f"{unknown} The tool is no longer there.")
    if hasattr(tool, "recover"):
        stage, output = _stage(work, call), None
        with anyio.move_on_after(RECOVER_SECONDS):
            try:
                ctx = work.outside.context(work, call, stage)
                output = await _given(work, stage, tool.recover(work.use(call).input, ctx))
            except BaseException as error:
                unknown = f"{unknown} Looking it up failed: {work.outside.fault(error)}"
        if isinstance(output, ToolOutput):
            await _land(work, call, stage, output)
            return False
    if not _repeatable(tool) or call.attempts >= t.MAX_ATTEMPTS:
        return _refused(work, call, unknown)
    # What a person answered, or children came to, is there already: the call goes on from it.
    return _resumes(call) or await gate(work, call)


async def gate(work: Work, call: Call) -> bool:
    """Ask the plugins about a call. True when it may run; else it has its result, or waits for a person."""
    answer = call.answer if call.on == "approval" else None
    if answer and answer.verdict != "allow":
        text = f"The person refused this call. {answer.reason}".strip()
        return _refused(work, call, text, end_turn="" if answer.end_turn else None)
    rewrites = 0
    while True:
        call = work.state.calls[call.id]
        use, approved = work.use(call), call.on == "approval" and call.answer is not None
        if why := _unfit(work, use):
            return _refused(work, call, why)
        answers = list(await work.hooks.before_tool(work, use))
        decision = resolve(use, answers, rewrites=rewrites, approved=approved)
        if decision.verdict == "ask" and (given := await work.hooks.resolve_ask(work, use, decision.asks)):
            answers.append(given)
            decision = resolve_asks(use, decision, given[1], rewrites=rewrites)
            decision = replace(decision, winner=len(answers) - 1)
        before = work.gatings.get(call.id)
        record = r.Gated(call=call.id, opinions=opinions(answers), winner=decision.winner)
        if record.opinions and (before is None or record != before.record):
            work.put(record)
        work.gatings[call.id] = Gating(work.state.seq, record, approved, decision.outright)
        match decision.gate:
            case Deny(reason=reason):
                return _refused(work, call, reason or "The call was refused.")
            case Ask(prompt=prompt):
                asks = to_builtins(decision.asks)
                detail = {"prompt": prompt, "name": use.name, "input": use.input, "asks": asks}
                work.put(r.ToolParked(call=call.id, park=call.park + 1, on="approval", detail=detail))
                return False
            case Rewrite():
                rewrites += 1
            case _:
                return True


def _unfit(work: Work, use: ToolUse) -> str:
    """Why a call cannot even be gated, else the empty text."""
    offered = work.offer
    if use.name in offered.withheld:
        return offered.withheld[use.name]
    if use.name not in offered.tools:
        return f"There is no tool {use.name!r}{meant(use.name, offered.tools)}."
    tool = offered.tools[use.name][1]
    unchecked = tool_flags(tool).unchecked_input
    why = None if unchecked else work.outside.check_schema(tool.input_schema, use.input)
    return f"The input of {use.name} is not valid. {why}" if why else ""


async def _run(work: Work, ids: list[str]) -> None:
    """Start calls, make durable what has to be, and run them side by side."""
    calls: list[Call] = []
    for id in ids:
        call = work.state.calls[id]
        # Something was recorded since the call was gated: what plugins think of it may have changed.
        if _resumes(call) or work.gatings[id].seq == work.state.seq or await gate(work, call):
            calls.append(work.state.calls[id])
    for call in calls:
        if work.claim.unreleased or not _repeatable(_tool(work, call.id)):
            attempt = call.attempts if _resumes(call) and call.status == "answered" else call.attempts + 1
            work.put(r.ToolStarted(call=call.id, attempt=max(attempt, 1)))
    # What acts outside does so under the key of a call that is written down: another worker finds it there.
    if work.claim.unreleased or not all(_tool(work, call.id).read_only for call in calls):
        await work.commit()
    failures: list[Exception] = []

    async def run(call: Call) -> None:
        try:
            await _one(work, call)
        except Exception as error:
            # The calls beside it go on and keep their results.
            failures.append(error)

    if len(calls) == 1:
        await run(calls[0])
    else:
        async with anyio.create_task_group() as group:
            for call in calls:
                group.start_soon(run, call)
    if failures:
        raise failures[0]


async def _one(work: Work, call: Call) -> None:
    """Run one call to its result, or to where it waits."""
    use, tool, stage = work.use(call), _tool(work, call.id), _stage(work, call)
    ctx = work.outside.context(work, call, stage)
    try:
        if _resumes(call):
            outcome = call.answer if call.on == "question" else call.ends
            output = await _given(work, stage, tool.resume(use.input, ctx, outcome))  # type: ignore[attr-defined]
        else:
            output = await _given(work, stage, tool.run(use.input, ctx))
        why = "" if isinstance(output, ToolOutput) else f"it gave a {type(output).__name__}, not a ToolOutput"
        park = output.park if not why else None
        if park and not hasattr(tool, "resume"):
            why = "it cannot wait without a method resume"
        elif park and park.on == "children":
            running = {*work.state.live_children, *(spawn.child for spawn in stage.creates)}
            why = "" if park.keys and running.issuperset(park.keys) else "it waits for no children that run"
    except BaseException as error:
        why = work.outside.fault(error)
    if why:
        stage, output = _stage(work, call), _error(f"{use.name} failed: {why}")
    await _land(work, call, stage, output)


async def _given(work: Work, stage: TaskView, output: Awaitable[Any]) -> Any:
    """What a tool gives. Raises what it raises, and what keeps a child that it spawned from being born."""
    given = await output
    for spawn in stage.creates:
        await work.outside.birth(spawn)
    return given


async def _land(work: Work, call: Call, stage: TaskView, output: ToolOutput) -> None:
    """Record what a call gave, with what it staged. Hooks run one at a time."""
    async with work.one_at_a_time:
        if output.park is None:
            output = await work.hooks.after_tool(work, work.use(call), output)
        _take(work, call, stage, output)


def _take(work: Work, call: Call, stage: TaskView, output: ToolOutput) -> None:
    """Take what a call gave and staged. What no log can hold is an error the model can see."""
    work.settled(stage)
    try:
        if park := output.park:
            work.put(r.ToolParked(call=call.id, park=call.park + 1, **asdict(park)))
        else:
            finish(work, call, output)
    except Exception as error:
        finish(work, call, _error(f"{call.name} gave what no log can hold. {told(error)}"))


def finish(work: Work, call: Call, output: ToolOutput) -> None:
    """Give a call its result. What no log can hold is mended, and the record says so."""
    tool = work.tool(call)
    content: list[Any] = [block for block in output.content if not blank(block)]
    limit = tool_flags(tool).max_result_chars if tool else None
    if limit is not None and len(output.text) > min(limit, t.RESULT_CEILING_CHARS):
        spilled = Text(text=work.outside.spill(output.text, f"{work.state.task}-{call.id}"))
        content = [spilled, *(block for block in content if not isinstance(block, Text))]
    fact = r.ToolFinished(call=call.id, is_error=output.is_error, meta=output.meta, end_turn=output.end_turn)
    fact = replace(fact, display=to_builtins(output.display) if output.display else None)
    result = ToolResult(call=call.id, content=content, is_error=output.is_error, block_list=output.block_list)
    try:
        work.put(fact, Message(role="user", content=[result]))
    except NotStorable as error:
        clean = [Text(text=storable_text(b.text)) if isinstance(b, Text) else b for b in content]
        fact = replace(fact, meta={"not_storable": str(error)}, display=None)
        work.put(fact, Message(role="user", content=[replace(result, content=clean)]))


async def withdraw(work: Work, call: Call, why: str) -> None:
    """Give a call that is not finished its result since the turn stops; a tool that waits is told so."""
    tool, stage, output = work.tool(call), _stage(work, call), _error(why)
    if tool and call.status in ("parked", "answered") and call.on in WAITS:
        with anyio.move_on_after(WITHDRAW_SECONDS):
            try:
                ctx = work.outside.context(work, call, stage)
                given = await _given(work, stage, tool.resume(work.use(call).input, ctx, None))  # type: ignore[attr-defined]
                output = given if isinstance(given, ToolOutput) and not given.park else output
            except BaseException as error:
                stage, output = _stage(work, call), _error(f"{why} {work.outside.fault(error)}")
    _take(work, call, stage, output)


def _stage(work: Work, call: Call) -> TaskView:
    """A view on which the call stages its work."""
    return work.made(work.offer.tools.get(call.name, ("", None))[0]).begin("run")


def _tool(work: Work, id: str) -> Tool:
    return work.offer.tools[work.state.calls[id].name][1]


def _resumes(call: Call) -> bool:
    return call.on in WAITS and (call.answer is not None or bool(call.ends))


def _repeatable(tool: Tool) -> bool:
    return tool.read_only or tool_flags(tool).retry_safe


def _refused(work: Work, call: Call, text: str, end_turn: str | None = None) -> bool:
    """Give the call an error result: it does not run."""
    finish(work, call, replace(_error(text), end_turn=end_turn))
    return False


def _error(text: str) -> ToolOutput:
    return text_output(text, is_error=True)
