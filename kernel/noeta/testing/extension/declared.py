"""What a plugin declares: that it can be put into an agent, and that its names and types hold together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noeta.core.errors import SettingsError, told
from noeta.core.extension import Extension
from noeta.host.plugin_files import MODULE
from noeta.host.registry import Registry
from noeta.testing.extension.subject import Subject
from noeta.toolkit.errors import ComposeError

GROUP = "noeta.extensions"
PREFIX = "noeta_"


def it_goes_into_an_agent(subject: Subject) -> None:
    """The registry takes it: it has a good name, and its hooks are plain methods, spelt right."""
    try:
        Registry().compose([subject.extension])
    except ComposeError as error:
        raise AssertionError(str(error)) from None


def each_instance_is_fresh(subject: Subject) -> None:
    """`make` gives a new instance each time, so that checks do not see each other's traces."""
    if subject.another() is subject.extension:
        subject.fail("make", "it gives the same instance twice", "Let it make a new one")


def its_names_agree(subject: Subject) -> None:
    """A plugin in a package of its own has one name: its entry point's, package's and distribution's too."""
    from importlib_metadata import entry_points, packages_distributions

    cls, name = type(subject.extension), subject.name
    package = cls.__module__.partition(".")[0]
    for point in entry_points(group=GROUP):
        # Only what the plugin's own package offers is imported.
        if point.module.partition(".")[0] == package and point.load() is cls and point.name != name:
            subject.fail("entry point", f"it is named {point.name!r}", "Give both the same name")
    if not package.startswith(PREFIX) or package.startswith(MODULE):
        return
    if package != f"{PREFIX}{name.replace('-', '_')}":
        subject.fail("package", f"it is named {package!r}", f"Name it {PREFIX}{name.replace('-', '_')}")
    wanted = f"noeta-{name.replace('_', '-')}"
    for distribution in packages_distributions().get(package, ()):
        if distribution.lower().replace("_", "-") != wanted:
            subject.fail("distribution", f"it is named {distribution!r}", f"Name it {wanted}")


def its_declarations_are_sound(subject: Subject) -> None:
    """`required` is a bool, and `State`, `record_types` and `Settings` are types that msgspec can read."""
    extension = subject.extension
    if not isinstance(extension.required, bool):
        subject.fail("required", f"it is {extension.required!r}", "Write True or False")
    if extension.State is not None and not _readable(extension.State):
        subject.fail("State", "msgspec cannot read this type", "Use a struct, or a type of builtins")
    types: Any = extension.record_types
    if not isinstance(types, Mapping | None):
        why = f"it is a {type(types).__name__}, which maps no kind to a type"
        subject.fail("record_types", why, 'Write {"kind": Type}')
    for kind, type_ in (types or {}).items():
        if not isinstance(kind, str) or not kind or "." in kind:
            subject.fail("record_types", f"{kind!r} is no kind", "Use a name without a dot")
        if not _readable(type_):
            why = f"msgspec cannot read the type of {kind!r}"
            subject.fail("record_types", why, "Use a struct, or a type of builtins")
    settings: Any = extension.Settings
    if settings is None:
        return
    if not (isinstance(settings, type) and issubclass(settings, msgspec.Struct) and _readable(settings)):
        subject.fail("Settings", "it is no msgspec struct", "Write class Settings(msgspec.Struct)")
    for field in msgspec.structs.fields(settings):
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        try:
            if default is not msgspec.NODEFAULT:
                msgspec.convert(msgspec.to_builtins(default), field.type)
        except (msgspec.ValidationError, TypeError) as error:
            subject.fail(f"Settings.{field.name}", f"its default does not fit: {error}", "Change the default")


def a_misspelt_setting_is_refused(subject: Subject) -> None:
    """A setting that the plugin does not have is a `SettingsError` that says which one was meant."""
    cls: Any = type(subject.extension)
    fields = getattr(cls.Settings, "__struct_fields__", ())
    if not fields and cls.__init__ is not Extension.__init__:
        return
    meant = fields[0] if fields else ""
    given = f"{meant}_" if meant else "nothing_of_the_kind"
    way_out = "Hand keywords on to Extension.__init__"
    try:
        cls(**{given: None})
    except SettingsError as error:
        if meant and repr(meant) not in error.why:
            subject.fail(f"setting {given!r}", f"the error does not name {meant!r}", way_out)
    except Exception as error:
        subject.fail(f"setting {given!r}", f"it is refused with {told(error)}", way_out)
    else:
        subject.fail(f"setting {given!r}", "it is taken, though there is no such setting", way_out)


def _readable(type_: Any) -> bool:
    try:
        msgspec.json.Decoder(type_)
    except (TypeError, ValueError):
        return False
    return True
