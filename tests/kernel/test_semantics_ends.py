"""What is written together, whom it is told, and what an erasure leaves: points 1 to 4, 8, 12 and 24."""

from __future__ import annotations

import pytest

from noeta.core.extension import Extension
from noeta.core.items import Erase, Post, encode_body
from noeta.core.messages import decode_message
from noeta.core.records import Recorded, TaskCreated
from noeta.core.view import TaskView
from noeta.host.birth import new_task
from noeta.host.messages import GONE
from noeta.testing.crash import check_crashes
from noeta.testing.harness import Harness

pytestmark = pytest.mark.anyio


class Listens(Extension):
    """Is told of every record, and does nothing."""

    name = "listens"

    async def on_event(self, view: TaskView, recorded: Recorded) -> None:
        pass


class Spawns(Extension):
    name = "spawns"

    async def on_start(self, view: TaskView) -> None:
        if not view.state.parent:
            view.spawn("agent", "part", key="only")


async def test_the_word_to_the_parent_is_in_the_append_of_the_end_so_that_no_death_parts_them() -> None:
    script = {"go": ["Well."], "part": ["Done."]}
    await check_crashes(lambda outside: [Listens(), Spawns()], script, "go")


async def test_a_child_spawned_again_under_its_key_after_its_end_is_the_same_one() -> None:
    bench = Harness([Spawns()], ["Well.", "Done.", "Yes."])
    task = await bench.start("go")
    await bench.run()
    await bench.post(task, "more")
    await bench.run()
    assert len(await bench.log(task, "child_spawned")) == 1
    assert (await bench.state(task)).live_children == []


async def test_a_task_that_has_ended_gets_no_more_children() -> None:
    class Late(Extension):
        name = "late"

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.kind == "task_ended":
                view.spawn("agent", "too late")

    bench = Harness([Late()], ["Done."])
    task = await bench.start("go", one_shot=True)
    await bench.run()
    assert await bench.children(task) == []
    assert (await bench.row(task)).status == "ended"


async def test_events_that_a_stop_cut_off_are_told_before_the_task_rests() -> None:
    class Stops(Extension):
        """Has the turn stopped while it is told of the first message."""

        name = "stops"

        def __init__(self) -> None:
            self.told: list[str] = []

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.kind == "claimed" and not self.told:
                self.told.append("halted")
                await bench.interrupt(task)
                runner.halt()
                await anyio.lowlevel.checkpoint()
            self.told.append(recorded.kind)

    import anyio

    stops = Stops()
    bench = Harness([stops], ["Hello."])
    task = await bench.start("hi")
    [claim] = await bench.store.claim(bench.worker)
    runner = await bench.take_up(claim)
    await runner.run()
    assert [kind for kind in stops.told if kind == "claimed"] == ["claimed"]
    assert "received" in stops.told


@pytest.mark.parametrize("late", [False, True], ids=["first", "only-one"])
async def test_a_message_that_is_erased_leaves_a_request_that_a_model_takes(late: bool) -> None:
    bench = Harness(script=["Hello."] if late else ["Hello.", "Fine."])
    task = await bench.start("my secret")
    if not late:
        await bench.run()
    await bench.erase(task, 3)
    if not late:
        await bench.post(task, "how are you?")
    await bench.run()
    gone = decode_message(GONE).text
    said = [message.text for message in bench.provider.requests[-1].messages]
    assert said == ([gone] if late else [gone, "Hello.", "how are you?"])
    bench.provider.assert_done()


async def test_the_last_message_erased_before_its_reply_leaves_a_request_that_a_model_takes() -> None:
    bench = Harness(script=["Hello.", "Fine."])
    task = await bench.start("hi")
    await bench.run()
    last = (await bench.row(task)).last_seq
    await bench.post(task, "my secret")
    await bench.erase(task, last + 2)
    await bench.run()
    said = [message.text for message in bench.provider.requests[-1].messages]
    assert said == ["hi", "Hello.", decode_message(GONE).text]


async def fork(bench: Harness, task: str, through: int) -> str:
    name = bench.ids.new()
    made = TaskCreated(task=name, agent="agent", root=name, history_from=task, history_through=through)
    await bench.store.create(new_task(made, at=0.0, prompt="and here?"))
    return name


async def test_an_erasure_reaches_the_forks_and_theirs_and_leaves_their_own_records_alone() -> None:
    bench = Harness(script=["Hello."] * 9)
    task = await bench.start("my secret")
    await bench.run()
    first = await fork(bench, task, (await bench.row(task)).last_seq)
    await bench.run()
    second = await fork(bench, first, (await bench.row(first)).last_seq)
    await bench.run()
    await bench.erase(task, 3)
    await bench.run()
    for name in (first, second):
        await bench.post(name, "once more")
        await bench.run()
        assert not any("secret" in message.text for message in bench.provider.requests[-1].messages)
        assert any("and here?" in message.text for message in bench.provider.requests[-1].messages)


async def test_a_fork_and_its_forks_are_told_who_erased_what() -> None:
    class Forgets(Extension):
        name = "forgets"

        async def on_event(self, view: TaskView, recorded: Recorded) -> None:
            if recorded.message and recorded.message.text == "forget my name":
                view.erase_messages([named])

    bench = Harness([Forgets()])
    bench.provider._respond = lambda request: "Hello."
    task = await bench.start("my secret")
    for text in ("my address", "my name"):
        await bench.run()
        await bench.post(task, text)
    await bench.run()
    secret, address, named = [item.seq for item in (await bench.state(task)).conversation][::2]
    first = await fork(bench, task, (await bench.row(task)).last_seq)
    await bench.run()
    second = await fork(bench, first, (await bench.row(first)).last_seq)
    await bench.run()
    for seq, by in ((secret, "ann"), (address, "bob")):
        # Both are there when the task's worker comes to them.
        await bench.store.post(
            Post(task=task, key=by, kind="erase", body=encode_body(Erase(seqs=[seq], by=by)))
        )
    await bench.post(task, "forget my name")
    await bench.run()
    for name in (first, second):
        told = {tuple(record.data.seqs): record.data.by for record in await bench.log(name, "erased")}
        assert told == {(secret,): "ann", (address,): "bob", (named,): "forgets"}


async def test_what_is_no_message_is_not_erased() -> None:
    bench = Harness(script=["Hello."])
    task = await bench.start("hi")
    await bench.run()
    before = [line.data for line in await bench.store.read(task)]
    await bench.erase(task, *range(1, len(before) + 1))
    await bench.run()
    after = [line.data for line in await bench.store.read(task)][: len(before)]
    assert [old == new for old, new in zip(before, after, strict=True)].count(False) == 1
    assert (await bench.state(task)).task == task
