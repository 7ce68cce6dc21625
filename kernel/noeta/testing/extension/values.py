"""Values of a type that msgspec knows, drawn as the builtins they are stored as. Needs hypothesis.

Not every value drawn fits a type with constraints; who asks leaves out those that do not decode.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import msgspec
from msgspec import inspect as kinds

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


T = TypeVar("T")
PLAIN: Mapping[type[kinds.Type], type] = {
    kinds.BytesType: bytes,
    kinds.ByteArrayType: bytes,
    kinds.DateTimeType: datetime,
    kinds.DateType: date,
    kinds.TimeType: time,
    kinds.TimeDeltaType: timedelta,
    kinds.UUIDType: UUID,
    kinds.DecimalType: Decimal,
}


@cache
def anything() -> SearchStrategy[Any]:
    """What JSON can hold."""
    from hypothesis import strategies as st

    leaves = st.none() | st.booleans() | st.integers(-9, 2**40) | st.floats(-9, 9) | st.text(max_size=4)
    return st.recursive(
        leaves, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3)
    )


def drawn(strategy: SearchStrategy[T], count: int) -> list[T]:
    """So many values, the same in every run."""
    import hypothesis

    found: list[T] = []

    @hypothesis.settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def draw(value: T) -> None:
        found.append(value)

    draw()
    return found


def values(type_: Any) -> SearchStrategy[Any]:
    """Drawn values of `type_` as builtins. Raises `TypeError` for a type that msgspec does not know."""
    return _Drawing().of(kinds.type_info(type_))


class _Drawing:
    """Strategies for the types inside each other; a type that holds itself is met again by name."""

    def __init__(self) -> None:
        self._known: dict[Any, SearchStrategy[Any]] = {}

    def of(self, kind: kinds.Type) -> SearchStrategy[Any]:
        from hypothesis import strategies as st

        match kind:
            case kinds.NoneType():
                return st.none()
            case kinds.BoolType():
                return st.booleans()
            case kinds.IntType():
                return st.integers(_bound(kind.ge, kind.gt), _bound(kind.le, kind.lt))
            case kinds.FloatType():
                low, high = _bound(kind.ge, kind.gt), _bound(kind.le, kind.lt)
                return st.floats(low, high, allow_nan=False, allow_infinity=False)
            case kinds.StrType(pattern=str(pattern)):
                return st.from_regex(pattern)
            case kinds.StrType():
                return st.text(
                    min_size=kind.min_length or 0, max_size=_most(kind.max_length, kind.min_length, 8)
                )
            case kinds.EnumType(cls=cls):
                return st.sampled_from([msgspec.to_builtins(member) for member in cls])
            case kinds.LiteralType(values=found):
                return st.sampled_from(found)
            case kinds.UnionType(types=types):
                return st.one_of([self.of(each) for each in types])
            case kinds.CollectionType(item_type=item):
                return st.lists(
                    self.of(item),
                    min_size=kind.min_length or 0,
                    max_size=_most(kind.max_length, kind.min_length, 3),
                )
            case kinds.TupleType(item_types=items):
                return st.tuples(*map(self.of, items)).map(list)
            case kinds.DictType(key_type=key, value_type=value):
                return st.dictionaries(self.of(key).map(str), self.of(value), max_size=3)
            case kinds.StructType() | kinds.TypedDictType() | kinds.DataclassType() | kinds.NamedTupleType():
                return self._object(kind)
            case kinds.AnyType() | kinds.RawType():
                return anything()
            case kinds.Metadata(type=inner):
                return self.of(inner)
        if type(kind) not in PLAIN:
            raise TypeError(f"nothing is known of {kind}")
        return st.from_type(PLAIN[type(kind)]).map(msgspec.to_builtins)

    def _object(self, kind: Any) -> SearchStrategy[Any]:
        from hypothesis import strategies as st

        if kind.cls not in self._known:
            made: SearchStrategy[Any]
            # Deferred, since one of its fields may be of this very type.
            self._known[kind.cls] = st.deferred(lambda: made)
            fields = {field.encode_name: self.of(field.type) for field in kind.fields}
            tag = getattr(kind, "tag", None)
            if isinstance(kind, kinds.NamedTupleType) or getattr(kind, "array_like", False):
                made = st.tuples(*([] if tag is None else [st.just(tag)]), *fields.values()).map(list)
            else:
                left_out = {field.encode_name for field in kind.fields if not field.required}
                needed = {name: found for name, found in fields.items() if name not in left_out}
                if tag is not None:
                    needed[kind.tag_field] = st.just(tag)
                made = st.fixed_dictionaries(needed, optional={name: fields[name] for name in left_out})
        return self._known[kind.cls]


def _bound(bound: Any, beyond: Any) -> Any:
    return beyond if bound is None else bound


def _most(most: int | None, least: int | None, enough: int) -> int:
    enough += least or 0
    return enough if most is None else min(most, enough)
