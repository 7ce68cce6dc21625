"""`record_types` names the kinds of a plugin and refuses structs that another version could not read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, defstruct

from noeta import Extension, NoetaError
from noeta.testing.log_writer import LogWriter
from noeta.toolkit.record_types import RecordTypeError, kind_of, record_types
from noeta.toolkit.reducers import reducer


class JobStarted(Struct, frozen=True):
    job: str


class JobEnded(Struct, frozen=True, tag="job_over"):
    job: str
    status: int = 0


class Said(Struct, frozen=True, kw_only=True):
    kind: ClassVar[str] = "said_so"
    text: str
    loud: bool = False


class Closed(Struct, forbid_unknown_fields=True):
    a: int = 0


class Listed(Struct, array_like=True):
    a: int = 0


class Late(Struct, kw_only=True):
    a: int = 0
    b: int


class Dotted(Struct, tag="a.b"): ...


class Odd(Struct):
    a: complex


class Tree(Struct):
    kids: list[Tree] = []


@dataclass
class Chain:
    next: Chain | None = None
    closed: Closed | None = None


def test_each_struct_stands_under_its_kind() -> None:
    assert record_types(JobStarted, JobEnded, Said, Tree) == {
        "job_started": JobStarted,
        "job_over": JobEnded,
        "said_so": Said,
        "tree": Tree,
    }
    assert record_types() == {}
    assert kind_of(JobStarted(job="j")) == kind_of(JobStarted) == "job_started"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Job", "job"),
        ("JobStarted", "job_started"),
        ("HTTPReply", "http_reply"),
        ("JobV2Done", "job_v2_done"),
        ("A", "a"),
        ("already_small", "already_small"),
    ],
)
@pytest.mark.parametrize("tag", [None, True])
def test_a_name_of_a_class_becomes_a_kind(name: str, kind: str, tag: bool | None) -> None:
    assert kind_of(defstruct(name, [], tag=tag)) == kind


@pytest.mark.parametrize(
    ("structs", "said"),
    [
        ([Closed], "'Closed': it forbids unknown fields, so it cannot read what a later version writes."),
        (
            [defstruct("Outer", [("a", dict[str, list[Closed | None]])])],
            "'Outer': 'Closed' inside it forbids",
        ),
        ([defstruct("Outer", [("a", Chain)])], "'Outer': 'Closed' inside it forbids"),
        ([Listed], "'Listed': it is told by position, so no field can be added or dropped."),
        ([Late], "'Late': in it the required 'b' stands behind 'a', as if added later."),
        ([Dotted], "'Dotted': its kind 'a.b' has a dot. Choose another kind."),
        ([defstruct("X" * 600, [])], "has to be a text of 1 to 512 characters"),
        ([Odd], "'Odd': nothing decodes a complex from JSON."),
        ([defstruct("Job", [("a", list[int] | tuple[int])])], "'Job': Type unions may not contain"),
        (
            [JobStarted, defstruct("Other", [], tag="job_started")],
            "'Other': its kind 'job_started' is that of 'JobStarted' too. Rename one of them.",
        ),
        ([int], "'int': it is no msgspec Struct."),
        ([JobStarted(job="j")], "it is no msgspec Struct."),
    ],
)
def test_a_struct_that_another_version_could_not_read_is_refused(structs: list[Any], said: str) -> None:
    with pytest.raises(RecordTypeError) as refused:
        record_types(*structs)
    assert said in str(refused.value)
    assert isinstance(refused.value, NoetaError)


def test_a_plugin_folds_its_records_as_these_types() -> None:
    class Jobs(Extension):
        name = "jobs"
        record_types = record_types(JobStarted, JobEnded)

        def initial_state(self) -> Any:
            return ()

        def reduce(self, state: Any, kind: str, data: Any) -> Any:
            return (*state, data)

    log = LogWriter()
    for record in (JobStarted(job="a"), JobEnded(job="a", status=2)):
        log.note("jobs", kind_of(record), record)
    log.note("jobs", "job_started", {"job": "b", "added_later": 1})
    state = log.fold([reducer(Jobs())])
    assert state.states["jobs"] == (JobStarted("a"), JobEnded("a", 2), JobStarted("b"))


class Pair(NamedTuple):
    a: int


class Shape(TypedDict):
    a: list[Tree]


class Word(Enum):
    A = "a"


inner_types = st.recursive(
    st.sampled_from([int, str, float, bool, bytes, Any, Word, Tree, Pair, Shape, Said, dict, list, None]),
    lambda inner: (
        inner.map(lambda it: list[it])  # type: ignore[valid-type]
        | inner.map(lambda it: dict[str, it])  # type: ignore[valid-type]
    ),
    max_leaves=3,
)


@given(inner_types, st.booleans())
def test_a_closed_struct_is_found_at_any_depth(inner: Any, closed: bool) -> None:
    fields = [("a", inner), ("b", dict[str, list[Closed]] if closed else int)]
    struct = defstruct("Outer", fields)
    if closed:
        with pytest.raises(RecordTypeError, match="'Closed' inside it"):
            record_types(struct)
    else:
        assert record_types(struct) == {"outer": struct}
