"""The provider: which model a request is for, and by which of the two ways it is called."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from noeta.toolkit.provider import Delta, ModelInfo, ModelRequest, ModelResponse, ProviderError
from noeta.toolkit.settings import settings_of
from noeta_llamacpp import small
from noeta_llamacpp.chat import body_of, chat
from noeta_llamacpp.engine import Engine
from noeta_llamacpp.files import file_of
from noeta_llamacpp.gguf import Header, NotGguf, read_header
from noeta_llamacpp.settings import Settings

SMALL_PARAMETERS = 1_000_000_000
"""With fewer weights than that a model does not follow descriptions of tools."""


class LlamaCpp:
    """Runs GGUF files. Each is loaded at its first call and stays loaded until the provider is closed."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._engines: dict[str, Engine] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta | ModelResponse]:
        """Call the model. The `ModelResponse` comes last, once; closing early ends the call."""
        engine, header = self._engine(request.model)
        pieces = small.reply(engine, request) if self._small(header) else chat(engine, request)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """The exact number of input tokens of `request`."""
        engine, header = self._engine(request.model)
        if self._small(header):
            return await engine.count(small.prompt_of(request).text)
        return await engine.count(await engine.rendered(body_of(request)))

    def model_info(self, model: str) -> ModelInfo:
        """What the model's file says of it; nothing for a model that is not there."""
        try:
            header = self._header(model)
        except ProviderError:
            return ModelInfo()
        window = self._window(header)
        tools = frozenset({"tools"} if self._small(header) or "tools" in header.template else ())
        return ModelInfo(window=window, max_output=window, features=tools, parameters=header.parameters)

    def check(self, model: str) -> None:
        """Raise `ProviderError` unless the model's file is there and can be read."""
        self._header(model)

    async def aclose(self) -> None:
        """End all calls and free the models. Idempotent."""
        while self._engines:
            _, engine = self._engines.popitem()
            await engine.aclose()

    def _engine(self, model: str) -> tuple[Engine, Header]:
        """The engine of a model, not loaded yet when it is new. Raises `ProviderError`."""
        header = self._header(model)
        if model not in self._engines:
            self._engines[model] = Engine(
                file_of(model, self._settings.models),
                window=self._window(header),
                threads=self._settings.threads,
                template=header.template if model in self._settings.templates else "",
            )
        return self._engines[model], header

    def _header(self, model: str) -> Header:
        """What is known of a model, with the template it is used with. Raises `ProviderError`."""
        template = self._settings.templates.get(model)
        try:
            header = read_header(file_of(model, self._settings.models))
            if template is not None:
                header = replace(header, template=Path(template).expanduser().read_text(encoding="utf-8"))
        except (NotGguf, OSError, UnicodeDecodeError) as error:
            raise ProviderError("invalid", f"the local model {model!r} cannot be used: {error}") from error
        return header

    def _window(self, header: Header) -> int:
        return min(self._settings.context, header.window or self._settings.context)

    def _small(self, header: Header) -> bool:
        profile = self._settings.profile
        return profile == "small" or (profile == "auto" and header.parameters < SMALL_PARAMETERS)


def open_provider(settings: Mapping[str, Any]) -> LlamaCpp:
    """The provider with these settings. Raises `SettingsError` for one that `Settings` does not have."""
    return LlamaCpp(settings_of("llamacpp", Settings, settings))
