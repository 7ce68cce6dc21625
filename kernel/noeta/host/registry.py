"""Putting an agent together: every mistake of a plugin that can be seen before it runs is found here.

One `Registry` a host. pluggy checks each class once against `Extension`, knows which hooks it overrides, in
which tier, and which names are blocked. What pluggy lets pass, such as a misspelt hook, is refused besides.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from types import FunctionType
from typing import Any, NamedTuple

import msgspec
import pluggy

from noeta.core.errors import NotStorable, told
from noeta.core.extension import Extension
from noeta.core.records import CORE
from noeta.core.text import checked_key, meant
from noeta.toolkit.dispatch import Hooks, Impl
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.hooks import HOOKS, Hook

DECLARED = {"add_to", "folds", "before", "after", "Settings", "on_error", "record_types"}
"""What a class declares, and an instance may declare for itself."""


class Registry(pluggy.PluginManager):
    """Knows the class of every plugin. `set_blocked(name)` keeps a plugin out of every agent."""

    def __init__(self) -> None:
        super().__init__("noeta")
        self._known: dict[type[Extension], list[_Override]] = {}
        self.add_hookspecs(Extension)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> pluggy.HookspecOpts | None:
        """The methods of `Extension` that are hooks."""
        options = pluggy.HookspecOpts(
            firstresult=False, historic=False, warn_on_impl=None, warn_on_impl_args=None
        )
        return options if name in HOOKS else None

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """The hooks that the plugin's class overrides. Only the class is looked at, so nothing runs."""
        if not _overrides(type(plugin), name):
            return None
        plain = pluggy.HookimplOpts(
            wrapper=False, hookwrapper=False, optionalhook=False, tryfirst=False, trylast=False, specname=None
        )
        return getattr(getattr(type(plugin), name), "noeta_impl", plain)

    def compose(self, extensions: Sequence[Extension]) -> Hooks:
        """The hooks of an agent with these plugins, in its order. Blocked ones are left out.

        Raises `ComposeError`.
        """
        for extension in extensions:
            check_instance(extension)
        ordered = in_order([extension for extension in extensions if not self.is_blocked(extension.name)])
        found: dict[str, list[tuple[int, Impl]]] = {hook: [] for hook in HOOKS}
        for extension in ordered:
            for override in self._overrides(extension):
                found[override.hook.name].append((override.tier, override.of(extension)))
        impls = {hook: sorted(pairs, key=lambda pair: pair[0]) for hook, pairs in found.items()}
        return Hooks(ordered, {hook: tuple(impl for _, impl in pairs) for hook, pairs in impls.items()})

    def _overrides(self, extension: Extension) -> list[_Override]:
        """What the extension's class overrides, checked the first time the class is seen."""
        cls = type(extension)
        if cls not in self._known:
            check_class(cls, extension.name)
            try:
                self.register(extension, f"{cls.__module__}.{cls.__qualname__}#{len(self._known)}")
            except pluggy.PluginValidationError as error:
                why = str(error).strip().rpartition("\n")[2]
                raise ComposeError(extension.name, cls.__qualname__, why, "See Extension") from None
            self._known[cls] = [
                _override(cls, HOOKS[caller.name], impl.trylast - impl.tryfirst)
                for caller in self.get_hookcallers(extension) or []
                for impl in caller.get_hookimpls()
                if impl.plugin is extension
            ]
        return self._known[cls]


