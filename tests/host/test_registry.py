"""Putting an agent together: order, tiers, blocking, and each class checked once."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noeta.core.errors import SettingsError
from noeta.core.extension import Extension
from noeta.core.view import TaskView
from noeta.host import registry
from noeta.host.registry import Registry, in_order
from noeta.toolkit.dispatch import Hooks
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.hooks import HOOKS, hookimpl
from noeta.toolkit.tool_set import ToolSet


def plugin(name: str, before: tuple[str, ...] = (), after: tuple[str, ...] = ()) -> Extension:
    cls = type("Plugin", (Extension,), {"name": name, "before": before, "after": after})
    return cls()  # type: ignore[no-any-return]


def names(extensions: list[Extension] | tuple[Extension, ...]) -> str:
    return " ".join(extension.name for extension in extensions)


def order(hooks: Hooks, hook: str) -> str:
    return " ".join(impl.plugin for impl in hooks.impls[hook])


class Starts(Extension):
    def __init__(self, name: str) -> None:
        self.name = name

    async def on_start(self, view: TaskView) -> None: ...


class First(Starts):
    @hookimpl(tryfirst=True)
    async def on_start(self, view: TaskView) -> None: ...


class Last(Starts):
    @hookimpl(trylast=True)
    async def on_start(self, view: TaskView) -> None: ...


def test_hooks_are_asked_in_the_agents_order() -> None:
    assert order(Registry().compose([Starts("c"), Starts("a"), Starts("b")]), "on_start") == "c a b"


def test_tiers_come_before_the_agents_order_and_inside_a_tier_that_order_counts() -> None:
    composed = Registry().compose(
        [Starts("a"), First("b"), Last("c"), Starts("d"), First("e"), Last("f")],
    )
    assert order(composed, "on_start") == "b e a d c f"
    assert names(composed.extensions) == "a b c d e f"


def test_only_hooks_that_a_class_overrides_are_asked() -> None:
    composed = Registry().compose([Starts("a"), ToolSet([])])
    assert {hook: len(found) for hook, found in composed.impls.items() if found} == {
        "on_start": 1,
        "tools": 1,
    }


def test_a_hook_inherited_from_another_plugins_class_is_asked() -> None:
    assert order(Registry().compose([type("Sub", (Starts,), {})("sub")]), "on_start") == "sub"


def test_before_and_after_reorder_the_list_itself() -> None:
    extensions = [plugin("a", after=("c",)), plugin("b"), plugin("c"), plugin("d", before=("b",))]
    assert names(in_order(extensions)) == "c a d b"


def test_relations_to_absent_plugins_are_ignored() -> None:
    assert names(in_order([plugin("a", after=("x",)), plugin("b", before=("y",))])) == "a b"


def test_a_contradiction_names_the_plugins_in_a_row() -> None:
    extensions = [plugin("a", before=("b",)), plugin("b", before=("c",)), plugin("c", before=("a",))]
    with pytest.raises(ComposeError, match=r"each has to stand before the next: .* Drop one"):
        in_order(extensions)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_an_order_keeps_every_relation_or_there_is_none(pairs: list[tuple[int, int]]) -> None:
    wanted: dict[int, set[str]] = {}
    for first, second in pairs:
        wanted.setdefault(first, set()).add(str(second))
    extensions = [plugin(str(i), before=tuple(wanted.get(i, ()))) for i in range(6)]
    try:
        found = [extension.name for extension in in_order(extensions)]
    except ComposeError:
        assert has_cycle(wanted)
        return
    assert sorted(found) == sorted(str(i) for i in range(6))
    assert all(found.index(str(first)) < found.index(str(second)) for first, second in pairs)


def has_cycle(wanted: dict[int, set[str]]) -> bool:
    reach = {i: {int(name) for name in wanted.get(i, ())} for i in range(6)}
    for _ in range(6):
        reach = {i: far | {k for j in far for k in reach[j]} for i, far in reach.items()}
    return any(i in reach[i] for i in reach)


def test_a_blocked_plugin_is_left_out_of_every_agent() -> None:
    known = Registry()
    known.set_blocked("b")
    assert names(known.compose([Starts("a"), Starts("b")]).extensions) == "a"


def test_each_class_is_checked_once_for_all_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    check_class = registry.check_class

    def counted(cls: type[Extension], name: str) -> None:
        checked.append(cls.__name__)
        check_class(cls, name)

    monkeypatch.setattr(registry, "check_class", counted)
    known = Registry()
    known.compose([Starts("a"), Starts("b"), First("c")])
    known.compose([Starts("d"), First("e")])
    assert checked == ["Starts", "First"]


def test_one_instance_may_serve_several_agents() -> None:
    known, shared = Registry(), Starts("a")
    first, second = known.compose([shared]), known.compose([Starts("b"), shared])
    assert (order(first, "on_start"), order(second, "on_start")) == ("a", "b a")


def test_classes_of_one_name_are_told_apart() -> None:
    def make() -> Extension:
        class Local(Starts): ...

        return Local("x")

    known = Registry()
    assert [order(known.compose([make()]), "on_start") for _ in range(3)] == ["x", "x", "x"]


def test_a_refused_plugin_leaves_the_registry_as_it_was() -> None:
    known = Registry()
    bad = type("Bad", (Extension,), {"name": "bad", "on_start": staticmethod(lambda view: None)})()
    for _ in range(2):
        with pytest.raises(ComposeError, match="not a plain method"):
            known.compose([Starts("a"), bad])
    assert order(known.compose([Starts("a")]), "on_start") == "a"


def test_every_hook_can_be_overridden_with_the_arguments_it_has() -> None:
    space = {name: getattr(Extension, name) for name in HOOKS}
    own = {name: FunctionType(f.__code__, f.__globals__, name) for name, f in space.items()}
    composed = Registry().compose([type("All", (Extension,), {"name": "all", **own})()])
    assert [hook for hook, found in composed.impls.items() if not found] == []


class Untagged(msgspec.Struct):
    x: int


class OtherUntagged(msgspec.Struct):
    y: int


def unnamed(self: Extension) -> str:
    raise ZeroDivisionError("no name today")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "on_error": ({"on_error": ["x"]}, "Plugin 'bad', on_error: ['x'] is no dict. Write a dict from names."),
    "settings": (
        {"Settings": dict},
        "Plugin 'bad', Settings: <class 'dict'> is no struct. Derive it from msgspec.Struct.",
    ),
    "record_types": (
        {"record_types": ["a"]},
        "Plugin 'bad', record_types: ['a'] is no dict. Write a dict from names.",
    ),
    "name": (
        {"name": property(unnamed)},
        "Plugin 'Bad', name: ZeroDivisionError: no name today. Add name = \"...\" to the class.",
    ),
}


@pytest.mark.parametrize(("attributes", "says"), BAD.values(), ids=BAD)
def test_a_bad_declaration_is_refused_in_one_sentence(attributes: dict[str, Any], says: str) -> None:
    with pytest.raises(ComposeError) as caught:
        Registry().compose([type("Bad", (Extension,), {"name": "bad", **attributes})()])
    assert str(caught.value) == says


def test_record_types_that_cannot_be_decoded_are_refused_when_an_agent_is_put_together() -> None:
    attributes = {"name": "bad", "record_types": {"noted": Untagged | OtherUntagged}}
    with pytest.raises(ComposeError, match=r"record_types, 'noted': TypeError: .* Declare another kind"):
        Registry().compose([type("Bad", (Extension,), attributes)()])


def test_an_attribute_that_cannot_be_read_is_no_hook_and_is_left_alone() -> None:
    class Raising:
        def __get__(self, instance: object, owner: type) -> None:
            raise RuntimeError("boom")

    Registry().compose([type("Odd", (Extension,), {"name": "odd", "helper": Raising()})()])


class Needs(msgspec.Struct):
    key: str
    n: int = 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "Plugin 'needs', setting 'key': it is missing. It takes key, n."),
        ({"key": 1}, "Plugin 'needs', setting 'key': Expected `str`, got `int`."),
        (
            {"kee": "x"},
            "Plugin 'needs', setting 'kee': there is no such setting (did you mean 'key'?). It takes key, n.",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        type("Plugin", (Extension,), {"name": "needs", "Settings": Needs})(**given)
    assert str(caught.value) == says


def test_settings_are_what_the_plugin_declares() -> None:
    plugin_ = type("Plugin", (Extension,), {"name": "needs", "Settings": Needs})(key="x")
    assert plugin_.settings == Needs("x")


@pytest.mark.parametrize(
    "declared",
    [
        {"on_error": {"before_tool": "open"}},
        {"before": "audit"},
        {"folds": ["audit"]},
        {"record_types": {"a.b": int}},
    ],
)
def test_what_an_instance_declares_for_itself_is_checked_too(declared: dict[str, Any]) -> None:
    own = type("Own", (Extension,), {"name": "own"})()
    vars(own).update(declared)
    with pytest.raises(ComposeError, match=f"'own', {next(iter(declared))}"):
        Registry().compose([own])
    vars(own).update({"on_error": {"before_tool": "park"}, "before": (), "folds": ("a",), "record_types": {}})
    Registry().compose([own])


def test_settings_that_do_not_fit_together_are_refused_with_what_their_struct_says() -> None:
    class Range(msgspec.Struct):
        low: int = 0
        high: int = 1

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low is above high.")

    cls = type("Limits", (Extension,), {"name": "limits", "Settings": Range})
    with pytest.raises(SettingsError, match=r"^Plugin 'limits', its settings: low is above high\.$"):
        cls(low=2)


def test_a_version_that_is_no_text_is_refused() -> None:
    class Odd(Extension):
        name = "odd"
        version = (1, 0)  # type: ignore[assignment]

    with pytest.raises(ComposeError, match="'odd', version: \\(1, 0\\) is no text"):
        Registry().compose([Odd()])
