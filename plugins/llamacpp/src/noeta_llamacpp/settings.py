"""The settings of the provider, the table ``[providers.llamacpp]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct


class Settings(Struct, frozen=True, kw_only=True):
    """How models are run.

    - `models` gives names to files: ``qwen = "/models/qwen.gguf"`` makes the model ``llamacpp:qwen``. A path
      that ends in ``.gguf`` is a model without a name here.
    - `templates` are files with the chat templates (Jinja) of models by name, in the place of their own.
    - `context` is the window in tokens, which costs memory; a model that was trained with less has less.
    - `threads` is how many threads work on a reply.
    - `profile` says how tools are put to a model. ``native`` uses the tool format of its chat template,
      ``small`` worked examples and a grammar; ``auto`` is ``small`` for models with fewer than a billion
      weights.
    """

    models: Mapping[str, str] = {}
    templates: Mapping[str, str] = {}
    context: Annotated[int, Meta(ge=1)] = 4096
    threads: Annotated[int, Meta(ge=1)] = 1
    profile: Literal["auto", "native", "small"] = "auto"
