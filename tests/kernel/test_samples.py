"""Logs that released versions wrote stay readable for ever; a log of a later version loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from noeta.core.codec import DECODERS, Line, decode, encode, recorded
from noeta.core.fold import Reducer, fold
from noeta.core.messages import Unknown, decode_message, encode_message
from noeta.core.records import CORE_KINDS, NULL, Compacted, Fact

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.jsonl"))
NEWEST = SAMPLES[-1]


def sample(path: Path) -> list[Line]:
    return [Line(i, line) for i, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1)]


def kinds_seen(state: list[str], kind: str, data: Any) -> list[str]:
    return [*state, kind]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_decodes_and_folds(path: Path) -> None:
    lines = sample(path)
    for line in lines:
        record = recorded(decode(line))
        assert record.kind != "unreadable"
        assert record.erased or record.data is not None
        if record.extension == "core" and not record.erased:
            assert type(record.data) is CORE_KINDS[record.kind]
    plugins = [Reducer(name=name, initial=list, reduce=kinds_seen) for name in ("alpha", "beta")]
    state = fold(map(decode, lines), plugins)
    assert (state.corrupt, state.newer, state.broken, state.skipped) == (None, None, {}, {})
    assert state.seq == len(lines)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_what_todays_code_reads_it_also_writes(path: Path) -> None:
    for line in sample(path):
        record = recorded(decode(line))
        if record.erased:
            continue
        again = encode(
            record.seq,
            record.at,
            record.extension,
            record.kind,
            record.data,
            message=record.message,
            by=record.by,
            hook=record.hook,
        )
        assert recorded(again.envelope) == record
        if path == NEWEST:
            assert again.line.data == line.data


def test_the_newest_sample_holds_every_core_kind_with_every_field_away_from_its_default() -> None:
    seen: dict[str, set[str]] = {}
    for line in sample(NEWEST):
        envelope = decode(line)
        if envelope.extension == "core":
            fields = msgspec.json.decode(envelope.data, type=dict[str, Any]) if envelope.data != NULL else {}
            seen.setdefault(envelope.kind, set()).update(fields)
    assert set(seen) == set(CORE_KINDS)
    # A continued task and a late answer cannot stand in the same log as the rest; these fields say "no" here.
    absent = {"task_created": {"history_from", "history_through"}, "answered": {"late"}}
    absent |= {"child_ended": {"reason"}, "task_ended": {"text"}, "child_spawned": {"background"}}
    absent |= {"tool_started": {"attempt"}, "model_failed": {"attempt"}}
    for kind, type_ in CORE_KINDS.items():
        assert set(type_.__struct_fields__) - seen[kind] == absent.get(kind, set()), kind


def test_a_field_of_a_later_version_is_passed_over_and_stays_in_the_bytes() -> None:
    for line in sample(NEWEST):
        envelope = decode(line)
        longer = Line(line.seq, line.data[:-1] + b',"of_tomorrow":{"a":[1,2]}}')
        assert decode(longer) == envelope
        if bytes(envelope.data).startswith(b'{"'):
            data = bytes(envelope.data)[:-1] + b',"of_tomorrow":[null]}'
            richer = msgspec.structs.replace(envelope, data=msgspec.Raw(data))
            if envelope.extension == "core":
                assert recorded(richer) == recorded(envelope)


def test_a_block_of_a_later_version_is_kept_as_it_came() -> None:
    raw = b'{"role":"user","content":[{"type":"hologram","beams":[1,2]},{"type":"text","text":"hi"}]}'
    message = decode_message(raw)
    assert message.text == "hi"
    assert isinstance(message.content[0], Unknown)
    assert (message.content[0].of, bytes(message.content[0].raw)) == (
        "hologram",
        b'{"type":"hologram","beams":[1,2]}',
    )
    assert decode_message(encode_message(message)) == message


def test_the_two_readings_of_a_compaction_have_the_same_fields() -> None:
    parts = msgspec.inspect.type_info(type(DECODERS["compacted"].decode(b'{"through":1}')))
    whole = msgspec.inspect.type_info(Compacted)
    assert isinstance(parts, msgspec.inspect.StructType)
    assert isinstance(whole, msgspec.inspect.StructType)
    assert {f.name for f in parts.fields} == {f.name for f in whole.fields}


def test_every_core_kind_has_a_tag_of_its_own() -> None:
    kinds = [type_.kind for type_ in Fact.__subclasses__()]
    assert sorted(kinds) == sorted(set(kinds)) == sorted(CORE_KINDS)
