"""The events of a background response, read from the store."""

from __future__ import annotations

from abridge.stored_responses.event_log import EventIndex, events_after
from tests.support.loop_turns import MANY_CALLS, counting_calls
from tests.support.streams import frame

CHUNKS, IN_CHUNK = 40, 400


class Ended:
    """All events of a response that has ended, at hand without waiting."""

    async def index(self) -> EventIndex:
        last = CHUNKS * IN_CHUNK - 1
        return EventIndex(list(range(0, last, IN_CHUNK)), last, ended=True, hides_raw=False)

    async def chunk(self, number: int) -> bytes:
        numbers = range(number * IN_CHUNK, (number + 1) * IN_CHUNK)
        return b"".join(frame({"sequence_number": number}) for number in numbers)

    async def wait(self, number: int) -> None:
        raise AssertionError(number)


async def test_no_turn_of_the_event_loop_is_long_for_a_follower_that_comes_late() -> None:
    with counting_calls() as turns:
        found = [event async for event in events_after(Ended(), IN_CHUNK - 2)]
    assert len(found) == (CHUNKS - 1) * IN_CHUNK + 1
    assert sum(turns) > 2 * MANY_CALLS
    assert max(turns) < MANY_CALLS
