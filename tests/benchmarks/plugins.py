"""Five plugins as a plain agent might have them, and fillers to measure dispatch with."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from noeta.core.fold import Reducer
from noeta.core.records import ModelReplied, ToolFinished


class Seen(Struct, frozen=True, kw_only=True):
    """What the plugin ``files`` records: it met this content at this path."""

    path: str
    sha256: str
    size: int = 0


class Files(Struct, frozen=True, kw_only=True):
    """The state of ``files``: the content last met at each path."""

    known: dict[str, str] = {}
    bytes: int = 0


class Spend(Struct, frozen=True, kw_only=True):
    """The state of ``spend``, which lives on the kernel's records alone."""

    input: int = 0
    output: int = 0
    replies: int = 0
    errors: int = 0


def _audit(state: dict[str, int], kind: str, data: Any) -> dict[str, int]:
    return state | {kind: state.get(kind, 0) + 1}


def _todo(state: list[dict[str, str]], kind: str, data: Any) -> list[dict[str, str]]:
    if kind == "added":
        return [*state, {"id": data["id"], "text": data["text"]}]
    if kind == "finished":
        return [item for item in state if item["id"] != data["id"]]
    return state


def _files(state: Files, kind: str, data: Any) -> Files:
    if isinstance(data, Seen):
        return Files(known=state.known | {data.path: data.sha256}, bytes=state.bytes + data.size)
    return state


def _spend(state: Spend, kind: str, data: Any) -> Spend:
    if isinstance(data, ModelReplied):
        return Spend(
            input=state.input + data.usage.input,
            output=state.output + data.usage.output,
            replies=state.replies + 1,
            errors=state.errors,
        )
    if isinstance(data, ToolFinished) and data.is_error:
        return Spend(input=state.input, output=state.output, replies=state.replies, errors=state.errors + 1)
    return state


def same(state: Any, kind: str, data: Any) -> Any:
    """A reduce that does nothing, so that what is measured is the way to it."""
    return state


PLUGINS = (
    Reducer(name="audit", initial=dict, reduce=_audit, fingerprint="1"),
    Reducer(name="todo", initial=list, reduce=_todo, fingerprint="1"),
    Reducer(name="files", initial=Files, reduce=_files, types={"seen": Seen}, state=Files, fingerprint="1"),
    Reducer(name="spend", initial=Spend, reduce=_spend, folds=("core",), state=Spend, fingerprint="1"),
    Reducer(name="idle", initial=dict, reduce=same, fingerprint="1"),
)
TYPES = {("files", "seen"): Seen}
"""What the records of the plugins above decode as, where it is not builtins."""


def fillers(count: int, *folds: str) -> tuple[Reducer, ...]:
    """Plugins that do nothing with the records of the extensions in `folds`, and have none of their own."""
    return tuple(Reducer(name=f"filler{i}", reduce=same, folds=folds) for i in range(count))