def in_order(extensions: Sequence[Extension]) -> list[Extension]:
    """The plugins in their order, but for what `before` and `after` ask. Absent names are ignored.

    Raises `ComposeError` for two plugins of one name and for a contradiction.
    """
    by_name: dict[str, Extension] = {}
    for extension in extensions:
        other = by_name.setdefault(extension.name, extension)
        if other is not extension or list(extensions).count(extension) > 1:
            why = f"{_place(type(other))} and {_place(type(extension))} have the same name"
            raise ComposeError(extension.name, "the agent's list", why, "Rename or drop one of them")
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(by_name, ()))
    for name, extension in by_name.items():
        for first, second in [
            *((name, other) for other in extension.before),
            *((other, name) for other in extension.after),
        ]:
            if {first, second} <= by_name.keys():
                sorter.add(second, first)
    try:
        sorter.prepare()
    except CycleError as error:
        names = error.args[1]
        why = "each has to stand before the next: " + " > ".join(map(repr, names))
        raise ComposeError(names[0], "before and after", why, "Drop one of these relations") from None
    # Of those that may come next, always the one that is first in the agent's list.
    place = {name: i for i, name in enumerate(by_name)}
    ready, ordered = list(sorter.get_ready()), []
    while ready:
        ready.sort(key=place.__getitem__)
        ordered.append(ready.pop(0))
        sorter.done(ordered[-1])
        ready += sorter.get_ready()
    return [by_name[name] for name in ordered]


def check_instance(extension: object) -> None:
    """Raise `ComposeError` unless this is an extension with a good name, compared by identity, and all that
    it declares for itself is of its form.
    """
    cls = type(extension)
    if not isinstance(extension, Extension):
        shown = extension.__name__ if isinstance(extension, type) else str(extension)
        why = "it is not an instance of a subclass of Extension"
        way_out = f"Write {shown}()" if isinstance(extension, type) else "Put the plugin itself there"
        raise ComposeError(shown, "the agent's list", why, way_out)
    try:
        name = getattr(extension, "name", None)
    except Exception as error:
        raise ComposeError(cls.__name__, "name", told(error), 'Add name = "..." to the class') from None
    if not isinstance(name, str) or not name:
        raise ComposeError(cls.__name__, _place(cls), "it has no name", 'Add name = "..." to the class')
    try:
        checked_key(name, "it")
    except NotStorable as error:
        raise ComposeError(name, _place(cls), str(error).rstrip("."), "Choose another name") from None
    if "." in name or name == CORE:
        why = "the name 'core' is the kernel's" if name == CORE else "its name has a dot"
        raise ComposeError(name, _place(cls), why, "Choose another name")
    if not isinstance(extension.version, str):
        raise ComposeError(name, "version", f"{extension.version!r} is no text", 'Write version = "1.0"')
    if cls.__eq__ is not object.__eq__:
        why = "it compares by value, so two plugins may be taken for one"
        raise ComposeError(name, _place(cls), why, "For a dataclass write @dataclass(eq=False)")
    if own := sorted(HOOKS.keys() & getattr(extension, "__dict__", {}).keys()):
        why = "a hook on an instance is never called"
        raise ComposeError(name, own[0], why, "Define it as a method of the class")
    if DECLARED & getattr(extension, "__dict__", {}).keys():
        check_declarations(extension, name)


def check_class(cls: type[Extension], name: str) -> None:
    """Raise `ComposeError` for the first hook or declaration of the class that can not work."""
    for hook in HOOKS.values():
        if not _overrides(cls, hook.name):
            continue
        if why := _unfit(inspect.getattr_static(cls, hook.name), hook):
            form = f"{'async ' * _is_async(hook)}def {hook.name}(self, {', '.join(_arguments(hook))})"
            raise ComposeError(name, f"hook {hook.name}", why, f"Write {form}")
    for found in dir(cls):
        if (
            found.startswith("_")
            or hasattr(Extension, found)
            or not callable(inspect.getattr_static(cls, found))
        ):
            continue
        if (hint := meant(found, HOOKS, 0.85)) and not any(_overrides(cls, h) for h in HOOKS if h in hint):
            why = f"there is no such hook{hint}"
            raise ComposeError(name, f"method {found}", why, "Rename it, with a leading _ if it is no hook")
    check_declarations(cls, name)


