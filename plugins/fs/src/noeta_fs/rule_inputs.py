"""What a call is judged as by permission rules, besides the way the model wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from noeta import TaskView
from noeta_fs.paths import absolute

Others: TypeAlias = Sequence[tuple[dict[str, Any], bool]]
"""Other inputs, each with whether it counts for allowing as well."""


async def other_inputs(input: dict[str, Any], key: str, view: TaskView, cwd: str) -> Others:
    """`input` with the absolute path in the place of the one at `key`, and with the path behind all links.

    That one only counts against a call, so that a link is no way around a rule.
    """
    text = input.get(key, "")
    if view.env is None or not isinstance(text, str):
        return []
    try:
        path = absolute(view.env, cwd, text)
    except ValueError:
        # The call fails for the same reason.
        return []
    others = [({**input, key: path}, True)] if path != input.get(key) else []
    try:
        real = await view.env.real(path)
    except OSError:
        # Nothing can be read or searched there either.
        return others
    return [*others, ({**input, key: real}, False)] if real != path else others
