"""The kit for plugins passes good ones, and finds each fault of a bad one in the check named for it."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import anyio
import msgspec
import pytest

from noeta import (
    ERASED_KIND,
    Allow,
    Command,
    CommandContext,
    ContextPart,
    Extension,
    Gate,
    ModelRequest,
    Recorded,
    Reminder,
    RequestStale,
    TaskState,
    TaskView,
    Tool,
    ToolChanges,
    ToolContext,
    ToolOutput,
    ToolUse,
    text_output,
)
from noeta.host.plugin_files import PluginFile
from noeta.host.trust import Looked
from noeta.testing import EXTENSION_CHECKS, ExtensionCheck, LogWriter, Subject, check_extension
from noeta.testing.extension.picture import picture
from noeta.testing.extension.values import drawn, values
from noeta.toolkit.hooks import HOOKS


class Echo:
    """A sound tool."""

    name: Any = "say"
    description: Any = "Say it again."
    input_schema: ClassVar[Any] = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
    read_only = True
    clearable = False

    async def run(self, input: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        return text_output(input["text"])


class Noted(msgspec.Struct, frozen=True):
    text: str
    times: int = 1


class State(msgspec.Struct, frozen=True):
    texts: tuple[str, ...] = ()
    erased: int = 0


class Notes(Extension):
    """A good plugin with typed records, which uses every hook."""

    name = "notes"
    folds = ("core",)
    record_types: ClassVar[Any] = {"noted": Noted}
    State: Any = State

    class Settings(msgspec.Struct):
        most: int = 3
        words: list[str] = []

    def initial_state(self) -> Any:
        return State()

    def reduce(self, state: Any, kind: str, data: Any) -> Any:
        if kind == "noted":
            return State((*state.texts, data.text)[-3:], state.erased)
        return State(state.texts, state.erased + 1) if kind == ERASED_KIND else state

    def tools(self, view: TaskView) -> Sequence[Tool]:
        return [Echo()]

    def tool_changes(self, view: TaskView, offered: Sequence[Tool]) -> ToolChanges | None:
        return ToolChanges(withhold={"echo": "Use say."})

    def context(self, view: TaskView) -> Sequence[ContextPart]:
        return [ContextPart(f"There are {len(view.ext_state(self.name).texts)} notes.")]

    async def reminders(self, view: TaskView) -> Sequence[Reminder]:
        return [Reminder("Mind the notes.")]

    def inherit(self, state: TaskState) -> Mapping[str, Any]:
        return {"notes": len(state.states["notes"].texts)}

    async def on_start(self, view: TaskView) -> None:
        view.record(self.name, "noted", Noted("started"))
        view.enqueue("hello")
        view.spawn("helper", "look")
        view.notify("started")

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        if len(view.ext_state(self.name).texts) > 2:
            raise RequestStale
        return request

    async def before_tool(self, view: TaskView, call: ToolUse) -> Gate | None:
        return Allow()

    async def after_tool(self, view: TaskView, call: ToolUse, output: ToolOutput) -> ToolOutput:
        view.record(self.name, "noted", {"text": output.text})
        return output

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        if recorded.kind == "tool_started":
            view.record(self.name, "noted", Noted(recorded.kind, recorded.seq))

    async def commands(self, ctx: CommandContext) -> Sequence[Command]:
        return [Command("notes", "Show the notes.")]

    async def run_command(self, ctx: CommandContext, name: str, args: str) -> str:
        return "The notes."


class Plain(Extension):
    """A good plugin without types: its data and its state are builtins."""

    name = "plain"

    def initial_state(self) -> Any:
        return {"seen": []}

    def reduce(self, state: Any, kind: str, data: Any) -> Any:
        return {"seen": [*state["seen"], data["text"]][-3:]} if kind == "seen" else state

    async def on_start(self, view: TaskView) -> None:
        view.record(self.name, "seen", {"text": "start"})


class Bare(Extension):
    """A good plugin that does nothing."""

    name = "bare"


@pytest.mark.parametrize("make", [Notes, Plain, Bare])
def test_a_good_plugin_passes(make: type[Extension]) -> None:
    check_extension(make)


SAMPLES = [
    b'{"seq":7,"at":1.0,"extension":"notes","kind":"noted","data":{"text":"old"}}',
    Recorded(seq=8, at=1.0, extension="notes", kind="noted", data={"text": "older", "gone": 1}),
    Recorded(seq=9, at=1.0, extension="notes", kind="noted", data=Noted("new"), by="notes", hook="on_start"),
]


def test_a_plugin_that_reads_its_old_records_passes() -> None:
    check_extension(Notes, SAMPLES)


def test_each_check_has_a_name_of_its_own_and_says_what_it_checks() -> None:
    names = [check.__name__ for check in EXTENSION_CHECKS]
    assert len(set(names)) == len(names)
    assert [check.__name__ for check in EXTENSION_CHECKS if not check.__doc__] == []


def test_the_kit_for_plugins_needs_no_test_runner_and_no_hypothesis_until_it_is_called() -> None:
    code = "import sys; sys.modules['hypothesis'] = sys.modules['pytest'] = sys.modules['trio'] = None"
    subprocess.run([sys.executable, "-c", f"{code}; import noeta.testing.check_extension"], check=True)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match=r"check_extension needs hypothesis.*noeta\[testing\]"):
        check_extension(Bare)


def bad(base: type[Extension] = Plain, /, **members: Any) -> Callable[[], Extension]:
    """A good plugin but for these members."""
    return type("Bad", (base,), {"__module__": "bad", **members})


ONE = Bare()
SHARED: dict[str, Any] = {"seen": []}
COUNTER = itertools.count()
HABIT = {"count": 0}


def add_in_place(self: Extension, state: Any, kind: str, data: Any) -> Any:
    if kind == "seen":
        state["seen"].append(data["text"])
    return state


def take_from_data(self: Extension, state: Any, kind: str, data: Any) -> Any:
    return {"seen": [data.pop("text")]} if kind == "seen" else state


def count_calls(self: Extension, state: Any, kind: str, data: Any) -> Any:
    return {"seen": [next(COUNTER)]}


def expect_text(self: Extension, state: Any, kind: str, data: Any) -> Any:
    return {"seen": [data["text"]]} if kind in ("seen", ERASED_KIND) else state


def empty_the_state(self: Extension, state: Any) -> Any:
    state["seen"].clear()
    return {"seen": []}


def forget_to_return(self: Extension, state: Any) -> Any: ...


def no_continuing(self: Extension, state: Any) -> Any:
    raise RuntimeError("not now")


def continue_anew(self: Extension, state: Any) -> Any:
    return {"seen": [str(next(COUNTER))]}


@dataclass
class Hidden:
    """A state that carries something which is no field of it."""

    count: int = 0


def count_hidden(self: Extension, state: Any, kind: str, data: Any) -> Any:
    new: Any = Hidden(getattr(state, "hidden", 0) // 3)
    new.hidden = getattr(state, "hidden", 0) + 1
    return new


class Stubborn(msgspec.Struct, frozen=True):
    count: int = 0


async def raise_on_start(self: Extension, view: TaskView) -> None:
    raise ValueError("no start")


async def give_text(self: Extension, view: TaskView) -> Any:
    return "Mind the notes."


async def count_on_start(self: Any, view: TaskView) -> None:
    self.count = getattr(self, "count", 0) + 1


async def count_in_class(self: Any, view: TaskView) -> None:
    type(self).habits["count"] += 1


async def record_elsewhere(self: Extension, view: TaskView) -> None:
    view.record("other", "seen", {})


async def record_undeclared(self: Extension, view: TaskView) -> None:
    view.record(self.name, "scribbled", {})


async def record_misfit(self: Extension, view: TaskView) -> None:
    view.record(self.name, "noted", {"words": 1})


async def add_to_the_call(self: Extension, view: TaskView, call: ToolUse) -> None:
    call.input["seen"] = True


async def add_to_the_config(self: Extension, view: TaskView, recorded: Recorded) -> None:
    view.state.config["seen"] = True


def take_everything(self: Any, **settings: Any) -> None:
    self.settings = Notes.Settings()


def take_nothing(self: Any) -> None:
    self.settings = Notes.Settings()


def number_at_birth(self: Any) -> None:
    self.number = next(COUNTER)


def echo(**members: Any) -> Tool:
    return type("Bad", (Echo,), members)()  # type: ignore[no-any-return]


class Misfit(msgspec.Struct):
    most: int = "many"  # type: ignore[assignment]


BAD: list[tuple[str, Callable[[], Extension], str]] = [
    (
        "it_goes_into_an_agent",
        bad(before_tol=raise_on_start),
        (
            "Plugin 'plain', method before_tol: there is no such hook (did you mean 'before_tool'?). "
            "Rename it, with a leading _ if it is no hook."
        ),
    ),
    (
        "it_goes_into_an_agent",
        lambda: Plain,  # type: ignore[arg-type,return-value]
        (
            "Plugin 'Plain', the agent's list: it is not an instance of a subclass of Extension. "
            "Write Plain()."
        ),
    ),
    (
        "it_goes_into_an_agent",
        lambda: 1 / 0,  # type: ignore[arg-type,return-value]
        "The plugin cannot be made: ZeroDivisionError: division by zero. Give its class, or what makes it.",
    ),
    (
        "each_instance_is_fresh",
        lambda: ONE,
        "Plugin 'bare', make: it gives the same instance twice. Let it make a new one.",
    ),
    (
        "its_names_agree",
        bad(__module__="noeta_other.plugin"),
        "Plugin 'plain', package: it is named 'noeta_other'. Name it noeta_plain.",
    ),
    (
        "its_declarations_are_sound",
        bad(required="yes"),
        "Plugin 'plain', required: it is 'yes'. Write True or False.",
    ),
    (
        "its_declarations_are_sound",
        bad(Settings=Misfit),
        (
            "Plugin 'plain', Settings.most: its default does not fit: Expected `int`, got `str`. "
            "Change the default."
        ),
    ),
    (
        "a_misspelt_setting_is_refused",
        bad(Notes, __init__=take_everything),
        (
            "Plugin 'notes', setting 'most_': it is taken, though there is no such setting. "
            "Hand keywords on to Extension.__init__."
        ),
    ),
    (
        "a_misspelt_setting_is_refused",
        bad(Notes, __init__=take_nothing),
        (
            "Plugin 'notes', setting 'most_': it is refused with TypeError: take_nothing() got an unexpected "
            "keyword argument 'most_'. Hand keywords on to Extension.__init__."
        ),
    ),
    (
        "the_initial_state_is_fresh_each_time",
        bad(initial_state=lambda self: SHARED),
        "Plugin 'plain', initial_state: two tasks would share one state. Make a new one each time.",
    ),
    (
        "the_initial_state_is_fresh_each_time",
        bad(initial_state=lambda self: {"seen": [next(COUNTER)]}, reduce=lambda self, state, kind, data: {}),
        "Plugin 'plain', initial_state: it gives another state each time. Make the same from nothing.",
    ),
    (
        "the_initial_state_is_fresh_each_time",
        bad(initial_state=lambda self: {}["seen"]),
        "Plugin 'plain', initial_state: it raised KeyError: 'seen'. Make the state from nothing.",
    ),
    (
        "reduce_is_pure",
        bad(reduce=add_in_place),
        (
            "Plugin 'plain', reduce: it changes the state it is given (kind 'seen'). "
            "Return a new state and leave what is given alone."
        ),
    ),
    (
        "reduce_is_pure",
        bad(reduce=take_from_data),
        (
            "Plugin 'plain', reduce: it changes the data it is given (kind 'seen'). "
            "Return a new state and leave what is given alone."
        ),
    ),
    (
        "reduce_is_total",
        bad(reduce=expect_text),
        (
            "Plugin 'plain', reduce: of core.erased: TypeError: list indices must be integers or slices, not "
            "str. Pass over what does not fit."
        ),
    ),
    (
        "reduce_is_total",
        bad(Notes, record_types={"noted": Noted, "strange": object}),
        (
            "Plugin 'notes', kind 'strange': no data of its type can be drawn to try it with. "
            "Give a record of it in samples."
        ),
    ),
    (
        "continue_state_is_pure_and_total",
        bad(continue_state=no_continuing),
        "Plugin 'plain', continue_state: it raised RuntimeError: not now. Take any state that reduce gives.",
    ),
    (
        "continue_state_is_pure_and_total",
        bad(continue_state=empty_the_state),
        (
            "Plugin 'plain', continue_state: it changes the state it is given. "
            "Return a new state and leave what is given alone."
        ),
    ),
    (
        "continue_state_is_pure_and_total",
        bad(continue_state=continue_anew),
        (
            "Plugin 'plain', continue_state: it gives another state each time. "
            "Return a new state and leave what is given alone."
        ),
    ),
    (
        "continue_state_is_pure_and_total",
        bad(continue_state=forget_to_return),
        (
            "Plugin 'plain', continue_state: reduce cannot go on from it: reduce of seen: TypeError: "
            "'NoneType' object is not subscriptable. Return a state of the form that initial_state has."
        ),
    ),
    (
        "its_state_can_be_kept",
        bad(reduce=lambda self, state, kind, data: {"seen": ["a"], "pair": (1, 2)}),
        (
            "Plugin 'plain', state: a dict does not come back from JSON as it was. "
            "Declare its type as State, or use lists and dicts with text keys."
        ),
    ),
    (
        "a_kept_state_folds_on_as_if_it_had_never_been_put_away",
        bad(State=Hidden, initial_state=lambda self: Hidden(), reduce=count_hidden),
        (
            "Plugin 'plain', state: after a snapshot it is another than without. "
            "Keep in it all that reduce looks at, in fields that are stored."
        ),
    ),
    (
        "every_hook_answers_on_every_state",
        bad(on_start=raise_on_start),
        (
            "Plugin 'plain', hook on_start: it failed with ValueError: no start. "
            "Let it answer on every state that a task can have."
        ),
    ),
    (
        "every_hook_answers_on_every_state",
        bad(resident=give_text),
        (
            "Plugin 'plain', hook resident: it failed with TypeError: its answer is of type str, not a list. "
            "Let it answer on every state that a task can have."
        ),
    ),
    (
        "what_hooks_are_given_stays_as_it_is",
        bad(before_tool=add_to_the_call),
        (
            "Plugin 'plain', hooks: they change a call they are asked about. "
            "Record what is to change the state, and answer Rewrite to change a call."
        ),
    ),
    (
        "what_hooks_are_given_stays_as_it_is",
        bad(on_event=add_to_the_config),
        (
            "Plugin 'plain', hooks: they change the state of the task. "
            "Record what is to change the state, and answer Rewrite to change a call."
        ),
    ),
    (
        "no_attribute_changes_while_hooks_run",
        bad(on_start=count_on_start),
        (
            "Plugin 'plain', attribute 'count': it changes while hooks run. "
            "Record what a task has to remember, and fold it."
        ),
    ),
    (
        "no_attribute_changes_while_hooks_run",
        bad(habits=HABIT, on_start=count_in_class),
        (
            "Plugin 'plain', attribute 'habits': it changes while hooks run. "
            "Record what a task has to remember, and fold it."
        ),
    ),
    (
        "its_records_are_written_under_its_name",
        bad(on_start=record_elsewhere),
        (
            "Plugin 'plain', hook on_start: it records 'seen' under the name 'other'. "
            "Record under the plugin's own name."
        ),
    ),
    (
        "its_records_are_of_declared_kinds",
        bad(Notes, on_start=record_undeclared),
        (
            "Plugin 'notes', hook on_start: it records 'scribbled', which is not declared. "
            "Add it to record_types."
        ),
    ),
    (
        "its_records_are_of_declared_kinds",
        bad(Notes, on_start=record_misfit),
        (
            "Plugin 'notes', hook on_start: the data of 'noted' does not read back as its type. "
            "Record a value of the type in record_types."
        ),
    ),
    (
        "its_context_is_stable",
        bad(context=lambda self, view: [ContextPart(f"This is look {next(COUNTER)}.")]),
        "Plugin 'plain', hook context: it gives another text each time. Make it of the state alone.",
    ),
    (
        "its_context_is_stable",
        bad(__init__=number_at_birth, context=lambda self, view: [ContextPart(f"I am {self.number}.")]),
        (
            "Plugin 'plain', hook context: another instance gives another text for the same state. "
            "Make it of the state and the settings alone."
        ),
    ),
    (
        "its_tools_are_stable",
        bad(tools=lambda self, view: [echo(name=f"say_{next(COUNTER)}")]),
        "Plugin 'plain', hook tools: it gives other tools each time. Make them of the state alone.",
    ),
    (
        "its_tools_are_stable",
        bad(__init__=number_at_birth, tools=lambda self, view: [echo(name=f"say_{self.number}")]),
        (
            "Plugin 'plain', hook tools: another instance gives other tools for the same state. "
            "Make them of the state and the settings alone."
        ),
    ),
    (
        "its_tools_are_sound",
        bad(tools=lambda self, view: [echo(description="")]),
        (
            "Plugin 'plain', tool 'say', description: it is empty. "
            "Tell the model what the tool does and when to use it."
        ),
    ),
    (
        "its_tools_are_sound",
        bad(tool_changes=lambda self, view, offered: ToolChanges(add=[echo(name="a b")])),
        "Plugin 'plain', tool 'a b', name: model APIs refuse it. Use 1 to 64 letters, digits, _ and -.",
    ),
    (
        "its_tools_are_sound",
        bad(tools=lambda self, view: [Echo(), Echo()]),
        "Plugin 'plain', tool 'say': it is offered twice. Give each tool a name of its own.",
    ),
]


def failure(check: ExtensionCheck, subject: Subject) -> str:
    try:
        check(subject)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("name", "make", "sentence"), BAD)
def test_a_bad_plugin_fails_the_check_that_is_named_for_it_and_no_other(
    name: str, make: Callable[[], Extension], sentence: str
) -> None:
    subject = Subject(make)
    told = {check.__name__: failure(check, subject) for check in EXTENSION_CHECKS}
    failed = {check: words for check, words in told.items() if words}
    assert next(iter(failed.items()), None) == (name, sentence)
    # What goes into no agent can be tried no further, and every check says the same of it.
    assert set(failed.values()) == {sentence}
    assert name == "it_goes_into_an_agent" or list(failed) == [name]


def test_the_first_promise_that_is_not_kept_ends_the_run_with_its_sentence() -> None:
    _, make, sentence = BAD[-1]
    with pytest.raises(AssertionError) as caught:
        check_extension(make)
    assert str(caught.value) == sentence


def note(data: Any = None, kind: str = "noted", extension: str = "notes") -> Recorded:
    return Recorded(seq=1, at=1.0, extension=extension, kind=kind, data=data)


BAD_SAMPLES: list[tuple[object, str]] = [
    (b"{", "sample 0: it is no record. Give a line of a log, or a Recorded."),
    ("text", "sample 0: it is no record. Give a line of a log, or a Recorded."),
    (
        note(extension="other"),
        (
            "sample 0: it is a record of 'other', which this plugin does not fold. "
            "Leave it out, or add the name to folds."
        ),
    ),
    (
        note(kind="scribbled"),
        (
            "sample 0: kind 'scribbled': plugin 'notes' does not know this kind. "
            "Keep old kinds and fields; give new fields a default."
        ),
    ),
    (
        note({"words": 1}),
        (
            "sample 0: kind 'noted': plugin 'notes' cannot read it: ValidationError: Object missing required "
            "field `text`. Keep old kinds and fields; give new fields a default."
        ),
    ),
]


@pytest.mark.parametrize(("sample", "sentence"), BAD_SAMPLES)
def test_an_old_record_that_is_read_no_more_is_found(sample: Any, sentence: str) -> None:
    subject = Subject(Notes, [sample])
    told = {check.__name__: failure(check, subject) for check in EXTENSION_CHECKS}
    assert {check: words for check, words in told.items() if words} == {
        "the_samples_still_fold": f"Plugin 'notes', {sentence}"
    }


def test_an_old_record_that_breaks_the_state_is_found() -> None:
    sample = note({"words": 1}, "seen", "plain")
    told = {check.__name__: failure(check, Subject(Plain, [sample])) for check in EXTENSION_CHECKS}
    assert told["reduce_is_total"]
    assert told["the_samples_still_fold"] == (
        "Plugin 'plain', sample 0: reduce of seen: KeyError: 'text'. Let reduce take old records as they are."
    )


class Careful(Extension):
    """It keeps what it has computed, and calls a model on states in which none would be called."""

    name = "careful"

    @functools.cached_property
    def _parts(self) -> list[ContextPart]:
        return [ContextPart("so")]

    def context(self, view: TaskView) -> list[ContextPart]:
        return self._parts

    async def before_model(self, view: TaskView, request: ModelRequest) -> ModelRequest:
        if view.complete:
            await view.complete(request)
        return request


def test_a_plugin_may_compute_once_and_call_a_model_on_any_state() -> None:
    check_extension(Careful)


def test_every_check_has_a_bad_plugin_that_fails_it() -> None:
    assert {name for name, _, _ in BAD} | {"the_samples_still_fold"} == {
        check.__name__ for check in EXTENSION_CHECKS
    }


def test_a_declaration_that_spoils_more_than_itself_is_told_first() -> None:
    class Untagged(msgspec.Struct):
        other: int = 0

    for members, words in [
        ({"State": Untagged | Stubborn}, "State: msgspec cannot read this type"),
        ({"record_types": ["noted"]}, "record_types: .* is no dict"),
        ({"record_types": {"a.b": dict}}, "record_types, 'a.b': the name of a kind has no dots"),
        ({"record_types": {"noted": Untagged | Stubborn}}, "record_types, .noted.: TypeError"),
    ]:
        with pytest.raises(AssertionError, match=words):
            check_extension(bad(**members))


FOLDING = {"initial_state", "reduce", "continue_state"}


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook not in FOLDING])
def test_every_hook_is_called_at_least_once(hook: str) -> None:
    def fail(self: Any) -> Any:
        raise LookupError("found out")

    subject = Subject(bad(Notes, **{hook: fail}))
    assert {(failed.hook, failed.error) for failed in subject.performance.failures} == {
        (hook, "LookupError: found out")
    }


def test_hooks_that_hang_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(self: Extension, view: TaskView) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr("noeta.testing.extension.subject.PATIENCE", 0)
    with pytest.raises(AssertionError, match=r"^Plugin 'plain', hooks: they took longer than 0 s\. Let none"):
        check_extension(bad(on_start=hang))


def test_an_entry_point_and_a_distribution_of_other_names_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "noeta_pebble.py").write_text(
        "from noeta import Extension\nclass Pebble(Extension):\n    name = 'pebble'\n"
    )
    info = tmp_path / "noeta_stone-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noeta-stone\nVersion: 1\n")
    (info / "RECORD").write_text("noeta_pebble.py,,\n")
    points = info / "entry_points.txt"
    points.write_text("[noeta.extensions]\nstone = noeta_pebble:Pebble\n")
    monkeypatch.syspath_prepend(tmp_path)
    from noeta_pebble import Pebble  # type: ignore[import-not-found]

    with pytest.raises(AssertionError) as caught:
        check_extension(Pebble)
    assert str(caught.value) == (
        "Plugin 'pebble', entry point: it is named 'stone'. Give both the same name."
    )
    points.write_text("[noeta.extensions]\npebble = noeta_pebble:Pebble\n")
    with pytest.raises(AssertionError) as caught:
        check_extension(Pebble)
    assert str(caught.value) == (
        "Plugin 'pebble', distribution: it is named 'noeta-stone'. Name it noeta-pebble."
    )


def test_a_plugin_file_is_no_package_that_could_have_another_name(tmp_path: Path) -> None:
    file = tmp_path / "a_file.py"
    data = b"from noeta import Extension\nclass Pebble(Extension):\n    name = 'pebble'\n"
    looked = Looked(path=file, kind="plugin file", data=data, sha256="0")
    check_extension(PluginFile(looked).classes()["pebble"])


def test_the_logs_hold_what_the_plugin_may_meet() -> None:
    subject = Subject(Notes, SAMPLES)
    kinds = {(record.extension, record.kind) for log in subject.logs for record in log.records}
    assert {("notes", "noted"), ("notes", "of_tomorrow"), ("core", "erased"), ("core", "received")} <= kinds
    assert any(record.hook == "after_tool" for record in subject.performance.records)
    assert LogWriter().lines == subject.logs[0].lines
    # Its records stand among the others too, and not only at the end.
    among = [
        record
        for log in subject.logs
        for record, later in itertools.pairwise(log.records)
        if record.extension == "notes" and later.kind == "model_replied"
    ]
    assert among


class Tree(msgspec.Struct, tag="tree"):
    """A type that holds itself, and much else."""

    name: str
    kids: list[Tree] = []
    size: int | float | None = None
    pair: tuple[int, str] = (0, "")
    more: dict[str, Any] = {}
    seen: set[int] = set()


def test_drawn_values_are_of_their_type() -> None:
    found = [msgspec.convert(value, Tree) for value in drawn(values(Tree), 30)]
    assert len({msgspec.json.encode(tree) for tree in found}) > 10
    assert any(tree.kids for tree in found)


def test_a_picture_tells_types_and_contents_apart_and_does_not_move() -> None:
    state: dict[str, Any] = {"a": [1, (2, {3})]}
    taken = picture(state)
    state["a"][0] = 9
    assert picture(state) != taken
    assert picture({"a": [1, (2, {3})]}) == taken
    assert picture([True]) != picture([1])
    assert picture([1.0]) != picture([1])
    assert picture([float("nan")]) == picture([float("nan")])
    assert picture([{1, 2}]) == picture([{2, 1}]) != picture([{1, 3}])
    loop: list[Any] = []
    loop.append(loop)
    assert picture(loop) == picture(loop)
