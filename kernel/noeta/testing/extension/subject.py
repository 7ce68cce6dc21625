"""A plugin under test, and what it is tried with: logs that hold its records among all others.

The logs are drawn once and the same in every run. They are sound logs of a task, in which the plugin has
written records of every kind it declares, those of the samples, and some of a later version.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple, NoReturn

import anyio
import msgspec
from msgspec import Raw

from noeta.core.codec import Envelope, Line, decode, encode, line_of, recorded
from noeta.core.errors import NotStorable, told
from noeta.core.extension import Extension
from noeta.core.fold import Folder, Reducer
from noeta.core.messages import user
from noeta.core.records import CORE, Erased, PluginFailed, Recorded
from noeta.core.state import TaskState
from noeta.host.registry import Registry, check_instance
from noeta.testing.extension.performance import perform
from noeta.testing.extension.picture import attributes, picture
from noeta.testing.extension.values import anything, drawn, values
from noeta.testing.log_writer import LogWriter
from noeta.testing.logs import logs
from noeta.testing.views import Rehearsal
from noeta.toolkit.errors import ComposeError
from noeta.toolkit.reducers import reducer

Make = Callable[[], Extension]
"""Gives a fresh instance of the plugin."""
Sample = bytes | Recorded
"""An old record: the bytes of its line, or the record itself."""
Entry = tuple[str, str, Raw]
"""Extension, kind and data of a record."""

LOGS, STEPS, VALUES, MOST = 24, 30, 12, 100
PATIENCE = 60.0
"""The seconds after which hooks that hang have failed."""
OWN, OTHER, TOMORROW = "own", "other", "of_tomorrow"


class Performance(NamedTuple):
    """What came of calling the hooks: those that failed, what was recorded, an attribute that changed, and
    what else did that a hook was given.
    """

    failures: list[PluginFailed]
    records: list[Envelope]
    changed: str
    touched: str


class Subject:
    """What every check is given. It holds the plugin that `make` makes, and fails in its name."""

    def __init__(self, make: Make, samples: Sequence[Sample] = ()) -> None:
        self.make: Make = make
        self.samples: Sequence[Sample] = samples
        self._registry = Registry()

    @cached_property
    def extension(self) -> Extension:
        """The instance under test."""
        return self.another()

    def another(self) -> Extension:
        """A fresh instance."""
        try:
            made = self.make()
        except Exception as error:
            way_out = "Give its class, or what makes it"
            raise AssertionError(f"The plugin cannot be made: {told(error)}. {way_out}.") from error
        try:
            check_instance(made)
        except ComposeError as error:
            raise AssertionError(str(error)) from None
        return made

    @property
    def name(self) -> str:
        """Its name."""
        return self.extension.name

    @property
    def reducer(self) -> Reducer:
        """How it folds its records."""
        return reducer(self.extension)

    def fail(self, place: str, why: str, way_out: str) -> NoReturn:
        """Raise AssertionError with one sentence and the way out."""
        raise AssertionError(f"Plugin {self.name!r}, {place}: {why.rstrip('.')}. {way_out}.")

    def rehearsal(self, log: LogWriter, extension: Extension | None = None) -> Rehearsal:
        """The plugin alone in the task of `log`, which is copied. Failures are noted, not raised."""
        copy = LogWriter(at=log.at)
        copy.lines, copy.blobs = list(log.lines), list(log.blobs)
        try:
            return Rehearsal(extension or self.extension, log=copy, strict=False, registry=self._registry)
        except ComposeError as error:
            raise AssertionError(str(error)) from None

    @cached_property
    def logs(self) -> list[LogWriter]:
        """Logs in which the plugin wrote all that it may meet, its hooks' own records included."""
        made = {
            (record.extension, record.kind, bytes(record.data)): record.data
            for record in self.performance.records
            if record.extension != CORE
        }
        staged = [(extension, kind, data) for (extension, kind, _), data in made.items()]
        return self._logs([*self.stock, *staged[:MOST]])

    @cached_property
    def performance(self) -> Performance:
        """What came of calling every hook on every state."""
        tasks = [self.rehearsal(log) for log in self._logs(self.stock)]

        async def all_of_them() -> None:
            with anyio.fail_after(PATIENCE):
                for task in tasks:
                    touched.update("a call they are asked about" for _ in await perform(task))

        touched: set[str] = set()
        before = attributes(self.extension)
        try:
            anyio.run(all_of_them, backend="asyncio")
        except TimeoutError:
            self.fail("hooks", f"they took longer than {PATIENCE:g} s", "Let none wait for what may not come")
        after = attributes(self.extension)
        if any(map(self._moved, tasks)):
            touched.add("the state of the task")
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        return Performance(
            failures=[failure for task in tasks for failure in task.failures],
            records=[record for task in tasks for record in task.log.records if record.by == self.name],
            changed=changed[0] if changed else "",
            touched=min(touched, default=""),
        )

    def _moved(self, task: Rehearsal) -> bool:
        """Whether the state that hooks were shown is no longer what its log folds to."""
        shown, first, second = (
            (picture(state.states[self.name]), msgspec.structs.replace(state, states={}))
            for state in (task.state, self.rehearsal(task.log).state, self.rehearsal(task.log).state)
        )
        return first == second != shown

    @cached_property
    def tasks(self) -> list[tuple[Rehearsal, Rehearsal]]:
        """A rehearsal of each of `logs`, with the instance under test and with another one."""
        other = self.another()
        return [(self.rehearsal(log), self.rehearsal(log, other)) for log in self.logs]

    def states(self) -> Iterator[TaskState]:
        """What each log folds to, if the plugin gets that far."""
        for log in self.logs:
            state = log.fold([self.reducer])
            if self.name not in state.broken:
                yield state

    @cached_property
    def stock(self) -> list[Entry]:
        """Extension, kind and data of the records that the plugin may meet, besides the kernel's."""
        found = [(self.name, kind, data) for kind in self.kinds for data in self._data(kind)]
        found += [(e.extension, e.kind, e.data) for e in self.old if e is not None and e.extension != CORE]
        odd = [Raw(msgspec.json.encode(value)) for value in drawn(anything(), VALUES)]
        names = [self.name, *(name for name in self.extension.folds if name != CORE)]
        return found + [(name, TOMORROW, data) for name in names for data in odd]

    @property
    def kinds(self) -> list[str]:
        """The kinds it declares."""
        return list(self.extension.record_types or ())

    @cached_property
    def old(self) -> list[Envelope | None]:
        """The samples, None for one that is no record."""
        return [_envelope(sample) for sample in self.samples]

    def folded(self, records: Sequence[Envelope]) -> TaskState:
        """What the plugin makes of these records alone."""
        folder = Folder([self.reducer], partial=True)
        state = folder.start()
        for record in records:
            folder.apply(state, record)
        return state

    def _logs(self, stock: Sequence[Entry]) -> list[LogWriter]:
        chance = random.Random(0)
        made = [self._told(lines, chance) for lines in drawn_logs()]
        for log in made:
            log.put(Erased(seqs=[log.say("forget this")], by="me"))
        for i, (extension, kind, data) in enumerate(stock):
            message = user("so") if i % 3 else None
            made[i % LOGS].note(extension, kind, msgspec.json.decode(data), message)
        return [LogWriter(), *made]

    def _data(self, kind: str) -> list[Raw]:
        """Data of a declared kind, as far as values of its type can be drawn."""
        types = self.extension.record_types or {}
        try:
            drawings = drawn(values(types[kind]), VALUES)
        except TypeError:
            return []
        found = []
        for value in drawings:
            try:
                envelope = encode(1, 0.0, self.name, kind, value).envelope
            except NotStorable:
                continue
            if recorded(envelope, types).data is not None:
                found.append(envelope.data)
        return found

    def _told(self, lines: Sequence[Line], chance: random.Random) -> LogWriter:
        """A drawn log in which this plugin, and one whose records it folds, wrote what others did."""
        names = {OWN: self.name, OTHER: next((n for n in self.extension.folds if n != CORE), OTHER)}
        log = LogWriter()
        log.lines = []
        for line in lines:
            envelope = decode(line)
            mine = [entry for entry in self.stock if entry[0] == names.get(envelope.extension)]
            if mine:
                extension, kind, data = chance.choice(mine)
                envelope = msgspec.structs.replace(envelope, extension=extension, kind=kind, data=data)
            log.lines.append(line_of(envelope, line.message))
        return log


@cache
def drawn_logs() -> list[list[Line]]:
    """The logs that all plugins are tried with."""
    # The first ones drawn are short, and short logs show little.
    return sorted(drawn(logs(STEPS, (OWN, OTHER, OWN)), 3 * LOGS), key=len)[-LOGS:]


def _envelope(sample: Any) -> Envelope | None:
    try:
        if isinstance(sample, bytes):
            return msgspec.json.decode(sample, type=Envelope)
        return encode(
            *(sample.seq, sample.at, sample.extension, sample.kind, sample.data),
            message=sample.message,
            by=sample.by,
            hook=sample.hook,
        ).envelope
    except (AttributeError, TypeError, ValueError, RecursionError):
        return None
