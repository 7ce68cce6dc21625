"""The ports of a host: those it was given, and those it opens by name and closes when it is left."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from noeta.core.ports import Clock, Ids
from noeta.host.catalog import Catalog
from noeta.host.settings import Settings
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.in_memory import InMemoryStore
from noeta.toolkit.provider import Provider
from noeta.toolkit.store import Store
from noeta.toolkit.strays import fault

CLOSE_SECONDS = 10.0
"""How long one port may take to close. Who leaves a host does not wait for more."""

_log = logging.getLogger("noeta")


def chosen_ports(
    settings: Settings, store: str | Store | None, env: str | ExecEnv | None, spill_dir: str | None
) -> tuple[str | Store, str | ExecEnv | None, str | None]:
    """The store, the place to act and the folder for long results, of what settings and a program say.

    Without either, settings that were read from places have a store of their own, and others none.
    """
    places = settings.places
    if isinstance(store, str | None):
        store = settings.chosen("store", store, places.store if places else "memory:")
    if isinstance(env, str | None):
        env = settings.chosen("env", env, None)
    if spill_dir is None and places is not None:
        spill_dir = str(places.spill)
    assert store is not None
    return store, env, spill_dir


class Ports:
    """A store, a place to act, and the providers that come to be needed.

    `store` is a `Store` or the URL of one; ``memory:`` is a store in this process. `env` is a place, the name
    of one, or None for none. Raises what `Catalog` raises for these.
    """

    def __init__(
        self, catalog: Catalog, store: str | Store, env: str | ExecEnv | None, clock: Clock, ids: Ids
    ) -> None:
        self._catalog = catalog
        self._providers: dict[str, Provider] = {}
        # What to close, the last one opened first.
        self._opened: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self.store: Store = self._store(store, clock, ids)
        self.env: ExecEnv | None = self._env(env)

    def provider(self, name: str) -> Provider:
        """The provider `name`, opened when it is first asked for. Raises what `Catalog.provider` raises."""
        if name not in self._providers:
            self._providers[name] = provider = self._catalog.provider(name)
            self._opened.append((f"provider {name!r}", provider.aclose))
        return self._providers[name]

    async def aclose(self) -> None:
        """Close what was opened here, all of it, and then raise the first error if there was one."""
        errors: list[Exception] = []
        while self._opened:
            what, close = self._opened.pop()
            with anyio.move_on_after(CLOSE_SECONDS, shield=True) as scope:
                try:
                    await close()
                except BaseException as error:
                    why = fault(error)
                    _log.warning("%s could not be closed: %s", what, why)
                    errors.append(error if isinstance(error, Exception) else RuntimeError(f"{what}: {why}"))
            if scope.cancelled_caught:
                _log.warning("%s was not closed within %g s", what, CLOSE_SECONDS)
        if errors:
            raise errors[0]

    def _store(self, given: str | Store, clock: Clock, ids: Ids) -> Store:
        if not isinstance(given, str):
            return given
        # The one store that takes the host's own clock and ids, and needs no catalog.
        store = InMemoryStore(clock, ids) if given == "memory:" else self._catalog.store(given)
        # The rest of a URL may be a secret.
        self._opened.append((f"store {given.partition(':')[0]!r}", store.aclose))
        return store

    def _env(self, given: str | ExecEnv | None) -> ExecEnv | None:
        if not isinstance(given, str):
            return given
        env = self._catalog.env(given)
        if close := getattr(env, "aclose", None):
            self._opened.append((f"environment {given!r}", close))
        return env
