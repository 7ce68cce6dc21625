"""What each record does to the state of a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from noeta.core.codec import Line, decode, encode
from noeta.core.facts import CORE_FOLD
from noeta.core.fold import Folder, Reducer, fold
from noeta.core.log import Timer
from noeta.core.messages import Message, Text, ToolResult, Usage, user
from noeta.core.records import (
    Answer,
    Answered,
    CallRef,
    ChildEnded,
    ChildSpawned,
    Claimed,
    Compacted,
    ContextComposed,
    Continue,
    Erased,
    Interrupted,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    Notice,
    Plugin,
    Received,
    SystemPart,
    TaskCreated,
    TaskEnded,
    TimerCleared,
    TimerSet,
    ToolFinished,
    ToolParked,
    ToolStarted,
    TurnDoneRecord,
    TurnFailedRecord,
)
from noeta.core.state import Child, TaskState
from noeta.host.erasure import tombstone
from noeta.testing.log_writer import LogWriter

Shown = Callable[[TaskState], list[str]]


def test_a_message_recorded_after_the_request_was_built_stands_behind_the_reply(
    log: LogWriter, shown: Shown
) -> None:
    built_at = log.say("first")
    log.say("late")
    (call,) = log.reply("reply", calls=1, built_at=built_at)
    log.say("later")
    log.run(call)
    assert shown(log.fold()) == ["first", "reply", call, "late", "later"]
    log.reply("last")
    assert shown(log.fold()) == ["first", "reply", call, "late", "later", "last"]


def test_results_stand_behind_their_reply_in_call_order_whatever_order_they_came_in(
    log: LogWriter, shown: Shown
) -> None:
    log.say("go")
    calls = log.reply("reply", calls=3)
    for call in (calls[2], calls[0], calls[1]):
        log.say(f"before {call}")
        log.run(call)
    assert shown(log.fold()) == ["go", "reply", *calls, *(f"before {calls[i]}" for i in (2, 0, 1))]


def test_a_second_result_of_a_call_changes_nothing(log: LogWriter, shown: Shown) -> None:
    log.say("go")
    (call,) = log.reply("reply", calls=1)
    log.run(call)
    before = log.fold()
    log.finish(call, "again")
    log.finish("c99_0_00000000", "of no call")
    after = log.fold()
    assert shown(after) == shown(before) == ["go", "reply", call]
    assert after.calls == before.calls


def test_a_message_starts_a_turn_and_the_end_of_a_turn_waits_for_the_next(log: LogWriter) -> None:
    log.note("alpha", "noted", message=user("while idle"))
    assert log.fold().turn is None
    seq = log.say("go")
    assert log.fold().turn.seq == seq
    log.say("more")
    assert log.fold().turn.seq == seq
    for end in (TurnDoneRecord(), TurnFailedRecord(reason="x"), Interrupted()):
        log.put(end)
        assert log.fold().turn is None
        seq = log.say("again")
        assert log.fold().turn.seq == seq
    log.put(TaskEnded(status="done"))
    assert (log.fold().ended, log.fold().turn) == ("done", None)


def test_an_item_without_a_message_starts_no_turn(log: LogWriter) -> None:
    log.put(Received(n=1, key="k", item="interrupt", data=msgspec.Raw(b'{"turn":1}')))
    assert log.fold().turn is None


def test_replies_and_continues_of_a_turn_are_counted(log: LogWriter) -> None:
    log.say("go")
    log.reply("")
    log.put(Continue(reason="empty_reply"), user("go on"))
    log.reply("")
    log.put(Continue(reason="empty_reply"), user("go on"))
    turn = log.fold().turn
    assert (turn.steps, turn.continues) == (2, {"empty_reply": 2})


def test_a_call_keeps_its_attempts_waits_and_answer(log: LogWriter) -> None:
    log.say("go")
    first, second = log.reply("", calls=2)
    assert [call.status for call in log.fold().open_calls] == ["open", "open"]
    log.put(ToolStarted(call=first, attempt=2))
    log.put(ToolParked(call=second, park=1, on="question", detail={"q": 1}))
    state = log.fold()
    assert (state.calls[first].status, state.calls[first].attempts) == ("started", 2)
    assert (state.calls[second].status, state.calls[second].park) == ("parked", 1)
    answer = Answer(call=second, park=1, verdict="allow", by="ann")
    log.put(Answered(n=1, key="a", answer=answer))
    assert (log.fold().calls[second].status, log.fold().calls[second].answer) == ("answered", answer)
    log.finish(second)
    assert [call.id for call in log.fold().open_calls] == [first]


@pytest.mark.parametrize("park", [1, 3])
def test_an_answer_to_another_wait_or_a_late_one_has_no_effect(log: LogWriter, park: int) -> None:
    log.say("go")
    (call,) = log.reply("", calls=1)
    log.put(ToolParked(call=call, park=2, on="question"))
    log.put(Answered(n=1, key="a", answer=Answer(call=call, park=park)))
    log.put(Answered(n=2, key="b", answer=Answer(call=call, park=2), late=True))
    assert log.fold().calls[call].status == "parked"


def test_a_call_that_waits_for_children_is_answered_by_the_last_of_them(log: LogWriter) -> None:
    log.say("go")
    (call,) = log.reply("", calls=1)
    for child in ("x", "y", "z"):
        log.put(ChildSpawned(child=child, agent="b", key=child, call=call, background=child == "z"))
    log.put(ToolParked(call=call, park=1, on="children", keys=["x", "y"]))
    ends = [ChildEnded(child=child, status="done", n=i, key=child) for i, child in enumerate("yx")]
    log.put(ends[0])
    state = log.fold()
    assert (state.calls[call].status, set(state.children)) == ("parked", {"x", "z"})
    log.put(ends[1])
    state = log.fold()
    assert (state.calls[call].status, state.calls[call].ends) == ("answered", {"y": ends[0], "x": ends[1]})
    assert state.children == {"z": Child(agent="b", call=call, background=True)}


def test_usage_adds_up_and_that_of_a_plugin_counts_too(log: LogWriter) -> None:
    log.put(ModelReplied(built_at=1, usage=Usage(uncached=5, output=1)))
    log.put(ModelCalled(plugin="p", usage=Usage(uncached=2)))
    log.put(ModelReplied(built_at=3, usage=Usage(uncached=7)))
    state = log.fold()
    assert (state.usage, state.context_usage) == (Usage(uncached=14, output=1), Usage(uncached=7))


def test_a_compaction_replaces_what_it_says_and_forgets_the_usage_of_before(
    log: LogWriter, shown: Shown
) -> None:
    log.say("one")
    kept = log.say("two")
    log.reply("three")
    through = log.say("four")
    log.say("five")
    log.put(
        Compacted(
            through=through,
            summary=[user("sum")],
            keep=[kept, through],
            lead=[user("lead")],
            after=[user("after")],
        )
    )
    state = log.fold()
    assert shown(state) == ["lead", "sum", "two", "four", "after", "five"]
    assert state.context_usage is None
    log.reply("six")
    log.put(Compacted(through=log.seq, summary=[user("again")]))
    assert shown(log.fold()) == ["again"]


def test_an_erased_message_leaves_the_conversation_with_what_quotes_it(log: LogWriter, shown: Shown) -> None:
    told: list[Any] = []
    reducer = Reducer(name="alpha", reduce=lambda _, kind, data: told.append((kind, data)))
    secret = log.say("secret")
    quote = log.note("alpha", "noted", message=user("secret, says a file"))
    log.say("rest")
    log.put(Erased(seqs=[secret], along=[quote]))
    assert shown(log.fold([reducer])) == ["rest"]
    assert told == [("noted", None), ("core.erased", [secret])]


def test_a_tombstone_is_not_reduced_and_puts_nothing_into_the_conversation(
    log: LogWriter, shown: Shown
) -> None:
    log.note("alpha", "noted", {"quote": "secret"}, user("secret"))
    log.note("alpha", "noted", {"quote": "fine"})
    first, second, third = log.records
    stone = decode(tombstone(second)[0])
    kinds = Reducer(name="alpha", initial=list, reduce=lambda state, kind, data: [*state, data["quote"]])
    state = fold([first, stone, third], [kinds])
    assert (state.states["alpha"], state.broken, state.corrupt, shown(state)) == (["fine"], {}, None, [])


def test_a_tombstone_of_a_core_record_says_nothing_and_is_no_fault(log: LogWriter, shown: Shown) -> None:
    log.say("go")
    log.put(Continue(reason="empty_reply"), user("secret"))
    *head, last = log.records
    state = fold([*head, decode(tombstone(last)[0])])
    assert (state.corrupt, shown(state)) == (None, ["go"])


def test_a_plugin_may_name_itself_among_those_it_folds(log: LogWriter) -> None:
    log.note("alpha", "noted")
    count = Reducer(name="alpha", initial=int, reduce=lambda state, *_: state + 1, folds=("alpha",))
    assert log.fold([count]).states == {"alpha": 1}


def test_declared_types_are_for_a_plugins_own_records_alone(log: LogWriter) -> None:
    log.note("beta", "noted", {"a": "text"})
    seen = Reducer(name="alpha", reduce=lambda _, kind, data: data, folds=("beta",), types={"noted": int})
    state = log.fold([seen, Reducer(name="beta")])
    assert (state.states["alpha"], state.skipped) == ({"a": "text"}, {})


def test_no_plugin_can_change_what_the_next_one_hears_of_an_erasure(log: LogWriter) -> None:
    def empty(state: Any, kind: str, data: list[int]) -> list[int]:
        return [data.pop()]

    log.put(Erased(seqs=[1]))
    assert log.fold([Reducer(name=name, reduce=empty) for name in "xy"]).states == {"x": [1], "y": [1]}


def test_every_plugin_hears_of_an_erasure_once_even_one_that_folds_the_core(log: LogWriter) -> None:
    def names(state: list[str], kind: str, data: Any) -> list[str]:
        return [*state, kind]

    log.put(Erased(seqs=[1]))
    reducers = [
        Reducer(name=name, initial=list, reduce=names, folds=folds)
        for name, folds in (("x", ()), ("y", ("core",)))
    ]
    assert log.fold(reducers).states == {"x": ["core.erased"], "y": ["task_created", "core.erased"]}


def test_a_timer_stands_until_it_is_fired_cleared_or_the_task_ends(log: LogWriter) -> None:
    first = log.put(TimerSet(name="a", at=5.0, text="wake"))
    log.put(TimerSet(name="b", at=6.0))
    assert log.fold().timers["a"] == Timer(name="a", gen=first, at=5.0, text="wake")
    second = log.put(TimerSet(name="a", at=7.0))

    def fired(gen: int) -> Received:
        data = msgspec.Raw(msgspec.json.encode({"name": "a", "gen": gen}))
        return Received(n=1, key=f"timer:a:{gen}", item="timer", data=data)

    log.put(fired(first))
    assert log.fold().timers["a"].gen == second
    log.put(fired(second))
    assert set(log.fold().timers) == {"b"}
    log.put(TimerCleared(name="b"))
    assert log.fold().timers == {}
    log.put(TimerSet(name="c", at=1.0))
    log.put(TaskEnded(status="done"))
    assert log.fold().timers == {}


def test_model_failures_are_counted_until_a_reply(log: LogWriter) -> None:
    log.put(ModelFailed(category="network", retry_at=9.5))
    log.put(ModelFailed(category="network", attempt=2, retry_at=19.5))
    assert (log.fold().failures, log.fold().retry_at) == (2, 19.5)
    log.reply("")
    assert (log.fold().failures, log.fold().retry_at) == (0, None)


def test_each_part_of_the_context_names_the_record_that_set_it(log: LogWriter) -> None:
    first = log.put(ContextComposed(system=[SystemPart(text="x")], parameters={"model": "m"}))
    second = log.put(ContextComposed(parameters={"model": "n"}))
    assert log.fold().composed == {"system": first, "parameters": second}


def test_a_claim_brings_its_fence_and_the_plugins_that_changed(log: LogWriter) -> None:
    plugins = [Plugin(name="alpha", version="2", required=True)]
    log.put(Claimed(fence=3, plugins=plugins))
    log.put(Claimed(fence=4))
    assert (log.fold().fence, log.fold().plugins) == (4, plugins)


def test_identity_comes_from_the_first_record() -> None:
    created = TaskCreated(
        task="t2", agent="a", config={"cwd": "/x"}, parent="t", root="t", key="k", one_shot=True
    )
    state = LogWriter(created).fold()
    assert (state.task, state.agent, state.config, state.parent, state.one_shot) == (
        "t2",
        "a",
        {"cwd": "/x"},
        "t",
        True,
    )


def test_a_continued_task_takes_over_the_conversation_and_nothing_that_runs(
    log: LogWriter, shown: Shown
) -> None:
    def step(state: int, kind: str, data: Any) -> int:
        return state + 1

    reducers = [
        Reducer(name="alpha", initial=int, reduce=step, continued=lambda state: state + 100),
        Reducer(name="beta", initial=int, reduce=step, continued=lambda state: 1 // 0),
        Reducer(name="gone", initial=int, reduce=lambda *_: 1 // 0, continued=lambda state: 7),
    ]
    log.say("go")
    for name in ("alpha", "beta", "gone"):
        log.note(name, "noted")
    log.put(TimerSet(name="t", at=1.0))
    log.put(ChildSpawned(child="x", agent="b", key="x"))
    log.put(Claimed(fence=9))
    (call,) = log.reply("", calls=1)
    through = log.seq
    created = TaskCreated(task="fork", agent="a2", root="fork", history_from="t", history_through=through)
    fork = LogWriter(created, through=through)
    assert fork.lines[0].seq == through + 1
    state = fold([*log.records, *fork.records], reducers)
    assert (state.task, state.agent, state.seq, state.corrupt) == ("fork", "a2", through + 1, None)
    assert shown(state) == shown(log.fold())
    assert (state.turn, state.timers, state.children, state.usage, state.fence) == (None, {}, {}, Usage(), 0)
    assert state.calls[call].inherited
    assert state.states == {"alpha": 101, "beta": 1, "gone": 7}
    assert set(state.broken) == {"beta"}
    assert state.broken["beta"].why.startswith("continue_state: ZeroDivisionError")


def test_a_plugin_folds_its_own_records_and_those_of_the_names_it_asks_for(log: LogWriter) -> None:
    def seen(state: list[Any], kind: str, data: Any) -> list[Any]:
        return [*state, (kind, data)]

    log.note("alpha", "noted", {"a": 1})
    log.note("beta", "noted", [2])
    notice = Notice(text="hi")
    log.put(notice)
    log.put(Compacted(through=0, summary=[user("s")]))
    reducers = [
        Reducer(name="alpha", initial=list, reduce=seen),
        Reducer(name="beta", initial=list, reduce=seen, folds=("alpha", "core")),
        Reducer(name="still"),
    ]
    created = TaskCreated(task="t", agent="a", root="t")
    compacted = Compacted(through=0, summary=[user("s")])
    assert log.fold(reducers).states == {
        "alpha": [("noted", {"a": 1})],
        "beta": [
            ("task_created", created),
            ("noted", {"a": 1}),
            ("noted", [2]),
            ("notice", notice),
            ("compacted", compacted),
        ],
        "still": None,
    }


def test_declared_types_are_what_reduce_gets_and_a_kind_not_declared_is_passed_over(log: LogWriter) -> None:
    class Noted(msgspec.Struct, frozen=True):
        a: int

    def seen(state: list[Any], kind: str, data: Any) -> list[Any]:
        return [*state, data]

    log.note("alpha", "noted", {"a": 1, "of_tomorrow": 2})
    log.note("alpha", "noted", {"a": "one"})
    log.note("alpha", "of_tomorrow", {})
    log.note("gone", "noted", {})
    log.note("gone", "noted", {}, user("stays"))
    state = log.fold([Reducer(name="alpha", initial=list, reduce=seen, types={"noted": Noted})])
    assert state.states == {"alpha": [Noted(1)]}
    skipped = {name: (skip.count, skip.first) for name, skip in state.skipped.items()}
    assert skipped == {"alpha.noted": (1, 3), "alpha.of_tomorrow": (1, 4), "gone.noted": (2, 5)}
    assert "Expected `int`" in state.skipped["alpha.noted"].why
    assert [item.message.text for item in state.conversation] == ["stays"]


def test_plugins_that_fold_the_same_record_do_not_share_its_data(log: LogWriter) -> None:
    def spoil(state: Any, kind: str, data: list[int]) -> list[int]:
        data.append(99)
        return data

    log.note("alpha", "noted", [1])
    reducers = [Reducer(name="alpha", reduce=spoil), Reducer(name="beta", reduce=spoil, folds=("alpha",))]
    assert log.fold(reducers).states == {"alpha": [1, 99], "beta": [1, 99]}


def test_a_plugin_that_raises_is_frozen_where_it_was_and_named(log: LogWriter) -> None:
    def brittle(state: int, kind: str, data: Any) -> int:
        return state + 1 // data

    for data in (1, 0, 1):
        log.note("alpha", "noted", data)
    state = log.fold([Reducer(name="alpha", initial=int, reduce=brittle)])
    assert state.states == {"alpha": 1}
    assert (state.broken["alpha"].seq, state.broken["alpha"].why) == (
        3,
        "reduce of noted: ZeroDivisionError: integer division or modulo by zero",
    )


@pytest.mark.parametrize(
    ("line", "corrupt", "newer"),
    [
        (b"{", "truncated", None),
        (b'{"seq":9,"at":1,"extension":"core","kind":"notice","data":{"text":"x"}}', "seq 9", None),
        (
            b'{"seq":2,"at":1,"extension":"core","kind":"notice","data":{"text":7}}',
            "notice: Expected `str`",
            None,
        ),
        (b'{"seq":2,"at":1,"extension":"core","kind":"turn_done","data":[]}', "turn_done: Expected", None),
        (b'{"seq":2,"at":1,"extension":"core","kind":"of_tomorrow","data":{}}', None, "of_tomorrow"),
        (b'{"seq":2,"at":1,"extension":"core","kind":"turn_done","data":{},"v":2}', None, "turn_done"),
        (
            b'{"seq":2,"at":1,"extension":"core","kind":"received","data":{"n":1,"key":"k","item":"new"}}',
            None,
            "new",
        ),
        (b'{"seq":2,"at":1,"extension":"alpha","kind":"of_tomorrow","data":{},"v":9}', None, None),
    ],
)
def test_a_core_record_that_cannot_be_used_is_told_apart_from_a_newer_one(
    log: LogWriter, line: bytes, corrupt: str | None, newer: str | None, shown: Shown
) -> None:
    records = [
        *log.records,
        decode(Line(2, line)),
        encode(3, 1.0, "x", "k", None, message=user("stays")).envelope,
    ]
    state = fold(records)
    for problem, words in ((state.corrupt, corrupt), (state.newer, newer)):
        if words is None:
            assert problem is None
        else:
            assert problem is not None
            assert problem.seq == 2
            assert words in problem.why
    assert shown(state) == ["stays"]


def test_a_copy_shares_no_dict_that_the_fold_changes() -> None:
    state = TaskState()
    copy = state.copy()
    for field in msgspec.structs.fields(TaskState):
        mine, its = getattr(state, field.name), getattr(copy, field.name)
        # A task's configuration is replaced as a whole and never changed.
        assert not (isinstance(mine, dict) and mine is its) or field.name == "config", field.name


def test_a_plugin_cannot_change_what_the_kernel_remembers_of_a_record(log: LogWriter) -> None:
    def meddle(state: Any, kind: str, data: Any) -> None:
        if kind == "tool_parked":
            data.detail["q"] = "changed"

    (call,) = log.reply("", calls=1)
    log.put(ToolParked(call=call, park=1, on="question", detail={"q": "asked"}))
    state = log.fold([Reducer(name=name, reduce=meddle, folds=("core",)) for name in "xy"])
    assert state.calls[call].detail == {"q": "asked"}


class Rude(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_without_a_text_is_still_caught(log: LogWriter) -> None:
    def raise_rude(state: Any, kind: str, data: Any) -> None:
        raise Rude

    log.note("alpha", "noted")
    assert log.fold([Reducer(name="alpha", reduce=raise_rude)]).broken["alpha"].why == "reduce of noted: Rude"


class Picky(msgspec.Struct):
    a: int

    def __post_init__(self) -> None:
        raise KeyError("a")


def test_a_type_that_raises_while_decoding_is_passed_over_once_a_record(log: LogWriter) -> None:
    log.note("alpha", "noted", {"a": 1})
    picky = Reducer(name="alpha", reduce=lambda *_: 1, types={"noted": Picky})
    seen = Reducer(name="beta", reduce=lambda *_: 1, folds=("alpha",))
    state = log.fold([picky, seen])
    assert (state.skipped["alpha.noted"].count, state.states) == (1, {"alpha": None, "beta": 1})


@pytest.mark.parametrize("names", [("core",), ("alpha", "alpha")])
def test_reducers_need_names_of_their_own(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="names of their own"):
        Folder([Reducer(name=name) for name in names])


def test_a_timer_that_was_set_again_after_it_fired_has_no_effect(log: LogWriter, shown: Shown) -> None:
    first = log.put(TimerSet(name="a", at=1.0, text="old"))
    log.put(TimerSet(name="a", at=2.0, text="new"))
    data = msgspec.Raw(msgspec.json.encode({"name": "a", "gen": first}))
    log.put(Received(n=1, key="timer:a", item="timer", data=data), user("old"))
    state = log.fold()
    assert (shown(state), state.turn, set(state.timers)) == ([], None, {"a"})


def test_a_gap_in_the_log_is_a_fault(log: LogWriter) -> None:
    log.say("one")
    log.say("two")
    state = fold([record for record in log.records if record.seq != 2])
    assert state.corrupt is not None
    assert (state.corrupt.seq, "after seq 1" in state.corrupt.why) == (3, True)
    partial = Folder((), partial=True)
    state = partial.start()
    partial.apply(state, log.records[2])
    assert state.corrupt is None


def test_a_finished_call_without_its_message_still_counts_as_finished(log: LogWriter, shown: Shown) -> None:
    log.put(ModelReplied(built_at=1, calls=[CallRef(id="c", name="n")]))
    log.put(ToolFinished(call="c"))
    assert (log.fold().open_calls, shown(log.fold())) == ([], [])


def test_a_result_of_many_blocks_is_one_item(log: LogWriter, shown: Shown) -> None:
    (call,) = log.reply("", calls=1)
    result = ToolResult(call=call, content=[Text(text="a"), Text(text="b")])
    log.put(ToolFinished(call=call), Message(role="user", content=[result]))
    assert shown(log.fold()) == ["", call]


def test_the_kinds_that_change_nothing_are_those_for_readers() -> None:
    nothing = {kind for kind, (_, change) in CORE_FOLD.items() if change is None}
    assert nothing == {"notice", "plugin_failed"}
