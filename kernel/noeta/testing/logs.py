"""Random logs for property tests, sound ones and damaged ones. Needs hypothesis."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from noeta.core.codec import Line, decode
from noeta.core.messages import Block, Message, Text, Thinking, ToolResult, ToolUse, Usage, user
from noeta.core.records import (
    Answer,
    Answered,
    CallRef,
    ChildEnded,
    ChildSpawned,
    Claimed,
    Compacted,
    ContextComposed,
    Continue,
    Erased,
    Fact,
    Gated,
    Interrupted,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    Notice,
    Opinion,
    PluginFailed,
    Received,
    SystemPart,
    TaskEnded,
    TimerCleared,
    TimerSet,
    ToolFinished,
    ToolParked,
    ToolStarted,
    TurnDoneRecord,
    TurnFailedRecord,
)
from noeta.testing.log_writer import LogWriter

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy


@cache
def _data() -> SearchStrategy[Any]:
    """What a plugin may put into a record."""
    from hypothesis import strategies as st

    leaves = st.none() | st.integers() | st.text(max_size=4)
    return st.recursive(leaves, lambda x: st.lists(x) | st.dictionaries(st.text(max_size=3), x), max_leaves=5)


class _Writer:
    """Writes a log that a runner could have written: each record fits those before it, all else is drawn."""

    def __init__(self, draw: DrawFn, extensions: tuple[str, ...]) -> None:
        from hypothesis import strategies as st

        self.draw, self.st, self.extensions = draw, st, extensions
        self.log = LogWriter()
        self.n = 0
        self.open: list[str] = []
        self.parked: dict[str, tuple[int, list[str]]] = {}
        self.parks: dict[str, int] = {}
        self.children: list[str] = []
        # The seqs at which no call was open: a compaction up to there splits no call from its result.
        self.whole: list[int] = []
        self.said: list[int] = []
        self.quotes: list[int] = []
        self.timers: dict[str, int] = {}

    @property
    def seq(self) -> int:
        return self.log.seq

    def put(self, fact: Fact, message: Message | None = None) -> None:
        self.note("core", fact.kind, fact, message)

    def note(self, extension: str, kind: str, data: object, message: Message | None) -> None:
        self.log.note(extension, kind, data, message)
        if message is not None and not self.open:
            self.whole.append(self.seq)

    def text(self) -> str:
        return str(self.draw(self.st.text(alphabet="ab é漢\0\u2028\U0001f600", max_size=8)))

    def pick(self, options: Any) -> Any:
        # A new `sampled_from` each time would take longer than the choice.
        options = list(options)
        return options[self.draw(self.st.integers(0, len(options) - 1))]

    def received(self) -> None:
        self.n += 1
        message = msgspec.structs.replace(user(self.text()), origin=self.pick(["", "memory", "system"]))
        self.put(Received(n=self.n, key=f"k{self.n}", item="message"), message)
        self.said.append(self.seq)

    def plugin(self) -> None:
        extension = self.pick(self.extensions)
        data = self.draw(_data())
        message = user(self.text()) if self.pick([True, False]) else None
        kind = self.pick(["noted", "done", "later"])
        self.note(extension, kind, data, message)
        if message is not None:
            self.quotes.append(self.seq)

    def replied(self) -> None:
        if self.open:
            return
        built_at = self.draw(self.st.integers(max(self.seq - 2, 0), self.seq))
        ids = [f"c{self.seq + 1}_{i}_00000000" for i in range(self.pick([0, 1, 1, 2, 3]))]
        blocks: list[Block] = [
            Thinking(text=self.text(), signature="sig"),
            Text(text=self.text()),
            *(ToolUse(id=id, name="echo", input={"x": self.text()}, provider_id="p") for id in ids),
        ]
        self.open = list(ids)
        self.put(
            ModelReplied(
                built_at=built_at,
                usage=Usage(uncached=self.draw(self.st.integers(0, 9)), output=1),
                calls=[CallRef(id=id, name="echo") for id in ids],
                stop_reason="tool_use" if ids else "end_turn",
            ),
            Message(role="assistant", content=blocks),
        )

    def started(self) -> None:
        if self.open:
            self.put(ToolStarted(call=self.pick(self.open), attempt=self.pick([1, 2])))

    def finished(self) -> None:
        waiting = [id for id in self.open if id not in self.parked]
        if not waiting:
            return
        call = self.pick(waiting)
        self.open.remove(call)
        result = ToolResult(call=call, content=[Text(text=self.text())], is_error=self.pick([True, False]))
        self.put(ToolFinished(call=call, is_error=result.is_error), Message(role="user", content=[result]))

    def parked_(self) -> None:
        waiting = [id for id in self.open if id not in self.parked]
        if not waiting:
            return
        call = self.pick(waiting)
        park = self.parks[call] = self.parks.get(call, 0) + 1
        keys = self.children[:2] if self.pick([True, False]) else []
        self.parked[call] = park, list(keys)
        self.put(ToolParked(call=call, park=park, on="children" if keys else "question", keys=keys))

    def answered(self) -> None:
        asked = [call for call, (_, keys) in self.parked.items() if not keys]
        late = not asked
        call = self.pick(asked or ["c0_0_00000000"])
        park = self.parked.pop(call)[0] if asked else 1
        self.n += 1
        answer = Answer(call=call, park=park, verdict="allow", by=self.text())
        self.put(Answered(n=self.n, key=f"answer:{call}:{park}", answer=answer, late=late))

    def spawned(self) -> None:
        child = f"child{self.seq}"
        self.children.append(child)
        self.put(ChildSpawned(child=child, agent="b", key=str(self.seq), background=self.pick([True, False])))

    def child_ended(self) -> None:
        if not self.children:
            return
        child = self.pick(self.children)
        self.children.remove(child)
        self.put(ChildEnded(child=child, status="done", text=self.text(), n=self.n, key=f"child:{child}"))
        for call, (_, keys) in list(self.parked.items()):
            if keys and not set(keys) & set(self.children):
                del self.parked[call]

    def timer(self) -> None:
        name = self.pick("xy")
        match self.pick(["set", "clear", "fire"]):
            case "set":
                self.put(TimerSet(name=name, at=9.5, text=self.text()))
                self.timers[name] = self.seq
            case "clear":
                self.put(TimerCleared(name=name))
                self.timers.pop(name, None)
            case _:
                self.n += 1
                raw = msgspec.Raw(msgspec.json.encode({"name": name, "gen": self.timers.get(name, 1)}))
                self.put(Received(n=self.n, key=f"timer:{self.n}", item="timer", data=raw), user(self.text()))
                self.quotes.append(self.seq)

    def compacted(self) -> None:
        if self.open or not self.whole:
            return
        through = self.pick(self.whole)
        # A kept reply without its results, or the reverse, is what no runner writes.
        keep = [seq for seq in self.said if seq <= through][-1:] if self.pick([True, False]) else []
        extra = [user(self.text())] if self.pick([True, False]) else []
        self.put(Compacted(through=through, summary=[user("summary")], keep=keep, lead=extra, after=extra))
        self.quotes.append(self.seq)

    def erased(self) -> None:
        if self.said:
            seq = self.said.pop(self.draw(self.st.integers(0, len(self.said) - 1)))
            self.put(Erased(seqs=[seq], along=[other for other in self.quotes if other > seq]))

    def plain(self) -> None:
        """Records that change little."""
        self.put(
            self.pick(
                [
                    ContextComposed(system=[SystemPart(text="be kind", by="x")], parameters={"model": "m"}),
                    Gated(call="c", opinions=[Opinion(by="p", verdict="allow")], winner=0),
                    ModelFailed(category="overloaded", retry_at=3.5),
                    ModelCalled(plugin="p", usage=Usage(output=2)),
                    PluginFailed(plugin="p", hook="on_start", error="E", policy="skipped"),
                    Claimed(fence=self.seq, worker="w"),
                    Notice(text=self.text()),
                    Continue(reason="empty_reply"),
                    TurnDoneRecord(reason="end_turn", text="done"),
                    TurnFailedRecord(reason="context_overflow"),
                    Interrupted(by="me"),
                    TaskEnded(status="done"),
                ]
            )
        )

    def step(self) -> None:
        actions = [self.received, self.plugin, self.replied, self.replied, self.started, self.finished]
        actions += [self.finished, self.parked_, self.answered, self.spawned, self.child_ended, self.timer]
        actions += [self.compacted, self.erased, self.plain]
        self.pick(actions)()


def logs(
    max_steps: int = 40, extensions: tuple[str, ...] = ("alpha", "beta", "gone")
) -> SearchStrategy[list[Line]]:
    """Sound logs of a task ``t``: every record could have been written by a runner behind those before it.

    The plugins named in `extensions` write records of the kinds ``noted``, ``done`` and ``later``.
    """
    from hypothesis import strategies as st

    @st.composite
    def build(draw: DrawFn) -> list[Line]:
        writer = _Writer(draw, extensions)
        for _ in range(draw(st.integers(0, max_steps))):
            writer.step()
        return writer.log.lines

    return build()


def damaged_logs(max_steps: int = 20) -> SearchStrategy[list[Line]]:
    """Logs in which some lines were replaced, cut, dropped, doubled, or come from a later version."""
    from hypothesis import strategies as st

    def core(seq: int, kind: str, rest: str) -> list[Line]:
        data = f'{{"seq":{seq},"at":1,"extension":"core","kind":"{kind}",{rest}}}'.encode()
        return [Line(seq, data, f"core.{kind}", '"message":' in rest)]

    ways = "bytes cut flip drop double kind version item block envelope type".split()
    blocks = (
        '[{"type":"of_tomorrow","x":[1]},{"type":"text"},{"type":"tool_result","call":"c","content":[7]}]'
    )

    def spoil(draw: DrawFn, line: Line) -> list[Line]:
        seq, data = line.seq, line.data
        match draw(st.sampled_from(ways)):
            case "bytes":
                return [line._replace(data=draw(st.binary(max_size=40)))]
            case "cut":
                return [line._replace(data=data[: draw(st.integers(0, len(data)))])]
            case "flip":
                at = draw(st.integers(0, len(data) - 1))
                return [
                    line._replace(
                        data=data[:at] + bytes([data[at] ^ draw(st.integers(1, 255))]) + data[at + 1 :]
                    )
                ]
            case "drop":
                return []
            case "double":
                return [line, line]
            case "kind":
                return core(seq, "of_tomorrow", '"data":{}')
            case "version":
                return [line._replace(data=data[:-1] + b',"v":99}')]
            case "item":
                return core(seq, "received", '"data":{"n":1,"key":"k","item":"of_tomorrow"}')
            case "block":
                return core(seq, "continue", f'"data":{{}},"message":{{"role":"user","content":{blocks}}}')
            case "envelope":
                return [line._replace(data=data[:-1] + b',"of_tomorrow":{"a":[1,2]}}')]
            case _:
                return core(seq, decode(line).kind, '"data":7')

    @st.composite
    def build(draw: DrawFn) -> list[Line]:
        lines = draw(logs(max_steps))
        hit = draw(st.sets(st.integers(0, len(lines) - 1), max_size=4))
        return [new for i, line in enumerate(lines) for new in (spoil(draw, line) if i in hit else [line])]

    return build()
