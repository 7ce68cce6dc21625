"""Sitting with a task until it does not go on by itself: showing it, asking the person, heeding signals."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from noeta_cli import exits
from noeta_cli.asks import answer_line, questions_of, read_words, shown_ask
from noeta_cli.opening import whoami
from noeta_cli.outlet import Outlet
from noeta_cli.output import PATIENCE
from noeta_cli.readers import Wrong
from noeta_cli.showing import BAD, Shown

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from noeta.host.host import Host
    from noeta.host.outcome import Asked, Outcome
    from noeta.toolkit.store import Store

LEAVING_SECONDS = 2.0
"""How long the second Ctrl-C leaves for giving up the claim, which others would have to wait for."""
LOOK_SECONDS = 1.0
SHORT = {"a": "allow", "y": "allow", "yes": "allow", "d": "deny", "n": "deny", "no": "deny"}
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Sitting:
    """A person, or a script, at one task of a host.

    `talks`: questions are asked at the terminal. `store_flag` is the store as the command line names it.
    """

    def __init__(
        self,
        store: Store,
        shown: Shown,
        outlet: Outlet,
        *,
        talks: bool = False,
        store_flag: str | None = None,
    ) -> None:
        self._store, self._shown, self._outlet = store, shown, outlet
        self._talks, self._store_flag = talks, store_flag
        self._seq = 0
        self._host: Host | None = None
        self._task = ""
        # What a signal makes of the exit code, and whether the turn is to be interrupted once it began.
        self._code: int | None = None
        self._stops = False
        self._attending = anyio.CancelScope()
        self._leaving = anyio.CancelScope()

    async def go(self, host: Host, begin: Callable[[Host], Awaitable[tuple[str, int]]]) -> int:
        """Begin in the host, which is entered and left here, and stay until the task rests; the exit code.

        `begin` gives the task and the seq behind which it is shown.
        """
        code = exits.DONE
        with self._leaving:
            async with anyio.create_task_group() as group:
                await group.start(self._heed)
                async with host:
                    self._host = host
                    with self._attending:
                        self._task, self._seq = await begin(host)
                        code = await self._attend(host)
                group.cancel_scope.cancel()
        return code if self._code is None else self._code

    async def _attend(self, host: Host) -> int:
        """Show the task and ask the person until it rests."""
        while True:
            outcome = await self._rest(host)
            if not (self._talks and outcome.asks and self._code is None):
                break
            await _first(partial(self._talk, host, outcome.asks), self._moved)
        self._shown.end(outcome)
        await self._tell_of_children(host)
        return self._conclude(outcome)

    async def _rest(self, host: Host) -> Outcome:
        """The outcome, with all that led to it shown."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow, host)
            group.start_soon(self._tell_of_others)
            outcome = await host.wait(self._task)
            group.cancel_scope.cancel()
        for recorded in await host.log(self._task, self._seq):
            self._seq = recorded.seq
            self._shown.record(recorded)
        return outcome

    async def _follow(self, host: Host) -> None:
        from noeta import Recorded

        async with aclosing(host.follow(self._task, self._seq)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, Recorded):
                    self._shown.live(piece)
                    continue
                self._seq = piece.seq
                self._shown.record(piece)
                if self._stops:
                    await self._interrupt(host)

    # ---- the person

    async def _talk(self, host: Host, asks: Sequence[Asked]) -> None:
        """Ask at the terminal, and post each answer. Who ends the input is asked no more."""
        from noeta import NoetaError

        for asked in asks:
            for line in shown_ask(asked):
                self._outlet.say(line, bold=True)
            given = None
            while given is None:
                self._outlet.say("allow or deny?" if asked.on == "approval" else "Your answer:")
                if (typed := await _line()) is None:
                    self._talks = False
                    return
                try:
                    given = read_words(asked, _words(asked, typed.strip()))
                except Wrong as error:
                    self._outlet.say(error.message, **BAD)
            try:
                await host.answer(asked.task, asked.call, given, by=whoami(), park=asked.park)
            except NoetaError as error:
                # Somebody else was quicker.
                self._outlet.say(str(error), **BAD)

    async def _moved(self) -> None:
        """Wait until the task waits no more, such as when somebody else answers."""
        async with self._store.watch(self._task, log=False) as watch:
            while (await self._store.task(self._task)).status == "waiting":
                await watch.wait(LOOK_SECONDS)

    # ---- signals

    async def _heed(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                if self._code is not None and (number == signal.SIGINT or self._attending.cancel_called):
                    self._leave()
                elif number == signal.SIGTERM:
                    self._code = exits.TERMINATED
                    again = f" Go on with: noeta run --resume {self._task}" if self._task else ""
                    self._outlet.say(f"noeta: terminated; what runs is brought to a safe point.{again}")
                    self._attending.cancel()
                else:
                    self._code = exits.INTERRUPTED
                    self._outlet.say("noeta: interrupting the turn; Ctrl-C again leaves at once.")
                    await self._interrupt(self._host)

    async def _interrupt(self, host: Host | None) -> None:
        """Stop the turn for good. Before there is one, wait for it; where there will be none, leave."""
        if host is None or not self._task:
            self._attending.cancel()
            return
        self._stops = not await host.interrupt(self._task, by=whoami())
        if self._stops and (await self._store.task(self._task)).status in ("waiting", "ended"):
            self._attending.cancel()

    def _leave(self) -> None:
        """Leave at once: give the claim up if that is quick, and in any case be gone soon."""
        code = self._code or exits.INTERRUPTED
        timer = threading.Timer(LEAVING_SECONDS, os._exit, [code])
        timer.daemon = True
        timer.start()
        self._leaving.cancel()

    # ---- the end

    def _conclude(self, outcome: Outcome) -> int:
        """Say where the task is, and the exit code for it."""
        say, again = self._outlet.say, f"noeta run --resume {self._task}"
        match outcome.status, outcome.reason:
            case "done", "empty_reply":
                say("noeta: the model gave no answer.")
            case "done", _:
                pass
            case "interrupted", _:
                say(f"noeta: the turn was interrupted. Go on with: {again} PROMPT")
                return exits.INTERRUPTED
            case "waiting", "idle":
                say(f"noeta: task {self._task} waits for a message. Give it one: {again} PROMPT")
            case "waiting", _ if outcome.asks:
                for asked in outcome.asks:
                    for line in shown_ask(asked):
                        say(f"  {line}")
                    line = answer_line(asked, self._store_flag)
                    say(f"noeta: the task waits for a person. Answer with: {line}")
                return exits.WAITS_FOR_PERSON
            case "waiting", "provider" | "timer":
                say(f"noeta: the task waits for the {outcome.reason}{_because(outcome)}. Later: {again}")
                return exits.WAITS_FOR_TIME
            case "waiting", reason:
                say(f"noeta: the task waits ({reason}){_because(outcome)}. After mending it: {again}", **BAD)
                return exits.FAILED
            case "failed", "max_turns":
                say(f"noeta: {outcome.text} Go on with: {again} PROMPT", **BAD)
                return exits.FAILED
            case status, reason:
                why = f" ({reason})" if reason else ""
                say(f"noeta: the turn {_ended(status)}{why}{_because(outcome)}", **BAD)
                return exits.FAILED
        return exits.DONE

    async def _tell_of_others(self) -> None:
        """Say so when the task stays with a worker that had it before, or died with it."""
        before, seq = await self._store.task(self._task), self._seq
        await anyio.sleep(PATIENCE)
        row = await self._store.task(self._task)
        if before.status == row.status == "running" and (before.fence, seq) == (row.fence, self._seq):
            self._outlet.say("noeta: another worker has the task; this goes on if it is gone.")

    async def _tell_of_children(self, host: Host) -> None:
        rows = await host.tasks(root=self._task)
        going = [row for row in rows if row.status in ("ready", "running") and row.task != self._task]
        if going:
            self._outlet.say(f"noeta: {len(going)} child tasks are not done; noeta worker goes on with them.")


def _words(asked: Asked, text: str) -> list[str]:
    """What was typed, as words of the command `answer`."""
    if asked.on == "approval":
        return [SHORT.get(text.casefold(), text)]
    questions = questions_of(asked)
    several = len(questions) == 1 and questions[0].get("multiSelect")
    parts = text.split(",") if several else text.split(";") if len(questions) != 1 else [text]
    return [part.strip() for part in parts]


def _ended(status: str) -> str:
    return "was cancelled" if status == "cancelled" else "failed"


def _because(outcome: Outcome) -> str:
    return f": {outcome.text.rstrip('.')}" if outcome.text else ""


async def _first(*parts: Callable[[], Awaitable[Any]]) -> None:
    """Run all until the first one is done, and let its error out."""

    async def run(part: Callable[[], Awaitable[Any]]) -> None:
        await part()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for part in parts:
            group.start_soon(run, part)


_typed = bytearray()


async def _line() -> str | None:
    """A line that the person types, None at the end of the input. It can be cancelled, as `input` cannot."""
    number = sys.stdin.fileno()
    while b"\n" not in _typed:
        await anyio.wait_readable(number)
        if not (data := os.read(number, 65_536)):
            return None
        _typed.extend(data)
    line, _, rest = bytes(_typed).partition(b"\n")
    _typed[:] = rest
    return line.decode(errors="replace")
