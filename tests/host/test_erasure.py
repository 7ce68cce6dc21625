"""A tombstone says nothing, and changes nothing that the erasure did not change."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from noeta.core.codec import decode, encode, recorded
from noeta.core.fold import Reducer, fold
from noeta.core.messages import Image, Message, Text, user
from noeta.core.records import Compacted, Continue, Erased, Received, TimerSet
from noeta.core.state import TaskState
from noeta.host.erasure import tombstone
from noeta.testing.log_writer import LogWriter

Shown = Callable[[TaskState], list[str]]


def refolded(log: LogWriter, seqs: set[int], reducers: tuple[Reducer, ...] = ()) -> TaskState:
    """Return the state with tombstones at these seqs."""
    stones = [decode(tombstone(record)[0]) if record.seq in seqs else record for record in log.records]
    return fold(stones, reducers)


def test_a_tombstone_keeps_what_orders_and_dedupes_and_nothing_that_was_said() -> None:
    image = Image(media_type="image/png", data=b"CANARY")
    message = Message(role="user", content=[Text(text="CANARY " * 40_000), image])
    fact = Received(n=4, key="m4", item="entry", data=msgspec.Raw(b'"CANARY"'))
    made = encode(9, 2.0, "core", "received", fact, message=message)
    stone, blobs = tombstone(made.envelope)
    assert b"CANARY" not in stone.data
    assert set(blobs) == {blob.sha256 for blob in made.blobs}
    left = recorded(decode(stone))
    assert (left.seq, left.at, left.kind, left.erased, left.message) == (9, 2.0, "received", True, None)
    assert left.data == Received(n=4, key="m4", item="entry")
    assert tombstone(decode(stone)) == (stone, ())


def test_a_tombstone_of_a_plugins_record_keeps_its_name_alone() -> None:
    stone, _ = tombstone(encode(2, 2.0, "x", "k", {"quote": "CANARY"}, message=user("CANARY")).envelope)
    left = recorded(decode(stone))
    assert (left.extension, left.kind, left.data, left.message, left.erased) == ("x", "k", None, None, True)


def test_an_erased_compaction_still_makes_room(log: LogWriter, shown: Shown) -> None:
    log.say("old")
    secret = log.say("secret")
    picture = Image(media_type="image/png", data=b"pixels")
    summary = Message(role="user", content=[Text(text="about the secret"), picture])
    seq = log.put(Compacted(through=secret, summary=[summary], lead=[user("secret")]))
    log.say("x")
    log.put(Erased(seqs=[secret], along=[seq]))
    assert shown(log.fold()) == ["x"]
    assert refolded(log, {secret, seq}) == log.fold()
    stone, blobs = tombstone(log.records[seq - 1])
    assert b"secret" not in stone.data
    assert blobs == tuple(blob.sha256 for blob in log.blobs)


def test_a_timer_whose_message_is_erased_stays_fired(log: LogWriter) -> None:
    gen = log.put(TimerSet(name="x", at=1.0, text="hi"))
    data = msgspec.Raw(msgspec.json.encode({"name": "x", "gen": gen}))
    fired = log.put(Received(n=1, key=f"timer:x:{gen}", item="timer", data=data), user("hi"))
    log.put(Erased(seqs=[fired]))
    assert log.fold().timers == {}
    assert refolded(log, {fired}) == log.fold()


def test_a_continue_whose_message_is_erased_still_counts(log: LogWriter) -> None:
    log.say("go")
    seq = log.put(Continue(reason="empty_reply"), user("secret"))
    log.put(Erased(seqs=[], along=[seq]))
    assert refolded(log, {seq}) == log.fold()
    turn = log.fold().turn
    assert turn is not None
    assert turn.continues == {"empty_reply": 1}


def test_a_reply_and_a_result_are_never_erased(log: LogWriter, shown: Shown) -> None:
    (call,) = log.reply("secret", calls=1)
    reply, result = log.seq, log.run(call)
    before = log.fold()
    log.put(Erased(seqs=[reply], along=[result]))
    assert shown(log.fold()) == shown(before) == ["secret", call]
    assert refolded(log, {reply, result}) == log.fold()
    assert tombstone(log.records[reply - 1])[0] == log.lines[reply - 1]


def test_an_erased_record_of_an_absent_plugin_is_counted_as_before(log: LogWriter) -> None:
    seq = log.note("gone", "noted", {}, user("secret"))
    log.put(Erased(seqs=[], along=[seq]))
    assert refolded(log, {seq}) == log.fold()
    assert log.fold().skipped["gone.noted"].count == 1


def test_what_cannot_be_read_has_no_tombstone(log: LogWriter) -> None:
    unreadable = decode(log.lines[0]._replace(data=b"{"))
    assert fold([decode(tombstone(unreadable)[0])]).corrupt == fold([unreadable]).corrupt


@pytest.mark.parametrize("kind", ["received", "compacted", "continue"])
def test_damaged_data_leaves_a_tombstone_all_the_same(kind: str) -> None:
    envelope = msgspec.structs.replace(
        encode(1, 0.0, "x", "k", None, message=user("secret")).envelope, extension="core", kind=kind
    )
    envelope = msgspec.structs.replace(envelope, data=msgspec.Raw(b"[" * 3_000))
    assert decode(tombstone(envelope)[0]).erased
