"""Hooks without a runner: a task on paper, on which the real dispatcher calls hooks of real plugins.

    task = Rehearsal(Counter())
    task.log.say("hello")
    await task.hooks.on_start(task)
    assert task.state.states["counter"] == 1

What a hook stages takes its place in the log when the hook returns, and is folded, as in a real task. Nothing
is written anywhere, no model is called and no time passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from noeta.core.codec import decode, placed, recorded, with_body
from noeta.core.extension import Extension
from noeta.core.fold import Folder
from noeta.core.items import Post
from noeta.core.messages import ToolUse
from noeta.core.parts import Offer
from noeta.core.ports import ModelRequest
from noeta.core.records import PluginFailed, Recorded
from noeta.core.state import TaskState
from noeta.core.text import meant
from noeta.core.tool import ToolContext, ToolOutput
from noeta.core.view import Spawn, TaskView, Views
from noeta.host.offer import offer
from noeta.host.registry import Registry
from noeta.testing.log_writer import LogWriter
from noeta.testing.nowhere import Nowhere
from noeta.toolkit.dispatch import Hooks
from noeta.toolkit.env import ExecEnv
from noeta.toolkit.reducers import reducer


class Rehearsal(Views):
    """A task of an agent with these plugins. It is what the methods of `hooks` want.

    - `log`: a `LogWriter`. What is written to it is folded before the next hook runs; one that is given is
      written on.
    - `records`, `posts`, `children`: what hooks and tools staged, in order, and did not lose by raising.
    - `failures`: the hooks that failed, if not `strict`.

    A hook that fails, and a plugin whose fold breaks, is an `AssertionError`. With `strict=False` a failure
    costs what it costs in a real task. `registry` is one to share, or one that blocks plugins. `fields` are
    further fields of `TaskView`. Raises `ComposeError` for plugins that do not go together.
    """

    hooks: Hooks

    def __init__(
        self,
        *extensions: Extension,
        log: LogWriter | None = None,
        strict: bool = True,
        env: ExecEnv | None = None,
        registry: Registry | None = None,
        **fields: Any,
    ) -> None:
        hooks = (registry or Registry()).compose(extensions)
        self.log: LogWriter = log or LogWriter()
        self.records: list[Recorded] = []
        self.posts: list[Post] = []
        self.children: list[Spawn] = []
        self.failures: list[PluginFailed] = []
        self._extensions = {extension.name: extension for extension in hooks.extensions}
        self._strict, self._read = strict, 0
        self._folder = Folder([reducer(extension) for extension in hooks.extensions])
        self._state = self._folder.start()
        fields = {"state": self._state, "folder": self._folder, "env": env or Nowhere(), **fields}
        super().__init__(hooks, **fields)
        self._catch_up()

    @property
    def state(self) -> TaskState:
        """The state after all that is in the log."""
        self._catch_up()
        return self._state

    def view(self, plugin: str, hook: str) -> TaskView:
        """The plugin's view, ready to stage work for `hook`; `settle` or `drop` ends it."""
        self._catch_up()
        return super().view(plugin, hook)

    def request(self, **fields: Any) -> ModelRequest:
        """A request with the messages of the task, as a runner builds one, and with these fields."""
        messages = [item.message for item in self.state.conversation]
        return ModelRequest(**{"model": "model", "messages": messages, **fields})

    def offer(self, allowed: Sequence[str] | None = None, denied: Sequence[str] = ()) -> Offer:
        """What the task offers its model under the agent's lists; hooks find it from then on."""
        self._catch_up()
        found = offer(self.hooks, self, allowed, denied)
        self.set(offer=found, allowed_tools=allowed, denied_tools=denied)
        return found

    async def run(self, call: ToolUse, **fields: Any) -> ToolOutput:
        """Run a tool of the plugins, ungated; what it staged is kept unless it raises.

        `fields` are further fields of `ToolContext`. Raises `KeyError` for a tool that is not offered.
        """
        by, tool = self.offer().tools[call.name]
        view = self.view(by, "run")
        known: dict[str, Any] = {"root_id": self._state.root, "spawn": view.spawn, **fields}
        ctx = ToolContext(
            view.task_id, call.id, view.env or Nowhere(), view.record, state=self._state.states, **known
        )
        try:
            output = await tool.run(call.input, ctx)
        except BaseException:
            self.drop(by, "run")
            raise
        self.settle(by, "run")
        return output

    def settled(self, view: TaskView) -> None:
        """Give what a hook staged its place in the log."""
        types = self._extensions[view.plugin].record_types
        for staged in view.pending:
            made = placed(staged, self.log.seq + 1, self.log.at)
            self.log.lines.append(made.line)
            self.log.blobs += made.blobs
            own = made.envelope.extension == view.plugin
            if self._strict and own and types is not None and (kind := made.envelope.kind) not in types:
                why = f"it records kind {kind!r}, which its record_types do not declare{meant(kind, types)}"
                raise AssertionError(f"Plugin {view.plugin!r}, {view.hook}: {why}.")
            self.records.append(recorded(made.envelope, types if own else None))
        self.posts += view.enqueued
        self.children += view.creates
        self._catch_up()

    def failed(self, plugin: str, hook: str, error: str, policy: str) -> None:
        """Record that a hook failed, or be an `AssertionError` if `strict`."""
        if self._strict:
            raise AssertionError(f"Plugin {plugin!r}, hook {hook}: it raised {error.rstrip('.')}.")
        self.failures.append(PluginFailed(plugin=plugin, hook=hook, error=error, policy=policy))
        self.log.put(self.failures[-1])

    def _catch_up(self) -> None:
        """Fold what was written to the log meanwhile."""
        for line in self.log.lines[self._read :]:
            envelope = decode(line)
            if envelope.blob:
                envelope = with_body(envelope, dict(self.log.blobs)[envelope.blob])
            self._folder.apply(self._state, envelope)
            self._read += 1
        for plugin, problem in self._state.broken.items() if self._strict else ():
            raise AssertionError(f"Plugin {plugin!r}, {problem.why.rstrip('.')} (seq {problem.seq}).")
