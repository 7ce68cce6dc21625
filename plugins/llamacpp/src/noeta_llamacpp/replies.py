"""What all replies of llama.cpp have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noeta.toolkit.provider import Usage

STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def stop_reason(word: str) -> str:
    """Why a reply ended, in noeta's words."""
    return STOPS.get(word, word or "end_turn")


def usage_of(chunk: Mapping[str, Any]) -> Usage:
    """The tokens that a chunk counts: what came from the cache of the prompt is no new input."""
    usage = chunk.get("usage") or {}
    cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
    prompt, output = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
    return Usage(uncached=max(prompt - cached, 0), cache_read=cached, output=output)


def closed(schema: Any) -> Any:
    """A JSON Schema whose objects have no properties but those that it names, save where it says so itself.

    A model may put in whatever a schema leaves open, and a small one then never comes to an end.
    """
    if isinstance(schema, list):
        return [closed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(inner) for key, inner in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made
