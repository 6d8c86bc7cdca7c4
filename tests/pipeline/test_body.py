"""Test what buffered bodies may hold, and how long they may take."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive

from abridge.config.tables import UPLOAD_GRACE, LimitSettings
from abridge.errors import RequestError
from abridge.pipeline.body import BufferedBody, MemoryBudget, buffer_body
from tests.support.clock import Clock, clock

__all__ = ["clock"]

SCOPE = {"type": "http", "headers": []}


def reserve_nothing(size: int) -> None:
    pass


def receive_pieces(pieces: list[bytes]) -> Receive:
    """Return a `receive` that yields the pieces, then waits for ever."""

    async def receive() -> Message:
        if not pieces:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": pieces.pop(0), "more_body": True}

    return receive


def refusal_of(budget: MemoryBudget, client: str, *sizes: int) -> RequestError | None:
    try:
        with budget.reserving(client) as reserve:
            for size in sizes:
                reserve(size)
    except RequestError as error:
        return error
    return None


class TestBudget:
    def test_one_client_leaves_half_to_others(self) -> None:
        budget = MemoryBudget(LimitSettings(body=100, bodies=1000))
        with budget.reserving("a") as reserve:
            reserve(400)
            reserve(100)
            refusal = refusal_of(budget, "a", 1)
            assert refusal is not None
            assert (refusal.status, refusal.code) == (503, "overloaded")
            assert refusal_of(budget, "b", 500) is None
            assert refusal_of(budget, "b", 501) is not None
        assert refusal_of(budget, "a", 500) is None

    def test_one_client_gets_at_least_one_body(self) -> None:
        budget = MemoryBudget(LimitSettings(body=900, bodies=1000))
        assert refusal_of(budget, "a", 900) is None
        assert refusal_of(budget, "a", 901) is not None

    def test_one_client_gets_all_where_the_share_is_all(self) -> None:
        budget = MemoryBudget(LimitSettings(body=100, bodies=1000, client_share=1))
        assert refusal_of(budget, "a", 1000) is None

    def test_only_what_came_counts(self) -> None:
        budget = MemoryBudget(LimitSettings(body=100, bodies=100))
        with budget.reserving("a") as reserve:
            reserve(1)
            assert refusal_of(budget, "b", 99) is None


class TestPace:
    async def begin(self, pieces: list[bytes], **limits: float) -> asyncio.Task[BufferedBody]:
        receive = receive_pieces(pieces)
        buffering = buffer_body(SCOPE, receive, LimitSettings(**limits), reserve_nothing)
        task = asyncio.create_task(buffering)
        await asyncio.sleep(0)
        return task

    async def test_a_body_that_stops_is_refused(self, clock: Clock) -> None:
        pieces = [b"x" * 1000]
        task = await self.begin(pieces, upload_rate=100)
        await clock.advance(UPLOAD_GRACE + 9)
        assert not task.done()
        await clock.advance(2)
        with pytest.raises(RequestError) as caught:
            await task
        assert (caught.value.status, caught.value.code) == (408, "request_timeout")

    async def test_a_body_without_an_end_is_refused_at_its_deadline(self, clock: Clock) -> None:
        task = await self.begin([b"x" * 1000] * 3, upload_rate=1, upload=100)
        await clock.advance(99)
        assert not task.done()
        await clock.advance(2)
        with pytest.raises(RequestError):
            await task

    async def test_a_body_that_has_not_begun_holds_nothing_and_is_waited_for(
        self, clock: Clock
    ) -> None:
        task = await self.begin([])
        await clock.advance(10_000)
        assert not task.done()
        task.cancel()


@pytest.mark.parametrize(
    ("received", "seconds"), [(0, 30), (1000, 31), (100_000, 130), (10**9, 300)]
)
def test_the_time_that_a_body_may_take(received: int, seconds: float) -> None:
    assert LimitSettings(upload_rate=1000).upload_seconds(received) == seconds


async def test_of_an_upload_that_broke_off_the_application_gets_what_came_and_the_end() -> None:
    """What came may be a whole request in itself."""
    came: list[Message] = [
        {"type": "http.request", "body": b'{"model": "m"}', "more_body": True},
        {"type": "http.disconnect"},
    ]
    messages = iter(came)

    async def receive() -> Message:
        return next(messages)

    buffered = await buffer_body(SCOPE, receive, LimitSettings(), reserve_nothing)
    assert buffered.client_left
    assert buffered.data is None
    assert [await buffered() for _ in came] == came