def check_declarations(of: type[Extension] | Extension, name: str) -> None:
    """Raise `ComposeError` for the first attribute of a class or an instance that is not of its form."""
    for attribute in ("add_to", "folds", "before", "after"):
        value = getattr(of, attribute)
        if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
            raise ComposeError(name, attribute, f"{value!r} is no tuple of names", 'Write ("one", "two")')
    if of.Settings is not None and not hasattr(of.Settings, "__struct_fields__"):
        raise ComposeError(name, "Settings", f"{of.Settings!r} is no struct", "Derive it from msgspec.Struct")
    for attribute in ("on_error", "record_types"):
        if not isinstance(value := getattr(of, attribute), Mapping | None):
            raise ComposeError(name, attribute, f"{value!r} is no dict", "Write a dict from names")
    for kind, type_ in (of.record_types or {}).items():
        if why := _undecodable(kind, type_):
            raise ComposeError(name, f"record_types, {kind!r}", why, "Declare another kind or type")
    for found, policy in of.on_error.items():
        if found not in HOOKS:
            why = f"there is no hook {found!r}{meant(found, HOOKS)}"
            raise ComposeError(name, "on_error", why, "Name a hook")
        if policy not in (choices := HOOKS[found].choices):
            why = f"{found} cannot be {policy!r}"
            way_out = f"Choose {' or '.join(choices)}" if choices else "Leave it out"
            raise ComposeError(name, "on_error", why, way_out)


def _undecodable(kind: str, type_: Any) -> str:
    """Why records of this kind cannot be declared to be of this type, else the empty text."""
    if "." in kind:
        return "the name of a kind has no dots"
    try:
        checked_key(kind, "its name")
        msgspec.json.Decoder(type_)
    except Exception as error:
        return told(error)
    return ""


def _overrides(cls: type[Any], name: str) -> bool:
    return name in HOOKS and getattr(cls, name) is not getattr(Extension, name)


def _unfit(function: object, hook: Hook) -> str:
    """Why `function` cannot implement the hook, else the empty text."""
    if not isinstance(function, FunctionType):
        return f"it is a {type(function).__name__}, not a plain method"
    options = getattr(function, "noeta_impl", {})
    if options.get("wrapper") or options.get("hookwrapper") or options.get("specname"):
        return "hooks cannot wrap others or have another name"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "it yields; a hook returns"
    if inspect.iscoroutinefunction(function) and not _is_async(hook):
        return "it is async, and the kernel does not wait for this hook"
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return "it does not take self"
    for parameter in parameters[1:]:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            return f"{parameter} is not an ordinary argument"
        if parameter.name not in _arguments(hook):
            return f"it has no argument {parameter.name!r}{meant(parameter.name, _arguments(hook))}"
    return ""


class _Override(NamedTuple):
    """A hook that a class overrides. `places` are those of the hook's arguments that its method takes."""

    hook: Hook
    tier: int
    places: tuple[int, ...] | None
    viewed: bool

    def of(self, extension: Extension) -> Impl:
        """The implementation of one instance, with a call that takes every argument of the hook."""
        method: Callable[..., Any] = getattr(extension, self.hook.name)
        call, places = method, self.places
        if places is not None:

            def call(*given: Any) -> Any:
                return method(*[given[place] for place in places])

        on_error = extension.on_error.get(self.hook.name, self.hook.on_error)
        return Impl(extension.name, self.hook, call, on_error, self.viewed)


def _override(cls: type[Extension], hook: Hook, tier: int) -> _Override:
    arguments, taken = _arguments(hook), list(inspect.signature(getattr(cls, hook.name)).parameters)[1:]
    places = None if taken == arguments else tuple(arguments.index(name) for name in taken)
    return _Override(hook, tier, places, arguments[:1] == ["view"])


@cache
def _arguments(hook: Hook) -> list[str]:
    return list(inspect.signature(hook.spec).parameters)[1:]


def _is_async(hook: Hook) -> bool:
    return inspect.iscoroutinefunction(hook.spec)


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
