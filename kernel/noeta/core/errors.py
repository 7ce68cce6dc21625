"""The errors that the kernel raises or tells apart. `noeta.toolkit.errors` has the others.

Each class takes facts, keeps them as attributes and makes its own sentence.
"""

from __future__ import annotations

from typing import ClassVar


class NoetaError(Exception):
    """The root of all errors of noeta."""


def told(error: BaseException) -> str:
    """The type of an error and what it says. Total, also for one that cannot say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


class NotStorable(NoetaError, ValueError):
    """A value cannot be kept in a log. `where` is the place inside it, such as ``$.items[3]``.

    `noeta.toolkit.sanitize.storable` mends most values.
    """

    def __init__(self, where: str, why: str) -> None:
        self.where: str = where
        self.why: str = why
        super().__init__(f"{where} cannot be stored: {why}.")


class StoreError(NoetaError):
    """What a store may raise.

    `reason` is one short word that a program can test, `detail` the sentence behind it.
    """

    says: ClassVar[str] = "The store failed"

    def __init__(self, detail: str, *, reason: str = "") -> None:
        self.detail: str = detail
        self.reason: str = reason
        super().__init__(f"{self.says}: {detail}")


class Fenced(StoreError):
    """The claim was superseded or given up: another worker may own the task. Drop it; nothing was written."""

    says: ClassVar[str] = "The claim is no longer valid"


class Conflict(StoreError):
    """Something moved since the caller looked (the log or the inbox).

    Look again and retry; nothing was written.
    """

    says: ClassVar[str] = "The task moved meanwhile"


class Unavailable(StoreError):
    """The store could not be reached or did not answer.

    Whether the call took effect is unknown. Repeating it with the same `append_id`, dedupe key, task id or
    spawn key is safe.
    """

    says: ClassVar[str] = "The store is unavailable"


class SettingsError(NoetaError, TypeError):
    """A plugin was given a setting it does not take. `setting` is its name, empty for all of them."""

    def __init__(self, plugin: str, setting: str, why: str) -> None:
        self.plugin: str = plugin
        self.setting: str = setting
        self.why: str = why
        place = f"setting {setting!r}" if setting else "its settings"
        super().__init__(f"Plugin {plugin!r}, {place}: {why}.")


class ProviderError(NoetaError):
    """A model call failed.

    `category` is one of ``rate_limit``, ``overloaded``, ``network``, ``timeout``, ``server``, ``auth``,
    ``invalid``, ``overflow`` and ``content``. `retry_after` is in seconds, `status` that of HTTP. With
    `retry_at` (epoch seconds) the task is to wait until then and try again.
    """

    def __init__(
        self,
        category: str,
        detail: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        retry_at: float | None = None,
    ) -> None:
        self.category: str = category
        self.detail: str = detail
        self.retry_after: float | None = retry_after
        self.status: int | None = status
        self.retry_at: float | None = retry_at
        super().__init__(f"The model call failed ({category}): {detail}")


class PluginFailure(NoetaError):
    """A hook failed, and what it is about must not go on (`policy` ``closed``) or must wait (``park``)."""

    def __init__(self, plugin: str, hook: str, error: str, policy: str) -> None:
        self.plugin: str = plugin
        self.hook: str = hook
        self.error: str = error
        self.policy: str = policy
        super().__init__(f"Plugin {plugin!r} failed in {hook}: {error}")


class Signal(Exception):
    """What a hook raises to steer the turn; what it staged is kept. `plugin` is who raised it."""

    plugin: str = ""


class TurnDone(Signal):
    """The turn is complete without a model call. From `before_model` and `reminders`."""


class RequestStale(Signal):
    """The conversation changed; the request is built again. From `before_model`.

    It counts only when the plugin staged something.
    """


class TurnFailed(Signal):
    """The turn fails. From `before_model`, `reminders` and `on_context_overflow`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason: str = reason
        self.detail: str = detail
        super().__init__(f"{reason}: {detail}" if detail else reason)
