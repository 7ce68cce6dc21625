"""A snapshot is a cache: with it, without it, or with a broken one, the state is the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noeta.core.codec import Envelope, Line, decode, encode
from noeta.core.conversation import Conversation
from noeta.core.fold import Folder, Reducer, fold
from noeta.core.items import Post
from noeta.core.log import Append, NewTask, SnapshotPart
from noeta.core.messages import user
from noeta.core.records import Compacted, Erased, Received, TaskCreated
from noeta.core.state import TaskState
from noeta.host.snapshot import MIN_RECORDS, SHARE, LineItem, Run, Runs, Snapshots, encode_slice
from noeta.testing.log_writer import LogWriter
from noeta.testing.logs import damaged_logs, logs
from noeta.toolkit.in_memory import InMemoryStore


class CountingStore(InMemoryStore):
    """Remembers which reads were asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[int, int | None, tuple[str, ...]]] = []

    async def read(self, task: str, after: int = 0, **options: Any) -> list[Line]:
        self.reads.append((after, options.get("through"), tuple(options.get("only") or ())))
        return await super().read(task, after, **options)

    async def messages(self, task: str, after: int = 0, **options: Any) -> list[tuple[int, bytes]]:
        self.reads.append((after, options.get("through"), ("messages",)))
        return await super().messages(task, after, **options)


def count(state: dict[str, int], kind: str, data: Any) -> dict[str, int]:
    return {**state, kind: state.get(kind, 0) + 1}


def fail_on_done(state: int, kind: str, data: Any) -> int:
    if kind == "done":
        raise KeyError(kind)
    return state + 1


def reducers(fingerprint: str = "1") -> list[Reducer]:
    return [
        Reducer(name="gone", initial=int, reduce=fail_on_done, fingerprint="1"),
        Reducer(name="alpha", initial=dict, reduce=count, folds=("beta",), fingerprint=fingerprint),
        Reducer(name="beta", initial=list, reduce=lambda s, k, d: [*s, k], fingerprint="1"),
        Reducer(name="still", fingerprint="1"),
    ]


def is_dense(lines: list[Line]) -> bool:
    return bool(lines) and [line.seq for line in lines] == list(range(1, len(lines) + 1))


async def store_of(lines: list[Line], blobs: Any = ()) -> CountingStore:
    store = CountingStore()
    wake = Post(task="t", key="wake", kind="message", body=b"{}")
    await store.create(NewTask(task="t", agent="a", root="t", lines=lines, blobs=blobs, posts=[wake]))
    return store


async def keep(store: InMemoryStore, parts: list[SnapshotPart]) -> None:
    (claim,) = await store.claim("w", task="t")
    seq = (await store.task("t")).last_seq
    id = b"%d" % (claim.fence,)
    await store.append(claim, Append(expected_seq=seq, id=id, snapshot=parts, release=True))


async def load(store: InMemoryStore, fingerprint: str = "1") -> TaskState:
    return await Snapshots(store, "t", Folder(reducers(fingerprint))).load()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(deadline=None)
@given(lines=logs(max_steps=40) | damaged_logs().filter(is_dense), data=st.data())
def test_a_state_restored_at_any_point_and_folded_on_is_the_state(
    backend: str, lines: list[Line], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(lines)), min_size=1, max_size=3)))

    async def check() -> None:
        whole = fold(map(decode, lines), reducers())
        store = await store_of(lines)
        folder = Folder(reducers())
        snapshots, state = Snapshots(store, "t", folder), folder.start()
        for line in lines:
            folder.apply(state, decode(line))
            if line.seq in cuts:
                await keep(store, snapshots.take(state))
                assert await load(store) == whole
        again = Snapshots(store, "t", folder)
        assert await again.load() == whole
        await keep(store, again.take(whole))
        assert await load(store) == whole
        assert await load(store, fingerprint="2") == whole

    anyio.run(check, backend=backend)


