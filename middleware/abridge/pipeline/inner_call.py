"""A request that Abridge sends by itself, and whose answer it takes event by event, or keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod

from starlette.types import Message

from abridge.apis.sse import DONE, FrameDecoder, frame_data
from abridge.errors import EventTooLarge
from abridge.http.asgi import EVENT_STREAM, AppReceive, media_type, with_header_list
from abridge.waiting import Flag

EVENT_FACTOR = 2
"""An event that a client gets may be so many times as large as one from upstream: it may have a
summary as well."""


class InnerCall(ABC):
    """The client's end of one request: gives it to the application, and takes its answer.

    An event, or an answer that is no stream, has at most `limit` bytes.
    """

    def __init__(self, body: bytes, limit: int) -> None:
        self.receive = AppReceive(body)
        self._limit = limit
        self._decoder = FrameDecoder(limit)
        self._left = False
        self._start: Message = {"status": 500}
        self._is_stream = False
        self._whole = bytearray()

    @abstractmethod
    async def take_event(self, frame: bytes, payload: bytes) -> None:
        """Take an event of a stream, by its frame and the JSON in it."""

    @abstractmethod
    async def take_whole(self, start: Message, body: bytes) -> None:
        """Take an answer that is no stream: an error, or a whole response."""

    def leave(self) -> None:
        """Tell the application that the client has left."""
        self._left = True
        self.receive.leave()

    async def send(self, message: Message) -> None:
        """Take a message of the answer. Raises OSError if the client has left."""
        if self._left:
            raise OSError("the client has left")
        if message["type"] == "http.response.start":
            self._start = message
            is_stream = media_type(message.get("headers") or ()) == EVENT_STREAM
            self._is_stream = 200 <= message["status"] < 300 and is_stream
        elif message["type"] == "http.response.body":
            await self._take(message.get("body", b""), more=message.get("more_body", False))

    async def _take(self, data: bytes, *, more: bool) -> None:
        if not self._is_stream:
            self._whole += data[: self._limit - len(self._whole)]
            if not more:
                await self.take_whole(self._start, bytes(self._whole))
        else:
            frames = [*(self._decoder.feed(data) if data else ())]
            for frame in frames if more else [*frames, *self._decoder.end()]:
                payload = frame_data(frame)
                if payload is not None and not payload.startswith(DONE):
                    await self.take_event(frame, payload)
        if not more:
            self.receive.end()


class CapturedAnswer:
    """Keeps an answer, of so many bytes at most. `start` is None until it has begun, and `ended` is
    set once all of it is there."""

    def __init__(self, limit: int) -> None:
        self._limit = self._room = limit
        self.start: Message | None = None
        self.body = bytearray()
        self.ended = Flag()

    async def take(self, message: Message) -> None:
        """Take the application's next message. Raises EventTooLarge."""
        if message["type"] == "http.response.start":
            self.start = with_header_list(message)
        elif message["type"] == "http.response.body":
            self._room -= len(piece := message.get("body", b""))
            if self._room < 0:
                raise EventTooLarge(self._limit)
            self.body += piece
            if not message.get("more_body", False):
                self.ended.set()
