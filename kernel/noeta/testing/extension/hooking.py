"""What a plugin does when its hooks are called, on every state that the logs fold to."""

from __future__ import annotations

import msgspec

from noeta.core.codec import recorded
from noeta.core.records import CORE
from noeta.core.tool import Tool, tool_flags
from noeta.host.offer import LEFT_OUT
from noeta.testing.check_tool import check_tool
from noeta.testing.extension.picture import picture
from noeta.testing.extension.subject import Subject
from noeta.testing.views import Rehearsal


def every_hook_answers_on_every_state(subject: Subject) -> None:
    """No hook raises, but for the signals it may raise, and each answer is of a type the hook may give."""
    for failure in subject.performance.failures:
        if LEFT_OUT in failure.error:
            # What is wrong with a tool is told by the check of tools.
            continue
        why = f"it failed with {failure.error}"
        subject.fail(f"hook {failure.hook}", why, "Let it answer on every state that a task can have")


def no_attribute_changes_while_hooks_run(subject: Subject) -> None:
    """An instance serves many tasks at once, so what it knows of one is in the folded state alone."""
    if changed := subject.performance.changed:
        why = "it changes while hooks run"
        subject.fail(f"attribute {changed!r}", why, "Record what a task has to remember, and fold it")


def what_hooks_are_given_stays_as_it_is(subject: Subject) -> None:
    """The state is what the log folds to and a call what the model asked for, whatever hooks think of it."""
    if touched := subject.performance.touched:
        way_out = "Record what is to change the state, and answer Rewrite to change a call"
        subject.fail("hooks", f"they change {touched}", way_out)


def its_records_are_written_under_its_name(subject: Subject) -> None:
    """Records are found by the name of the plugin; those of others are theirs to write."""
    for record in subject.performance.records:
        if record.extension not in (subject.name, CORE):
            place = f"hook {record.hook}"
            why = f"it records {record.kind!r} under the name {record.extension!r}"
            subject.fail(place, why, "Record under the plugin's own name")


def its_records_are_of_declared_kinds(subject: Subject) -> None:
    """A plugin that declares `record_types` writes those kinds, and data that reads back as their types."""
    types = subject.extension.record_types
    for record in subject.performance.records if types is not None else ():
        if record.extension != subject.name:
            continue
        place = f"hook {record.hook}"
        if record.kind not in (types or {}):
            subject.fail(
                place, f"it records {record.kind!r}, which is not declared", "Add it to record_types"
            )
        if recorded(record, types).data is None and bytes(record.data) != b"null":
            why = f"the data of {record.kind!r} does not read back as its type"
            subject.fail(place, why, "Record a value of the type in record_types")


def its_context_is_stable(subject: Subject) -> None:
    """The same state gives the same system text, from another instance too: else no prompt is cached."""
    for task, other in subject.tasks:
        first, again, elsewhere = (
            [picture(list(parts)) for _, parts in each.hooks.context(each)] for each in (task, task, other)
        )
        if first != again:
            subject.fail("hook context", "it gives another text each time", "Make it of the state alone")
        if first != elsewhere:
            why = "another instance gives another text for the same state"
            subject.fail("hook context", why, "Make it of the state and the settings alone")


def its_tools_are_stable(subject: Subject) -> None:
    """The same state gives the same tools, from another instance too: else no prompt is cached."""
    for task, other in subject.tasks:
        first, again, elsewhere = ([_shown(tool) for tool in _tools(each)] for each in (task, task, other))
        if first != again:
            subject.fail("hook tools", "it gives other tools each time", "Make them of the state alone")
        if first != elsewhere:
            why = "another instance gives other tools for the same state"
            subject.fail("hook tools", why, "Make them of the state and the settings alone")


def its_tools_are_sound(subject: Subject) -> None:
    """Each passes `check_tool`, those of `tool_changes` too, and no two have one name."""
    for task, _ in subject.tasks:
        tools = _tools(task)
        tools += [tool for _, changes in task.hooks.tool_changes(task, tools) for tool in changes.add]
        for tool in tools:
            try:
                check_tool(tool)
            except AssertionError as error:
                raise AssertionError(f"Plugin {subject.name!r}, t{str(error)[1:]}") from None
        names = [tool.name for tool in tools]
        for name in names:
            if names.count(name) > 1:
                subject.fail(f"tool {name!r}", "it is offered twice", "Give each tool a name of its own")


def _tools(task: Rehearsal) -> list[Tool]:
    return [tool for _, tools in task.hooks.tools(task) for tool in tools]


def _shown(tool: Tool) -> object:
    """What a request says of the tool, and what the kernel makes of its flags."""
    schema = msgspec.json.encode(tool.input_schema)
    return tool.name, tool.description, schema, tool.read_only, tool.clearable, tool_flags(tool)