NO_PLACE = {
    "a second result": ("tool_finished", '"data":{"call":"CALL"}'),
    "a result of no call": ("tool_finished", '"data":{"call":"c0"}'),
    "a notice": ("notice", '"data":{"text":"x"}'),
    "a newer kind": ("of_tomorrow", '"data":{}'),
    "a newer version": ("continue", '"data":{},"v":9'),
    "bad data": ("continue", '"data":{"reason":7}'),
    "a tombstone": ("continue", '"erased":true'),
    "a plugin's tombstone": ("noted", '"erased":true'),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", NO_PLACE)
async def test_a_message_without_a_place_in_the_conversation_gets_none_from_a_snapshot(
    log: LogWriter, case: str
) -> None:
    log.say("go")
    (call,) = log.reply("", calls=1)
    log.run(call)
    kind, rest = NO_PLACE[case]
    extension = "alpha" if kind == "noted" else "core"
    head = f'"seq":{log.seq + 1},"at":1,"extension":"{extension}","kind":"{kind}"'
    body = f'{rest.replace("CALL", call)},"message":{{"role":"user","content":[]}}'
    log.lines.append(Line(log.seq + 1, f"{{{head},{body}}}".encode(), f"{extension}.{kind}", message=True))
    log.reply("end")
    log.reply("really")
    whole = log.fold(reducers())
    assert len(whole.conversation) == 5
    store = await store_of(log.lines)
    await keep(store, Snapshots(store, "t", Folder(reducers())).take(whole))
    assert await load(store) == whole


@pytest.mark.anyio
async def test_a_task_with_a_snapshot_is_loaded_without_the_records_that_it_covers(log: LogWriter) -> None:
    for i in range(50):
        log.say(f"message {i}")
        log.note("alpha", "noted", i)
        log.reply(f"reply {i}")
    store = await store_of(log.lines)
    state = await load(store)
    await keep(store, Snapshots(store, "t", Folder(reducers())).take(state))
    store.reads.clear()
    assert await load(store) == state
    # The messages, and what came behind; nothing by name, since every slice is fresh.
    assert store.reads == [(1, log.seq, ("messages",)), (log.seq, None, ())]


@pytest.mark.anyio
async def test_only_the_plugin_whose_code_changed_is_folded_again(log: LogWriter) -> None:
    log.note("alpha", "noted")
    log.note("beta", "noted")
    log.say("x")
    store = await store_of(log.lines)
    await keep(store, Snapshots(store, "t", Folder(reducers())).take(await load(store)))
    store.reads.clear()
    assert (await load(store, "2")).states["alpha"] == {"noted": 2}
    named = [only for _, _, only in store.reads if only and only != ("messages",)]
    assert named == [("core.task_created", "alpha", "beta", "core.erased")]


@pytest.mark.anyio
async def test_a_slice_that_did_not_change_is_not_written_again(log: LogWriter) -> None:
    folder = Folder(reducers())
    log.note("alpha", "noted")
    state = log.fold(reducers())
    snapshots = Snapshots(await store_of(log.lines), "t", folder)
    assert [part.name for part in snapshots.take(state)] == ["gone", "alpha", "beta", "still", "core"]
    log.say("x")
    folder.apply(state, log.records[-1])
    assert [part.name for part in snapshots.take(state)] == ["core"]
    log.note("beta", "noted")
    folder.apply(state, log.records[-1])
    assert [part.name for part in snapshots.take(state)] == ["alpha", "beta", "core"]


@pytest.mark.anyio
@pytest.mark.parametrize("damage", ["core", "alpha", "older core", "foreign seq", "missing part"])
async def test_a_snapshot_that_does_not_fit_is_ignored(log: LogWriter, damage: str) -> None:
    log.say("x")
    log.note("alpha", "noted", message=user("y"))
    log.reply("z")
    store = await store_of(log.lines)
    whole = await load(store)
    parts = {part.name: part for part in Snapshots(store, "t", Folder(reducers())).take(whole)}
    replace = msgspec.structs.replace
    core = msgspec.json.decode(parts["core"].data)
    match damage:
        case "core":
            parts["core"] = replace(parts["core"], data=b"{}")
        case "alpha":
            parts["alpha"] = replace(parts["alpha"], data=b"{")
        case "older core":
            core["scalars"]["agent"] = "wrong"
            parts["core"] = replace(parts["core"], fingerprint="0", data=msgspec.json.encode(core))
        case "foreign seq":
            parts["alpha"] = replace(parts["alpha"], seq=1, data=b'{"wrong":1}')
        case _:
            core["runs"] = [[2, 3, 1]]
            parts["core"] = replace(parts["core"], data=msgspec.json.encode(core))
    await keep(store, list(parts.values()))
    assert await load(store) == whole


@pytest.mark.anyio
async def test_large_bodies_and_compactions_come_back_from_a_snapshot(log: LogWriter) -> None:
    log.say("x" * 200_000)
    log.note("alpha", "noted", "y" * 200_000)
    kept = log.say("kept")
    log.reply("z")
    log.put(
        Compacted(
            through=log.seq, summary=[user("s")], keep=[kept], lead=[user("l" * 200_000)], after=[user("a")]
        )
    )
    log.say("late")
    log.reply("end")
    store = await store_of(log.lines, log.blobs)
    state = await load(store)
    assert [item.message.text[:4] for item in state.conversation] == ["llll", "s", "kept", "a", "late", "end"]
    assert (state.corrupt, state.broken) == (None, {})
    await keep(store, Snapshots(store, "t", Folder(reducers())).take(state))
    assert await load(store) == state


@pytest.mark.anyio
async def test_an_erased_message_is_in_no_later_snapshot(log: LogWriter) -> None:
    secret = log.say("CANARY")
    log.reply("hello")
    log.put(Erased(seqs=[secret]))
    store = await store_of(log.lines)
    state = await load(store)
    parts = Snapshots(store, "t", Folder(reducers())).take(state)
    assert not any(b"CANARY" in part.data for part in parts)
    await keep(store, parts)
    assert await load(store) == state


@pytest.mark.anyio
async def test_a_forks_snapshot_covers_the_history_it_continues(log: LogWriter) -> None:
    log.say("x")
    log.note("alpha", "noted")
    through = log.say("y")
    log.say("not of the fork")
    store = await store_of(log.lines)
    created = TaskCreated(task="fork", agent="a", root="fork", history_from="t", history_through=through)
    fork = LogWriter(created, through=through)
    fork.note("alpha", "done")
    fork.put(Received(n=1, key="k", item="message"), user("z"))
    wake = Post(task="fork", key="wake", kind="message", body=b"{}")
    await store.create(
        NewTask(
            task="fork", agent="a", root="fork", lines=fork.lines, base="t", through=through, posts=[wake]
        )
    )
    folder = Folder(reducers())
    state = await Snapshots(store, "fork", folder).load()
    assert [item.message.text for item in state.conversation] == ["x", "y", "z"]
    assert state.states["alpha"] == {"noted": 1, "done": 1}
    (claim,) = await store.claim("w", task="fork")
    parts = Snapshots(store, "fork", folder).take(state)
    await store.append(claim, Append(expected_seq=fork.seq, id=b"1", snapshot=parts, release=True))
    assert await Snapshots(store, "fork", folder).load() == state
    assert await Snapshots(store, "fork", Folder(reducers("2"))).load() == state


@pytest.mark.anyio
@pytest.mark.parametrize("lost", ["a compaction", "a message", "a plugin's record"])
async def test_what_a_missing_blob_took_is_said_with_a_snapshot_too(log: LogWriter, lost: str) -> None:
    large = "y" * 200_000
    log.say(large if lost == "a message" else "x")
    log.note("alpha", "noted", large if lost == "a plugin's record" else "")
    if lost == "a compaction":
        log.put(Compacted(through=2, summary=[user(large)]))
    log.reply("r")
    store = await store_of(log.lines, log.blobs)
    await keep(store, Snapshots(store, "t", Folder(reducers())).take(await load(store)))
    store._blobs.let_go("t")
    state = await load(store, "2")
    assert state.corrupt is not None
    assert "damaged" in state.corrupt.why


@pytest.mark.anyio
async def test_messages_stay_in_their_lines_until_somebody_reads_them(log: LogWriter) -> None:
    log.say("x")
    log.say("y" * 200_000)
    entry = encode(4, 1.5, "alpha", "noted", None, message=user("z"), by="alpha", hook="on_event")
    log.lines.append(entry.line)
    log.reply("r")
    store = await store_of(log.lines, log.blobs)
    whole = await load(store)
    await keep(store, Snapshots(store, "t", Folder(reducers())).take(whole))
    state = await load(store)
    assert [item.raw for item in state.conversation if isinstance(item, LineItem)] == [
        log.lines[1].data,
        log.lines[4].data,
    ]
    assert [item.message for item in state.conversation] == [item.message for item in whole.conversation]
    again = Snapshots(store, "t", Folder(reducers())).take(state)
    assert again[-1] == Snapshots(store, "t", Folder(reducers())).take(whole)[-1]


@pytest.mark.anyio
async def test_a_line_that_lost_its_message_is_noticed_with_a_snapshot_too(log: LogWriter) -> None:
    log.say("x")
    log.say("y")
    log.reply("r")
    lost = log.lines[1]
    log.lines[1] = lost._replace(data=lost.data.replace(b'"message":', b'"massage":'))
    store = await store_of(log.lines)
    whole = await load(store)
    assert len(whole.conversation) == 2
    await keep(store, Snapshots(store, "t", Folder(reducers())).take(whole))
    assert await load(store) == whole


def test_a_line_with_a_blob_does_not_end_like_one_with_a_message(log: LogWriter) -> None:
    log.say("x" * 200_000)
    log.say("x")
    assert [line.data[-2:] == b"}}" for line in log.lines[-2:]] == [False, True]
    fields = msgspec.structs.fields(Envelope)
    behind = fields[[field.name for field in fields].index("message") + 1 :]
    assert {field.type for field in behind} == {str, int, bool}


@pytest.mark.anyio
async def test_other_plugins_pass_over_other_records(log: LogWriter) -> None:
    log.note("beta", "noted")
    store = await store_of(log.lines)
    await keep(store, Snapshots(store, "t", Folder(reducers())).take(await load(store)))
    alone = [Reducer(name="alpha", initial=dict, reduce=count)]
    assert await Snapshots(store, "t", Folder(alone)).load() == log.fold(alone)


@pytest.mark.anyio
async def test_a_plugin_without_records_still_continues_its_state(log: LogWriter) -> None:
    still = [Reducer(name="still", initial=lambda: 7, continued=lambda state: state + 1)]
    store = await store_of(log.lines)
    created = TaskCreated(task="fork", agent="a", root="fork", history_from="t", history_through=1)
    fork = LogWriter(created, through=1)
    wake = Post(task="fork", key="wake", kind="message", body=b"{}")
    new = NewTask(task="fork", agent="a", root="fork", lines=fork.lines, base="t", through=1, posts=[wake])
    await store.create(new)
    state = await Snapshots(store, "fork", Folder(still)).load()
    assert state.states == {"still": 8}
    (claim,) = await store.claim("w", task="fork")
    parts = [part for part in Snapshots(store, "fork", Folder(still)).take(state) if part.name == "core"]
    await store.append(claim, Append(expected_seq=2, id=b"1", snapshot=parts, release=True))
    assert await Snapshots(store, "fork", Folder(still)).load() == state


def test_a_broken_plugin_is_not_kept(log: LogWriter) -> None:
    log.note("alpha", "noted")
    broken = Reducer(name="alpha", reduce=lambda *_: 1 // 0)
    parts = Snapshots(InMemoryStore(), "t", Folder([broken])).take(log.fold([broken]))
    assert [part.name for part in parts] == ["core"]


class Point(msgspec.Struct):
    x: int


@pytest.mark.parametrize(
    ("value", "declared", "kept"),
    [
        ({"a": [1, 2.5, None, "x"]}, None, True),
        ({"a": (1, 2)}, None, False),
        ({1: "a"}, None, False),
        ({"a": float("nan")}, None, False),
        ({"a": True}, dict[str, int], False),
        (Point(1), None, False),
        (Point(1), Point, True),
        ([Point(1)], list[Point], True),
        ((1, 2), tuple[int, int], True),
        (object(), None, False),
        ("\ud800", None, False),
        ({1}, set[float], False),
        ({1: 1}, dict[float, int], False),
        ({1.0: 1}, dict[float, int], True),
        (datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Paris")), datetime, False),
    ],
)
def test_a_state_is_kept_only_if_it_comes_back_equal_and_of_equal_types(
    value: Any, declared: Any, kept: bool
) -> None:
    assert (encode_slice(Reducer(name="x", state=declared), value) is not None) == kept


def test_a_snapshot_is_due_when_the_log_has_paid_for_it(log: LogWriter) -> None:
    snapshots = Snapshots(InMemoryStore(), "t", Folder(()))
    line = Line(1, b"x" * 100)
    snapshots.grown([line] * (MIN_RECORDS - 1))
    assert not snapshots.due
    snapshots.grown([line])
    assert snapshots.due
    cost = sum(len(part.data) for part in snapshots.take(log.fold()))
    assert not snapshots.due
    needed = max(MIN_RECORDS, int(cost / SHARE / 100) + 1)
    snapshots.grown([line] * (needed - 1))
    assert not snapshots.due
    snapshots.grown([line])
    assert snapshots.due


def long(length: int) -> Conversation:
    conversation = Conversation()
    for seq in range(1, length + 1):
        conversation.add(seq, b"{}")
    return conversation


def test_items_that_follow_each_other_are_one_run() -> None:
    conversation = long(3)
    conversation.add_reply(5, b"{}", 4)
    conversation.add(6, b"{}")
    conversation.add_reply(9, b"{}", 8)
    assert Runs().of(conversation) == [Run(1, 9)]
    assert [item.seq for item in conversation.tail] == []


def test_what_stands_out_of_order_or_beside_a_gap_is_a_run_of_its_own() -> None:
    conversation = long(2)
    conversation.add(3, b"late")
    conversation.add_reply(4, b"{}", 2)
    conversation.add_reply(5, b"{}", 4)
    assert [item.seq for item in conversation] == [1, 2, 4, 3, 5]
    assert Runs().of(conversation) == [Run(1, 2), Run(4, 4), Run(3, 3), Run(5, 5)]
    conversation.erase([2])
    assert Runs().of(conversation) == [Run(1, 1), Run(4, 4), Run(3, 3), Run(5, 5)]


def test_a_compaction_makes_runs_of_parts() -> None:
    conversation = long(4)
    conversation.add_reply(5, b"{}", 4)
    conversation.compact(6, 4, [2], [b"lead", b"summary"], [b"after"])
    conversation.add(7, b"{}")
    conversation.add_reply(8, b"{}", 7)
    assert [(item.seq, item.part) for item in conversation] == [
        (6, 1),
        (6, 2),
        (2, 0),
        (6, 3),
        (5, 0),
        (7, 0),
        (8, 0),
    ]
    assert Runs().of(conversation) == [Run(6, 2, 1), Run(2, 2), Run(6, 3, 3), Run(5, 5), Run(7, 8)]


def test_asking_for_the_runs_of_one_conversation_changes_nothing_for_another() -> None:
    runs, conversation = Runs(), long(2)
    conversation.add_reply(3, b"{}", 2)
    copy = conversation.copy()
    assert runs.of(conversation) == [Run(1, 3)]
    conversation.add_reply(4, b"{}", 3)
    assert runs.of(conversation) == [Run(1, 4)]
    assert runs.of(copy) == [Run(1, 3)]
    copy.add_reply(5, b"{}", 4)
    assert runs.of(copy) == [Run(1, 5)]
    assert runs.of(conversation) == [Run(1, 4)]


def test_runs_are_made_anew_after_a_compaction_that_left_the_last_item_where_it_was() -> None:
    runs, conversation = Runs(), long(2)
    conversation.add_reply(3, b"{}", 2)
    assert runs.of(conversation) == [Run(1, 3)]
    conversation.compact(4, 1, [], [b"summary"], [])
    assert runs.of(conversation) == [Run(4, 1, 1), Run(2, 3)]
