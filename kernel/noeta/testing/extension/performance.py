"""Calls every hook of the plugins in a rehearsal, with arguments such as a runner gives."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any

from noeta.core.codec import recorded
from noeta.core.errors import PluginFailure, Signal
from noeta.core.gates import Ask
from noeta.core.messages import ToolUse
from noeta.core.parts import CommandContext
from noeta.core.ports import ModelRequest, ModelResponse
from noeta.core.tool import text_output
from noeta.testing.extension.picture import picture
from noeta.testing.scripted_provider import reply
from noeta.testing.views import Rehearsal
from noeta.toolkit.schema import check_schema

CTX = CommandContext(cwd="/")


async def perform(task: Rehearsal) -> list[ToolUse]:
    """Call each hook at least once; the calls that are no longer what they were.

    What fails is among the failures of `task`, what is staged in its log.
    """
    changed: list[ToolUse] = []
    task.set(
        model="model",
        complete=_complete,
        count_tokens=_count,
        next_request=task.request,
        post=_nothing,
        read_log=_nothing,
        child_tasks=_nothing,
    )
    for call in _calls(task, changed):
        try:
            await call
        except (Signal, PluginFailure):
            # A signal is an answer, and a failure has been noted.
            continue
    return changed


def _calls(task: Rehearsal, changed: list[ToolUse]) -> Iterator[Awaitable[Any]]:
    hooks = task.hooks
    yield hooks.on_start(task)
    yield _sync(task)
    yield hooks.reminders(task)
    yield hooks.before_model(task, task.request())
    yield hooks.on_context_overflow(task, task.request())
    yield hooks.on_empty_reply(task, ModelResponse(message=reply()))
    for call in _tool_uses(task):
        before = picture(call)
        yield hooks.before_tool(task, call)
        yield hooks.resolve_ask(task, call, [Ask(prompt="Really?")])
        yield hooks.after_tool(task, call, text_output("done"))
        yield hooks.after_tool(task, call, text_output("failed", is_error=True))
        changed += [call] if picture(call) != before else []
    for record in task.log.records:
        yield hooks.on_event(task, recorded(record))
    yield hooks.before_compact(task, "manual", "be short")
    yield hooks.before_compact(task, "auto", "")
    compacting = task.made("")
    yield compacting.residents(lead=True, keeps_tail=True)
    yield compacting.residents(keeps_tail=False, kept=task.request().messages[-1:])
    yield _commands(task)


async def _sync(task: Rehearsal) -> None:
    task.hooks.delivered_through(task)
    task.hooks.context(task)
    task.offer()
    task.hooks.inherit(task, task.state)


async def _commands(task: Rehearsal) -> None:
    for by, commands in await task.hooks.commands(task, CTX):
        for command in commands:
            if not command.template:
                await task.hooks.run_command(task, by, CTX, command.name, "")


def _tool_uses(task: Rehearsal) -> Iterator[ToolUse]:
    """A call of a tool that is not the plugins', and one of each that is, with input that fits its schema."""
    yield ToolUse(id="c1_0_00000000", name="echo", input={"x": "y"})
    for i, (name, (_, tool)) in enumerate(task.offer().tools.items(), 1):
        input = example(tool.input_schema)
        if check_schema(tool.input_schema, input) is None:
            yield ToolUse(id=f"c1_{i}_00000000", name=name, input=input)


def example(schema: Any) -> Any:
    """A value that fits a plain JSON Schema; for one that is not plain, a value that may not."""
    schema = schema if isinstance(schema, dict) else {}
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "anyOf", "oneOf", "allOf"):
        if options := schema.get(key):
            return options[0] if key == "enum" else example(options[0])
    types = schema.get("type")
    match types[0] if isinstance(types, list) else types:
        case "object":
            properties = schema.get("properties", {})
            return {name: example(properties.get(name)) for name in schema.get("required", ())}
        case "array":
            return [example(schema.get("items"))] * schema.get("minItems", 0)
        case "string":
            return "x" * schema.get("minLength", 1)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return None


async def _complete(request: ModelRequest) -> ModelResponse:
    # It takes any request, also one that no model would: not every state is one in which a model is called.
    return ModelResponse(message=reply("a reply"))


async def _count(text: str) -> int:
    return len(text)


async def _nothing(*args: Any, **kwargs: Any) -> list[Any]:
    return []
