"""The settings of a host: read from their places, checked, laid over each other, and asked by name.

A key counts from the first place that has it: managed settings, the command line, keyword arguments in code,
the checkout, the project, the person. What a project brings counts only while the person trusts it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from noeta.core.errors import SettingsError
from noeta.host.layers import Layer, Level, Place, PlaceError, Value, dotted, switches_off, together
from noeta.host.places import Places
from noeta.host.secrets import resolved
from noeta.host.tables import OPEN, checked
from noeta.host.trust import Trust, read_whole, same_file

ABOVE_CODE = ("managed", "command line")
SAFE = "safe mode leaves it out"

_log = logging.getLogger("noeta")


class Skipped(Struct, frozen=True):
    """A file with settings that were not applied, and why."""

    path: str
    reason: str


class Settings:
    """Settings from places, the first of `layers` on top.

    `places` and `trust` are where plugin files are looked for and which of them count, None for nowhere.
    `skipped` are files that do not count. With `safe`, nothing of a project and no plugin of strangers is
    used. Values such as ``{env = "NAME"}`` are looked up in `environ` when they are handed over, not before.

    Raises `PlaceError` for names of models that lead nowhere.
    """

    def __init__(
        self,
        layers: Sequence[Layer] = (),
        *,
        environ: Mapping[str, str] | None = None,
        places: Places | None = None,
        trust: Trust | None = None,
        skipped: Sequence[Skipped] = (),
        safe: bool = False,
    ) -> None:
        self.places: Places | None = places
        self.trust: Trust | None = trust
        self.skipped: Sequence[Skipped] = skipped
        self.safe: bool = safe
        self.environ: Mapping[str, str] = environ or {}
        self._layers, self._held = layers, together(layers)
        self.models: Mapping[str, Sequence[str]] = {
            name: self._followed(name) for name in self.names("models")
        }
        """The models that each name of ``[models.NAME]`` stands for: one, then those to go on with."""

    def value(self, *key: str) -> Value | None:
        """The value of a key with its place, None when no place has it."""
        return self._held.get(key)

    def get(self, *key: str, default: Any = None) -> Any:
        """The value of a key alone."""
        found = self._held.get(key)
        return default if found is None else found.value

    def everywhere(self, *key: str) -> list[Value]:
        """The values that places have for a key, the one that counts first, for what adds them up."""
        return [layer[key] for layer in self._layers if key in layer]

    def values(self) -> list[Value]:
        """Every value that counts, by key. `noeta.host.secrets.shown` says what of it people may see."""
        return sorted((value for value in self._held.values() if value.key[-1]), key=lambda value: value.key)

    def names(self, table: str) -> list[str]:
        """The names of the tables in a table, such as those of all agents."""
        return sorted({key[1] for key in self._held if key[0] == table})

    def table(self, *at: str) -> dict[str, Any]:
        """The keys and values of a table, with references to the environment replaced.

        ``enabled`` of a plugin is the host's, and not among them. Raises `PlaceError` for a variable that is
        not set.
        """
        held = {key[-1]: value for key, value in self._held.items() if key[:-1] == at and key[-1]}
        if at[0] == "plugins":
            held.pop("enabled", None)
        may_refer = at[0] in OPEN
        return {key: resolved(v, self.environ) if may_refer else v.value for key, v in held.items()}

    def added_up(self, *key: str) -> list[Any]:
        """The lists that places have for a key as one, the one that counts first in front.

        Raises `PlaceError` for what is no list, and for a variable that is not set.
        """
        found: list[Any] = []
        for value in self.everywhere(*key):
            if not isinstance(value.value, list | tuple):
                raise PlaceError(str(value.place), dotted(key), "expected a list")
            found += resolved(value, self.environ)
        return found

    def above_code(self, *at: str) -> dict[str, Any]:
        """Of a table, what also goes before keyword arguments in code."""
        keys = {
            key[-1] for key, value in self._held.items() if value.place.level in ABOVE_CODE and key[:-1] == at
        }
        return {key: value for key, value in self.table(*at).items() if key in keys}

    def chosen(self, key: str, given: Any, default: Any) -> Any:
        """What counts for a key of the top when code gives `given` (None: nothing)."""
        found = self.value(key)
        if found is not None and (given is None or found.place.level in ABOVE_CODE):
            return found.value
        return default if given is None else given

    def off(self, plugin: str) -> str:
        """Where a plugin is switched off, for people; the empty text when it is not."""
        found = self.value("plugins", plugin, "enabled")
        return f"enabled = false in {found.where}" if found is not None and switches_off(found) else ""

    def blocked(self, names: Iterable[str], sha256: Callable[[], str]) -> str:
        """Why managed settings block what has one of these names, or this hash; the empty text if not."""
        plugins, hashes = self.value("blocked", "plugins"), self.value("blocked", "sha256")
        if plugins is not None and (hit := [name for name in names if name in plugins.value]):
            return f"{plugins.place} blocks {hit[0]!r}"
        if hashes is not None and (found := sha256()) in {each.lower() for each in hashes.value}:
            return f"{hashes.place} blocks what has the hash {found[:12]}"
        return ""

    @property
    def prefer(self) -> dict[str, str]:
        """Whose tool is used where several plugins offer the name."""
        return {key[1]: value.value for key, value in self._held.items() if key[0] == "prefer"}

    @contextmanager
    def told(self, *at: str) -> Iterator[None]:
        """Let a `SettingsError` about a table name the place that holds the setting."""
        try:
            yield
        except PlaceError:
            raise
        except SettingsError as error:
            # A setting may be a path into a struct, such as servers[0].name.
            first = error.setting.partition(".")[0].partition("[")[0]
            held = self.value(*at, first) or self.value(*at, "")
            if held is None:
                raise
            key = ".".join(filter(None, (dotted(at), error.setting)))
            raise PlaceError(str(held.place), key, error.why) from error

    def _followed(self, name: str) -> list[str]:
        """The models that a name leads to, over other names."""
        found: list[str] = []

        def follow(name: str, seen: tuple[str, ...]) -> None:
            if ("models", name, "") not in self._held:
                found.append(name)
                return
            if name in seen:
                raise self._unfit(name, f"it leads back to itself: {' -> '.join((*seen, name))}")
            if not (model := self.get("models", name, "model")):
                raise self._unfit(name, 'it names no model; write model = "PROVIDER:MODEL"')
            for each in (model, *self.get("models", name, "fallbacks", default=())):
                follow(each, (*seen, name))

        follow(name, ())
        return list(dict.fromkeys(found))

    def _unfit(self, model: str, why: str) -> PlaceError:
        return PlaceError(str(self._held["models", model, ""].place), dotted(("models", model)), why)


def load_settings(
    places: Places,
    environ: Mapping[str, str],
    *,
    flags: Sequence[str | Mapping[str, Any]] = (),
    code: Mapping[str, Any] | None = None,
    safe: bool = False,
) -> Settings:
    """Read all settings of a process that stands in these places.

    `flags` are overrides of the command line, as ``plugins.fs.root="/srv"`` or as tables; a later one wins.
    `code` are tables of a program. In `safe` mode the project's settings are left out.

    A file that does not count is among `skipped`, and a warning names it. Raises `PlaceError` for one that
    counts and cannot be used, and for a flag that cannot.
    """
    trust, skipped = Trust(places), list[Skipped]()

    def read(path: Path, level: Level, kind: str = "settings") -> Iterator[Layer]:
        looked = trust.look(path, kind, own=level == "user")
        if looked is None:
            return
        reason = SAFE if safe and level != "user" else looked.reason
        if level == "user" and not looked.sha256:
            raise PlaceError(str(path), "", reason)
        if reason:
            skipped.append(Skipped(str(path), reason))
            _log.warning("settings in %s are not applied: %s", path, reason)
        else:
            yield parsed(looked.data, Place(level, str(path)))

    layers = [*_managed(places.managed)]
    line = Place("command line")
    layers += [
        checked(_flag(each, line) if isinstance(each, str) else each, line) for each in reversed(flags)
    ]
    layers += [checked(code, Place("code"))] if code else []
    layers += read(places.local_file, "local")
    if not same_file(places.project_file, places.user_file):
        layers += read(places.project_file, "project")
    layers += read(places.user_file, "user")
    return Settings(layers, environ=environ, places=places, trust=trust, skipped=skipped, safe=safe)


def as_settings(given: Settings | Mapping[str, Any] | None, environ: Mapping[str, str]) -> Settings:
    """Settings as they are, or those that a program gives as tables. Raises `PlaceError`."""
    if isinstance(given, Settings):
        return given
    return Settings([checked(given, Place("code"))] if given is not None else [], environ=environ)


def parsed(data: bytes, place: Place) -> Layer:
    """What a file holds. Raises `PlaceError`."""
    import tomllib

    try:
        given = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlaceError(str(place), "", f"it is no TOML: {error}") from error
    return checked(given, place)


def _managed(path: Path) -> Iterator[Layer]:
    # Whoever may not read what rules here must not start as if nothing did.
    try:
        data, _ = read_whole(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise PlaceError(str(path), "", f"it cannot be read: {error.strerror or error}") from error
    yield parsed(data, Place("managed", str(path)))


def _flag(text: str, place: Place) -> Mapping[str, Any]:
    import tomllib

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise PlaceError(
            str(place), "", f"{text!r} sets nothing; write KEY=VALUE, such as model=openai:gpt-5"
        )
    quoted = msgspec.json.encode(value).decode()
    for form in (value, quoted):
        try:
            made = tomllib.loads(f"{key} = {form}")
        except tomllib.TOMLDecodeError:
            continue
        if "\n" not in form:
            return made
    raise PlaceError(str(place), "", f"{text!r} has no key that can be read; write KEY=VALUE")
