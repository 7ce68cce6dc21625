"""A loop that stands still is reported, and ends its process before its tasks are somebody else's."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import time

import anyio
import pytest

from noeta.host import watchdog
from noeta.host.watchdog import Watchdog


@pytest.mark.anyio
async def test_a_loop_that_stands_still_is_reported_once_with_what_it_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watchdog, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(watchdog, "REPORT_SECONDS", 0.05)
    with caplog.at_level(logging.WARNING, "noeta"):
        async with anyio.create_task_group() as group:
            group.start_soon(Watchdog(0.1, lambda: False).run)
            await anyio.sleep(0.05)
            hold_up()
            await anyio.sleep(0.05)
            group.cancel_scope.cancel()
    [record] = caplog.records
    assert "in hold_up" in record.getMessage()


@pytest.mark.anyio
async def test_a_loop_that_is_only_busy_is_not_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watchdog, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(watchdog, "REPORT_SECONDS", 0.25)
    monkeypatch.setattr(watchdog.os, "_exit", lambda status: pytest.fail("the process would have ended"))
    end, rounds = time.monotonic() + 1.5, []

    async def step() -> None:
        began = time.monotonic()
        while time.monotonic() < end:
            hold_up(0.002)
            await anyio.lowlevel.checkpoint()
            began, before = time.monotonic(), began
            rounds.append(began - before)

    with caplog.at_level(logging.WARNING, "noeta"):
        async with anyio.create_task_group() as group:
            group.start_soon(Watchdog(0.3, lambda: True).run)
            await anyio.sleep(0.05)
            async with anyio.create_task_group() as busy:
                for _ in range(250):
                    busy.start_soon(step)
            group.cancel_scope.cancel()
    # It did not come round for longer than a stuck one may.
    assert max(rounds) > 0.3
    assert caplog.records == []


def hold_up(seconds: float = 0.4) -> None:
    time.sleep(seconds)


def test_a_plain_hook_that_never_returns_ends_the_process_at_the_lease() -> None:
    script = """
        import time
        from noeta import Agent, Extension, Host
        from noeta.testing import ScriptedProvider

        class Stuck(Extension):
            name = "stuck"

            def context(self, view):
                time.sleep(600)
                return ()

        agent = Agent("a", model="m:m", plugins=[Stuck()])
        with Host([agent], providers={"m": ScriptedProvider([])}, lease=1.5).sync() as host:
            host.run("a", "hi")
    """
    began = time.monotonic()
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == watchdog.EXIT_STATUS, done.stderr
    assert "stood still for 1.5 s" in done.stderr
    assert "in context" in done.stderr
    assert time.monotonic() - began < 60
