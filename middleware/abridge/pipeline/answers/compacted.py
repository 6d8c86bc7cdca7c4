"""Show a compaction first in the response for which it was made.

A stream gets its events after those that begin the response, and all that follow are counted on.
The response itself is written, and stored, as if there were none: it is in the input of what is
stored, where it has the same meaning.
"""

from __future__ import annotations

from starlette.types import Message, Send

from abridge.apis.json import as_object, dumps, loads_exact, objects, parse_object
from abridge.apis.responses.compaction import encode_events, item_events, write_usage
from abridge.apis.sse import FrameDecoder, encode_frame, frame_data
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.usage import Tokens
from abridge.http.asgi import BODY_HEADERS, EVENT_STREAM, drop_headers, media_type, with_header_list
from abridge.work import Work

BEGINNING = ("response.created", "response.queued", "response.in_progress")
"""The events before the first item."""

USAGE_FIELD = "compaction"
"""The field of a usage that says what the compaction took."""


class ShownCompaction:
    """A client's `send` that puts a compaction before the items of a response. What the compaction
    took is added to the usage; to its totals, too, if it is to be `merged`."""

    def __init__(
        self, send: Send, item: Json, tokens: Tokens | None, limit: int, *, merged: bool
    ) -> None:
        self._send = send
        self._item = item
        self._tokens = (tokens or Tokens()).with_total()
        self._limit = limit
        self._merged = merged
        self._frames: FrameDecoder | None = None
        self._whole: bytearray | None = None
        self._is_shown = False
        self._next_number = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(with_header_list(message))
        elif message["type"] != "http.response.body":
            await self._send(message)
        elif self._frames is not None:
            await self._stream(self._frames, message)
        elif self._whole is not None:
            await self._take_whole(self._whole, message)
        else:
            await self._send(message)

    async def _begin(self, start: Message) -> None:
        kind = media_type(start["headers"])
        if start["status"] == 200 and kind == EVENT_STREAM:
            self._frames = FrameDecoder(self._limit)
            await self._send({**start, "headers": drop_headers(start["headers"], BODY_HEADERS)})
        elif start["status"] == 200 and kind == b"application/json":
            self._whole, self._start = bytearray(), start
        else:
            await self._send(start)

    async def _stream(self, frames: FrameDecoder, message: Message) -> None:
        body, more = message.get("body", b""), message.get("more_body", False)
        complete = [*frames.feed(body), *([] if more else frames.end())]
        shown = await Work.on(body).run(lambda: b"".join(map(self._show, complete)))
        if shown or not more:
            await self._send({**message, "body": shown, "more_body": more})

    def _show(self, frame: bytes) -> bytes:
        """Return a frame as it is sent, with those of the compaction before that of the first
        item."""
        event = parse_object(frame_data(frame) or b"", loads_exact)
        if event is None:
            return frame
        kind, before = str(event.get("type")), b""
        if kind not in BEGINNING and not self._is_shown:
            self._is_shown = True
            written = encode_events(item_events(self._item), self._next_number)
            self._next_number += len(written)
            before = b"".join(written)
        event["sequence_number"] = self._next_number
        self._next_number += 1
        if isinstance(index := event.get("output_index"), int):
            event["output_index"] = index + 1
        if self._is_shown and isinstance(response := event.get("response"), dict):
            event["response"] = self._show_response(response)
        return before + encode_frame(dumps(event), kind)

    async def _take_whole(self, whole: bytearray, message: Message) -> None:
        whole += message.get("body", b"")
        if message.get("more_body", False):
            return
        response = await Work.on(whole).run(parse_object, bytes(whole), loads_exact)
        data = bytes(whole) if response is None else dumps(self._show_response(response))
        length = (b"content-length", str(len(data)).encode())
        headers = [*drop_headers(self._start["headers"], BODY_HEADERS), length]
        headers.append((b"content-type", b"application/json"))
        await self._send({**self._start, "headers": headers})
        await self._send({**message, "body": data})

    def _show_response(self, response: Json) -> Json:
        shown = {**response, "output": [self._item, *objects(response.get("output"))]}
        if usage := as_object(response.get("usage")):
            shown["usage"] = {**usage, USAGE_FIELD: write_usage(self._tokens)}
            if self._merged:
                RESPONSES_USAGE.add_to_totals(shown["usage"], self._tokens)
        return shown
