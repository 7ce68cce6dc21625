"""What noeta relies on in pluggy, on the oldest version it takes and on the newest."""

from __future__ import annotations

from typing import Any

import pluggy
import pytest

from noeta.core.extension import Extension
from noeta.core.view import TaskView
from noeta.host.registry import Registry
from noeta.toolkit.hooks import HOOKS


class Plugin(Extension):
    name = "plugin"

    async def before_tool(self, view, call):  # type: ignore[no-untyped-def]
        return None


def registered(**attributes: Any) -> Registry:
    """Register a class past noeta's own checks, so that pluggy's are seen."""
    registry = Registry()
    registry.register(type("Other", (Extension,), {"name": "other", **attributes})(), "other")
    return registry


def test_every_hook_of_extension_is_a_hookspec_with_its_arguments() -> None:
    registry = Registry()
    for name, hook in HOOKS.items():
        spec = getattr(registry.hook, name).spec
        assert tuple(spec.argnames) == hook.spec.__code__.co_varnames[1 : hook.spec.__code__.co_argcount]


def test_base_methods_are_no_implementations() -> None:
    registry = registered()
    assert registry.get_hookcallers(registry.get_plugin("other")) == []


def test_only_overridden_hooks_are_implementations() -> None:
    registry = Registry()
    plugin = Plugin()
    registry.register(plugin, "plugin")
    assert [caller.name for caller in registry.get_hookcallers(plugin) or []] == ["before_tool"]


def test_an_unknown_argument_is_refused_at_registration() -> None:
    async def before_tool(self: Extension, view: TaskView, cal: object) -> None: ...

    with pytest.raises(pluggy.PluginValidationError, match="cal"):
        registered(before_tool=before_tool)


def test_fewer_arguments_are_taken() -> None:
    async def before_tool(self: Extension, view: TaskView) -> None: ...

    [impl] = registered(before_tool=before_tool).hook.before_tool.get_hookimpls()
    assert tuple(impl.argnames) == ("view",)


def test_a_keyword_only_argument_is_not_seen_by_pluggy() -> None:
    async def before_tool(self: Extension, *, view: TaskView) -> None: ...

    [impl] = registered(before_tool=before_tool).hook.before_tool.get_hookimpls()
    assert tuple(impl.argnames) == ()


def test_an_unknown_argument_with_a_default_passes_pluggy() -> None:
    async def before_tool(self: Extension, view: TaskView, extra: int = 0) -> None: ...

    assert registered(before_tool=before_tool).hook.before_tool.get_hookimpls()


def test_a_misspelt_hook_passes_pluggy() -> None:
    registry = registered(befor_tool=lambda self, view, call: None)
    assert registry.get_hookcallers(registry.get_plugin("other")) == []
    registry.check_pending()


def test_a_blocked_name_is_known() -> None:
    registry = Registry()
    registry.set_blocked("other")
    assert registry.is_blocked("other")
    assert registry.register(Plugin(), "other") is None


def test_reading_a_class_runs_no_property() -> None:
    ran: list[str] = []
    registered(secret=property(lambda self: ran.append("ran")))
    assert ran == []


def test_a_coroutine_is_not_awaited_by_pluggy() -> None:
    registry = Registry()
    registry.register(Plugin(), "plugin")
    [coroutine] = registry.hook.before_tool(view=None, call=None) or [None]
    coroutine.close()
