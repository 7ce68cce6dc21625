"""Reading a log as one number line, and following it as it grows."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from noeta.core.codec import Line, encode
from noeta.core.items import Post
from noeta.core.log import Append, NewTask
from noeta.toolkit.errors import UnknownTask
from noeta.toolkit.history import history, tail
from noeta.toolkit.in_memory import InMemoryStore

pytestmark = pytest.mark.anyio


def line(seq: int, kind: str = "noted", extension: str = "x") -> Line:
    return encode(seq, 1.0, extension, kind, None).line


async def grow(store: InMemoryStore, task: str, lines: list[Line], **options: Any) -> None:
    (claim,) = await store.claim("w", task=task)
    id = f"{task}{lines[0].seq}".encode()
    append = Append(expected_seq=lines[0].seq - 1, id=id, lines=lines, release=True, **options)
    await store.append(claim, append)


def task(name: str, lines: list[Line], base: str = "") -> NewTask:
    wake = Post(task=name, key="wake", kind="message", body=b"{}")
    return NewTask(
        task=name, agent="a", root=name, lines=lines, posts=[wake], base=base, through=lines[0].seq - 1
    )


async def seqs(pages: Any) -> list[list[int]]:
    return [[found.seq for found in page] async for page in pages]


@pytest.fixture
async def store() -> InMemoryStore:
    """A task ``a`` of seqs 1 to 6, ``b`` that continues it from 4, ``c`` that continues ``b`` from 6."""
    store = InMemoryStore()
    await store.create(task("a", [line(seq) for seq in range(1, 7)]))
    await store.create(task("b", [line(seq, "of_b") for seq in range(5, 9)], base="a"))
    await store.create(task("c", [line(seq, "of_c", "y") for seq in range(7, 9)], base="b"))
    return store


async def test_history_runs_through_the_tasks_that_a_task_continues(store: InMemoryStore) -> None:
    assert await seqs(history(store, "c")) == [[1, 2, 3, 4], [5, 6], [7, 8]]
    names = [found.name async for page in history(store, "c") for found in page]
    assert names == ["x.noted"] * 4 + ["x.of_b"] * 2 + ["y.of_c"] * 2


async def test_a_task_may_begin_further_back_than_the_one_it_continues(store: InMemoryStore) -> None:
    await store.create(task("d", [line(seq) for seq in range(4, 6)], base="b"))
    assert await seqs(history(store, "d")) == [[1, 2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("after", "through", "found"),
    [
        (3, None, [[4], [5, 6], [7, 8]]),
        (4, None, [[5, 6], [7, 8]]),
        (7, None, [[8]]),
        (8, None, []),
        (0, 5, [[1, 2, 3, 4], [5]]),
        (2, 3, [[3]]),
        (5, 7, [[6], [7]]),
    ],
)
async def test_history_reads_any_part_of_the_line(
    store: InMemoryStore, after: int, through: int | None, found: list[list[int]]
) -> None:
    assert await seqs(history(store, "c", after, through=through)) == found


async def test_history_follows_a_chain_of_any_length() -> None:
    store = InMemoryStore()
    await store.create(task("t1", [line(1)]))
    for seq in range(2, 1_501):
        await store.create(task(f"t{seq}", [line(seq)], base=f"t{seq - 1}"))
    assert await seqs(history(store, "t1500", 1_490)) == [[seq] for seq in range(1_491, 1_501)]
    assert len(await seqs(history(store, "t1500"))) == 1_500


async def test_history_comes_in_pages_and_by_name(store: InMemoryStore) -> None:
    assert await seqs(history(store, "c", page=3)) == [[1, 2, 3], [4], [5, 6], [7, 8]]
    assert await seqs(history(store, "c", only=["y"])) == [[7, 8]]
    assert await seqs(history(store, "c", only=["x.of_b", "y.none"])) == [[5, 6]]
    with pytest.raises(UnknownTask, match="'none'"):
        await seqs(history(store, "none"))


async def test_a_tail_gives_each_line_once_as_it_comes_and_ends_with_the_task(store: InMemoryStore) -> None:
    found: list[int] = []
    caught_up = anyio.Event()

    async def follow() -> None:
        async for one in tail(store, "c", 7):
            found.append(one.seq)
            caught_up.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        with anyio.fail_after(10):
            await caught_up.wait()
        await grow(store, "c", [line(9), line(10)])
        (item,) = await store.inbox("c")
        await grow(store, "c", [line(11)], consume=[item.n], status="ended")
    assert found == [8, 9, 10, 11]


async def test_a_tail_of_an_unknown_task_says_so() -> None:
    with pytest.raises(UnknownTask):
        async for _ in tail(InMemoryStore(), "none"):
            pass


async def test_the_first_record_of_a_task_may_be_any_bytes() -> None:
    store = InMemoryStore()
    await store.create(task("odd", [Line(1, b"\xff\x00")]))
    assert await store.read("odd") == [Line(1, b"\xff\x00")]
