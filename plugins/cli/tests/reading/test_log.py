"""`noeta log` prints a record a line, follows until the end, and gives what is stored byte for byte."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import anyio

from noeta import Agent, Host
from noeta.testing import ScriptedProvider


def test_a_record_is_a_line_with_seq_time_kind_plugin_and_a_summary(noeta: Any, office: Any) -> None:
    done = noeta("log", office.ended)
    lines = done.out.splitlines()
    assert [int(line.split()[0]) for line in lines] == [*range(1, len(lines) + 1)]
    assert all((line[7:11].isdigit() and line[15] == ":") or line[11] == "-" for line in lines)
    gated = next(line for line in lines if " gated " in line)
    assert "sites says deny (This site is not for us.)" in gated
    assert gated.endswith("sites decides")
    assert any(" tally.counted " in line and "[tally]" in line for line in lines)
    assert any("Look at both." in line for line in lines)
    assert lines[-1].endswith("done Here it is: done.")
    assert (done.code, done.err) == (0, "")


def test_nothing_in_it_moves_a_terminal(noeta: Any, office: Any) -> None:
    out = noeta("log", office.ended).out + noeta("show", office.ended).out
    assert "a red page" in out
    assert "Here it is: done." in out
    assert not {*out} & {"\x1b", "\x07", "\x9b"}


def test_json_is_the_whole_record(noeta: Any, office: Any) -> None:
    records = [json.loads(line) for line in noeta("log", office.ended, "--json").out.splitlines()]
    assert [record["seq"] for record in records] == [*range(1, len(records) + 1)]
    reply = next(record for record in records if record["kind"] == "model_replied")
    assert reply["message"]["content"][0]["text"] == "Looking."
    assert [use["name"] for use in reply["data"]["calls"]] == ["fetch", "fetch"]


def test_raw_is_what_is_stored(noeta: Any, office: Any) -> None:
    from noeta_sqlite import SqliteReader

    stored = [line.data.decode() for line in SqliteReader(office.db).read(office.ended)]
    assert noeta("log", office.ended, "--raw").out.splitlines() == stored


def test_raw_on_a_terminal_moves_it_no_more_than_the_rest(noeta: Any, office: Any, monkeypatch: Any) -> None:
    raw = noeta("log", office.ended, "--raw").out
    monkeypatch.setattr("noeta_cli.log.is_terminal", lambda: True)
    assert noeta("log", office.ended, "--raw").out == raw.replace("\x9b2J", "") != raw


def test_a_task_that_goes_on_from_another_has_its_records_first(noeta: Any, office: Any) -> None:
    base = noeta("log", office.idle, "--raw").out
    fork = noeta("log", office.fork, "--raw").out
    assert fork.startswith(base)
    assert len(fork.splitlines()) == len(base.splitlines()) + 1


def test_records_are_chosen_by_seq_kind_and_plugin(noeta: Any, office: Any) -> None:
    def kinds(*words: str) -> list[str]:
        found = [json.loads(line) for line in noeta("log", office.ended, "--json", *words).out.splitlines()]
        return [record["kind"] for record in found]

    every = kinds()
    assert kinds("--after", "3") == every[3:]
    assert kinds("--kind", "gated") == ["gated"]
    assert kinds("--kind", "core.gated", "--kind", "tally.counted") == [
        kind for kind in every if kind in {"gated", "counted"}
    ]
    assert {*kinds("--by", "tally")} == {"counted"}


def test_a_kind_that_is_none_is_told(noeta: Any, office: Any) -> None:
    done = noeta("log", office.ended, "--kind", "gatde")
    assert done == (0, "", "noeta: no record here is of kind 'gatde' (did you mean 'gated'?).\n")
    assert noeta("log", office.ended, "--kind", "compacted").err == "noeta: no record matches.\n"
    assert noeta("log", office.ended, "--after", "99").err == "noeta: there is no such record.\n"


def test_following_goes_on_until_the_task_ends(office: Any, process: Any, tmp_path: Path) -> None:
    url, agent = f"sqlite:{tmp_path / 'n.db'}", Agent("clerk", model="test:x")

    async def begin() -> str:
        async with Host([agent], store=url, works=False) as host:
            return await host.start("clerk")

    async def end(task: str) -> None:
        async with Host([agent], store=url, providers={"test": ScriptedProvider([])}) as host:
            await host.cancel(task)
            await host.wait(task)

    task = anyio.run(begin)
    follower = process("log", task, "--follow", store=url)
    assert "task_created" in follower.stdout.readline()
    assert follower.poll() is None
    anyio.run(end, task)
    rest, said = follower.communicate(timeout=60)
    assert rest.splitlines()[-1].endswith("cancelled")
    assert (follower.returncode, said) == (0, "")


def test_an_interrupt_ends_following(office: Any, process: Any) -> None:
    follower = process("log", office.idle, "--follow")
    follower.stdout.readline()
    follower.send_signal(signal.SIGINT)
    _, said = follower.communicate(timeout=60)
    assert follower.returncode == 130
    assert "Traceback" not in said


def test_a_closed_pipe_ends_quietly(office: Any, process: Any) -> None:
    started = process("log", office.idle, "--json")
    started.stdout.close()
    assert started.stderr.read() == ""
    assert started.wait(timeout=60) == 1
