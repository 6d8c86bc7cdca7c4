"""The events of a background response in the store, from any of which on they can be streamed.

They are kept as their client is shown them, in chunks, since to write each by itself would take a
round trip an event, and all in one value would be written again and again. An index says with which
event each chunk begins. The last chunk is written anew until it is full.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Protocol

from abridge.apis.frames import encode_event, parse_frame
from abridge.apis.json import dumps, loads
from abridge.apis.sse import FrameDecoder
from abridge.core.conversation import Json
from abridge.stored_responses.repository import (
    RecordName,
    ResponseRepository,
    store_unavailable,
)
from abridge.waiting import Flag
from abridge.work import Work

CHUNK_BYTES = 64 << 10
"""Bytes from which a chunk is full."""

LOST_LOOKS, LOOK_SECONDS = 60, 0.5
"""Looks in a row that do not find the events before their stream is given up, and the seconds
between two."""


@dataclass(slots=True, frozen=True)
class EventIndex:
    """What is stored of a response's events. Field names are the stored JSON keys."""

    starts: list[int]  # the number of the first event of each chunk
    last: int  # the number of the last event
    ended: bool  # no more will come
    hides_raw: bool  # raw reasoning was hidden in them

    def chunks_after(self, number: int) -> range:
        """Return the chunks in which the events after this number are."""
        if number >= self.last:
            return range(0)
        return range(max(0, bisect_right(self.starts, number + 1) - 1), len(self.starts))


class EventSource(Protocol):
    """Where the events of a response are read."""

    async def index(self) -> EventIndex | None:
        """Return what there is; None if it cannot be found."""

    async def chunk(self, number: int) -> bytes | None: ...

    async def wait(self, number: int) -> None:
        """Wait until there may be more than the event with this number."""


class EventLog:
    """The events of a response that this process makes."""

    def __init__(
        self, repository: ResponseRepository, response_id: str, *, hides_raw: bool
    ) -> None:
        self.size = 0  # bytes of all events
        self.last = -1  # the number of the last one
        self.has_ended = False
        self._stored = StoredEvents(repository, response_id)
        self._hides_raw = hides_raw
        self._starts: list[int] = []
        self._unsaved: dict[int, bytearray] = {}  # chunks, with the one that is open
        self._saved = (-1, False)  # the last event that was saved, and whether as the end
        self._changed = Flag()

    def append(self, number: int, frame: bytes, *, is_end: bool = False) -> None:
        if not self._unsaved or len(self._unsaved[len(self._starts) - 1]) >= CHUNK_BYTES:
            self._unsaved[len(self._starts)] = bytearray()
            self._starts.append(number)
        self._unsaved[len(self._starts) - 1] += frame
        self.size += len(frame)
        self.last, self.has_ended = number, is_end
        self._changed.set()
        self._changed.clear()

    async def save(self) -> bool:
        """Store what is not stored yet; return whether that worked. What could not be stored is
        kept for the next time."""
        if self._saved == (self.last, self.has_ended):
            return True
        index = self._index()
        chunks = {number: bytes(chunk) for number, chunk in self._unsaved.items()}
        if not await self._stored.put(index, chunks):
            return False
        self._saved = (index.last, index.ended)
        for number in chunks.keys() - {len(index.starts) - 1}:
            del self._unsaved[number]
        return True

    def _index(self) -> EventIndex:
        return EventIndex([*self._starts], self.last, self.has_ended, self._hides_raw)

    async def index(self) -> EventIndex:
        return self._index()

    async def chunk(self, number: int) -> bytes | None:
        unsaved = self._unsaved.get(number)
        return await self._stored.chunk(number) if unsaved is None else bytes(unsaved)

    async def wait(self, number: int) -> None:
        if number >= self.last and not self.has_ended:
            await self._changed.wait()


class StoredEvents:
    """The events of a response as they are stored."""

    def __init__(self, repository: ResponseRepository, response_id: str) -> None:
        self._repository = repository
        self._response_id = response_id

    async def put(self, index: EventIndex, chunks: dict[int, bytes]) -> bool:
        values = {self._chunk_name(number): chunk for number, chunk in chunks.items()}
        return await self._repository.put_values({**values, self._name(): dumps(asdict(index))})

    async def index(self) -> EventIndex | None:
        index, _ = await self.index_and_lease()
        return index

    async def index_and_lease(self) -> tuple[EventIndex | None, bool]:
        """Return the index, and whether a process still makes events."""
        value, lease = await self._repository.get_values(self._name(), ("lease", self._response_id))
        index = None if value is None else EventIndex(**loads(value))
        return index, lease is not None

    async def chunk(self, number: int) -> bytes | None:
        (value,) = await self._repository.get_values(self._chunk_name(number))
        return value

    async def end(self, index: EventIndex, response: Json) -> None:
        """Add the last event of a response whose process has stopped."""
        number = index.last + 1
        frame = last_event(number, response)
        ended = EventIndex([*index.starts, number], number, ended=True, hides_raw=index.hides_raw)
        await self.put(ended, {len(index.starts): frame})

    def _name(self) -> RecordName:
        return "events", self._response_id

    def _chunk_name(self, number: int) -> RecordName:
        return "events", f"{self._response_id}/{number}"


async def events_after(source: EventSource, number: int) -> AsyncIterator[bytes]:
    """Yield the frames of the events after this number, as they come, until the response has ended.
    Raises RequestError if they can no longer be found."""
    lost = 0
    place, read = -1, 0  # the chunk that was read last, and how many bytes of it: it only grows
    while lost < LOST_LOOKS:
        index = await source.index()
        for next_place in index.chunks_after(number) if index is not None else ():
            chunk = await source.chunk(next_place)
            if chunk is None:
                break
            fresh = chunk[read:] if next_place == place else chunk
            place, read = next_place, len(chunk)
            for found, frame in await Work.on(fresh).run(_split, fresh):
                if found > number:
                    number = found
                    yield frame
            await asyncio.sleep(0)  # others have their turn, however fast the client reads
        if index is None or number < index.last:  # not all of it is there
            lost += 1
            await asyncio.sleep(LOOK_SECONDS)
            continue
        lost = 0
        if index.ended:
            return
        await source.wait(number)
    raise store_unavailable("The events can no longer be found.")


def last_event(number: int, response: Json) -> bytes:
    """Return the frame that ends the stream of a response. The API has no event for one that was
    cancelled (openai-openapi, `ResponseStreamEvent`): its status says so."""
    status = response["status"]
    event_type = f"response.{'failed' if status == 'cancelled' else status}"
    return encode_event(event_type, {"sequence_number": number, "response": response})


def _split(chunk: bytes) -> list[tuple[int, bytes]]:
    frames = FrameDecoder(len(chunk)).feed(chunk)
    return [(parse_frame(frame)["sequence_number"], frame) for frame in frames]
