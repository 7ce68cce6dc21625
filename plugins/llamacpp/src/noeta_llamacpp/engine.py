"""One loaded model: llama.cpp's server in this process, and calls of it that can be followed and stopped."""

from __future__ import annotations

import http.client
import json
import math
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread

from noeta.toolkit.provider import ProviderError

BATCH = 128
"""How many tokens of a prompt are read between two looks at whether the call is still wanted."""
CLOSE_SECONDS = 5.0
CATEGORIES = {"exceed_context_size_error": "overflow", "unavailable_error": "overloaded"}
"""The categories of errors by the server's words; others go by their number."""

Call = Callable[[Mapping[str, Any], Callable[[dict[str, Any]], bool]], object]


class Engine:
    """A model that is loaded at the first call. Calls of several tasks wait for each other inside it."""

    def __init__(self, path: Path, *, window: int, threads: int, template: str) -> None:
        self.path: Path = path
        self._window, self._threads, self._template = window, threads, template
        self._loading = threading.Lock()
        self._server: Any = None
        # The server also listens on the loopback device, where other people of the machine could call it.
        self._key = secrets.token_hex(16)
        self._calls: dict[threading.Thread, threading.Event] = {}

    def complete(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of a completion of a prompt. Raises `ProviderError`; closing early ends the call."""
        return self._follow(lambda server: server.handle_completions, body)

    def chat(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of a chat completion. Raises `ProviderError`; closing early ends the call."""
        return self._follow(lambda server: server.handle_chat_completions, body)

    async def count(self, text: str) -> int:
        """How many tokens `text` has. Raises `ProviderError`."""
        tokens = (await self._ask("/tokenize", {"content": text, "parse_special": True}))["tokens"]
        return len(tokens)

    async def rendered(self, body: Mapping[str, Any]) -> str:
        """The prompt that the model's template makes of a chat. Raises `ProviderError`."""
        return str((await self._ask("/apply-template", body))["prompt"])

    async def aclose(self) -> None:
        """End all calls and free the model."""
        for stopped in self._calls.values():
            stopped.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._join)
        self._server = None

    def _join(self) -> None:
        for thread in list(self._calls):
            thread.join(CLOSE_SECONDS)

    def _load(self) -> Any:
        """The server, loaded once. Raises `ProviderError`."""
        with self._loading:
            if self._server is None:
                self._server = self._open()
            return self._server

    def _open(self) -> Any:
        # Takes a tenth of a second, which only those pay who use it.
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        params.n_ctx, params.n_parallel, params.n_batch = self._window, 1, BATCH
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [self._key]
        params.use_jinja, params.warmup, params.verbosity, params.ui = True, False, 0, False
        if self._template:
            params.chat_template = self._template
        try:
            return xllamacpp.Server(params)
        except Exception as error:
            raise ProviderError("invalid", f"llama.cpp cannot load {self.path}: {error}") from error

    async def _follow(
        self, method: Callable[[Any], Call], body: Mapping[str, Any]
    ) -> AsyncGenerator[dict[str, Any], None]:
        send, receive = anyio.create_memory_object_stream[dict[str, Any] | Exception](math.inf)
        token, stopped = anyio.lowlevel.current_token(), threading.Event()
        # Reading a long prompt takes a while, in which only this says that nobody waits any more.
        body = {**body, "stream": True, "return_progress": True, "cache_prompt": True}

        def tell(what: dict[str, Any] | Exception) -> None:
            # The loop may be gone by now, or nobody listens.
            with suppress(RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                anyio.from_thread.run_sync(send.send_nowait, what, token=token)

        def take(chunk: dict[str, Any]) -> bool:
            if not stopped.is_set():
                tell(chunk)
            return stopped.is_set()

        def work() -> None:
            try:
                method(self._load())(body, take)
                end: Exception = StopAsyncIteration()
            except Exception as error:
                end = error
            self._calls.pop(threading.current_thread(), None)
            tell(end)

        # A worker thread of anyio would hold up whoever leaves the loop until the model has had its say.
        thread = threading.Thread(target=work, name=f"llamacpp {self.path.name}", daemon=True)
        self._calls[thread] = stopped
        thread.start()
        try:
            async for chunk in receive:
                if isinstance(chunk, StopAsyncIteration):
                    return
                if isinstance(chunk, Exception):
                    raise _failure(chunk)
                if error := chunk.get("error"):
                    raise _refusal(error)
                yield chunk
        finally:
            stopped.set()
            send.close()
            receive.close()

    async def _ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What the server answers over its loopback port, for what cannot be called otherwise."""

        def ask() -> tuple[int, bytes]:
            place = str(self._load().listening_address).removeprefix("http://")
            connection = http.client.HTTPConnection(place, timeout=60)
            try:
                headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
                connection.request("POST", path, json.dumps(body), headers)
                response = connection.getresponse()
                return response.status, response.read()
            finally:
                connection.close()

        try:
            status, data = await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
            answer: dict[str, Any] = json.loads(data)
        except ProviderError:
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ProviderError("server", f"llama.cpp gave no answer: {error}") from error
        if status != 200:
            raise _refusal(answer.get("error", {"code": status}))
        return answer


def _failure(error: Exception) -> ProviderError:
    return (
        error if isinstance(error, ProviderError) else ProviderError("server", f"llama.cpp failed: {error}")
    )


def _refusal(error: Mapping[str, Any]) -> ProviderError:
    """The error that the server's own says."""
    code = error.get("code")
    number = code if isinstance(code, int) else 500
    category = "invalid" if 400 <= number < 500 else "server"
    detail = str(error.get("message") or error)
    return ProviderError(CATEGORIES.get(str(error.get("type")), category), detail, status=number)
