"""Long work, and what the event loop has to do with it."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from abridge.work import CLIENT, LIGHT_BYTES, LIGHT_OBJECTS, Work, in_turns

SHORT, LONG = b'{"a": 1}', b"a" * (LIGHT_BYTES + 1)
MANY_OBJECTS = b"{}," * (LIGHT_OBJECTS + 1)


def current_thread(*_: object, **__: object) -> str:
    return threading.current_thread().name


@pytest.mark.parametrize(
    ("data", "is_heavy"), [(SHORT, False), (b"", False), (LONG, True), (MANY_OBJECTS, True)]
)
async def test_work_is_heavy_by_its_size_or_by_its_objects(data: bytes, *, is_heavy: bool) -> None:
    work = Work.on(data)
    assert work.is_heavy is is_heavy
    is_beside = await work.run(current_thread, 1, two=2) != current_thread()
    assert is_beside is is_heavy


async def test_work_that_grows_becomes_heavy_and_stays_so() -> None:
    work = Work.on(SHORT)
    work.add(LONG)
    work.add(SHORT)
    assert work.is_heavy


async def test_the_event_loop_goes_on_beside_heavy_work() -> None:
    finish, turns = threading.Event(), 0
    work = asyncio.create_task(Work(heavy=True).run(finish.wait, 20))
    while turns < 100:
        await asyncio.sleep(0)
        turns += 1
    assert not work.done()
    finish.set()
    assert await work


async def test_clients_take_turns() -> None:
    begun, finish = threading.Event(), threading.Event()
    done: list[str] = []

    async def work(client: str, name: str) -> None:
        CLIENT.set(client)
        await Work(heavy=True).run(done.append, name)

    def wait() -> None:
        begun.set()
        finish.wait(20)

    first = asyncio.create_task(Work(heavy=True).run(wait))
    await asyncio.to_thread(begun.wait, 20)
    many = [asyncio.create_task(work("many", f"many {n}")) for n in range(4)]
    others = [asyncio.create_task(work(name, name)) for name in ("one", "two")]
    await asyncio.sleep(0)
    finish.set()
    await asyncio.gather(first, *many, *others)
    assert done == ["many 0", "one", "two", "many 1", "many 2", "many 3"]


async def test_work_that_nobody_waits_for_is_not_begun_and_holds_up_nobody() -> None:
    finish, done = threading.Event(), list[str]()
    first = asyncio.create_task(Work(heavy=True).run(finish.wait, 20))
    left = asyncio.create_task(Work(heavy=True).run(done.append, "left"))
    last = asyncio.create_task(Work(heavy=True).run(done.append, "last"))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    finish.set()
    await asyncio.gather(first, last)
    assert left.cancelled()
    assert done == ["last"]


@pytest.mark.parametrize("is_on", [True, False])
async def test_garbage_is_not_collected_during_heavy_work_and_then_as_before(
    *, is_on: bool
) -> None:
    def fail() -> None:
        raise ValueError(gc.isenabled())

    if not is_on:
        gc.disable()
    try:
        with pytest.raises(ValueError, match="False"):
            await Work(heavy=True).run(fail)
        assert gc.isenabled() is is_on
    finally:
        gc.enable()


async def test_many_things_are_looked_up_in_turns_with_others() -> None:
    other_turns = 0

    async def take_turns() -> None:
        nonlocal other_turns
        while True:
            other_turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(take_turns())
    seen = [(batch, other_turns) async for batch in in_turns(range(5), 2)]
    other.cancel()
    assert seen == [([0, 1], 0), ([2, 3], 1), ([4], 2)]
    assert [batch async for batch in in_turns((), 2)] == []
