"""Test the flag that tasks wait for."""

from __future__ import annotations

import asyncio

import pytest

from abridge.waiting import Flag


async def started(*flags: Flag) -> list[asyncio.Task[None]]:
    """Return tasks that wait for the flags."""

    async def wait(flag: Flag) -> None:
        await flag.wait()

    tasks = [asyncio.create_task(wait(flag)) for flag in flags]
    await asyncio.sleep(0)
    return tasks


async def test_a_flag_that_is_set_is_not_waited_for() -> None:
    flag = Flag(is_set=True)
    assert flag.is_set()
    await flag.wait()


async def test_setting_it_wakes_all_that_wait() -> None:
    flag = Flag()
    tasks = await started(flag, flag, flag)
    assert not any(task.done() for task in tasks)
    flag.set()
    flag.set()
    await asyncio.gather(*tasks)


async def test_whoever_was_woken_goes_on_although_it_was_cleared_since() -> None:
    flag = Flag()
    tasks = await started(flag)
    flag.set()
    flag.clear()
    await asyncio.gather(*tasks)
    assert not flag.is_set()


async def test_who_waits_after_it_was_cleared_waits_for_the_next_time() -> None:
    flag = Flag(is_set=True)
    flag.clear()
    [task] = await started(flag)
    assert not task.done()
    flag.set()
    await task


async def test_a_task_that_is_cancelled_leaves_the_others_waiting() -> None:
    flag = Flag()
    first, second = await started(flag, flag)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    flag.set()
    await second


async def test_a_task_that_is_cancelled_as_it_is_woken_stays_cancelled() -> None:
    flag = Flag()
    first, second = await started(flag, flag)
    first.cancel()
    flag.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second


async def test_what_no_longer_waits_is_forgotten() -> None:
    flag = Flag()
    for _ in range(3):
        [task] = await started(flag)
        task.cancel()
        await asyncio.wait([task])
    assert len(flag._waiting) == 1
