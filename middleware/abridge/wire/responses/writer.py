"""Write the Responses API: events as a stream, or into a whole response.

An upstream event goes out in the bytes it came in, with only its number spliced in. The writer owns
`sequence_number`, dense from 0; ids and `output_index` stay as the reader has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import starmap

from abridge.turn.events import (
    Began,
    Closed,
    Ended,
    Event,
    Native,
    Opened,
    PartClosed,
    PartOpened,
    PartSaid,
    Raw,
)
from abridge.wire import sse
from abridge.wire.codec import Json, dumps, loads_exactly, packed, read_object, string
from abridge.wire.display import Display
from abridge.wire.problem import problem
from abridge.wire.profiles import Profile
from abridge.wire.responses.frames import exactly, frame_of
from abridge.wire.responses.items import conceal, dress, without_raw
from abridge.wire.responses.response import failed, final, snapshot
from abridge.wire.responses.sealing import Blobs
from abridge.wire.responses.spoken import spoken

_KEY = b'"sequence_number"'
_RAW = b'"reasoning_text"'
_NUMBER = re.compile(_KEY + rb"\s*:\s*(\d+)")
_PART = re.compile(rb'"summary_index"(\s*:\s*)\d+')


class ResponsesWriter:
    """Writes one response. See `abridge.apis.api.Writer`."""

    def __init__(self, _profile: Profile, display: Display) -> None:
        self._display = display
        self._next = 0
        self._numbered: bool | None = None  # None until the first event shows it
        self._response: bytes | None = None
        self._ids: dict[int, str] = {}  # of reasoning items, by output index
        self._blobs = Blobs(display.seal)
        self.shown: Json | None = None

    def write(self, event: Event) -> bytes:
        match event:
            case Raw() if not self._display.raw:
                return b""
            case Native():
                return self._native(event)
            case PartOpened() | PartSaid() | PartClosed():
                return b"".join(self._part(event))
            case Opened():
                return self._opened(event)
            case Closed():
                return self._closed(event)
            case Began():
                return self._began(event)
            case Ended():
                return self._ended(event)
        return self._number(event.frame) if event.frame else b""

    def beat(self) -> bytes:
        """Repeat the response so far, which every client accepts and Codex counts as activity."""
        if self._response is None:
            return b""
        return self._event("response.in_progress", {"response": read_object(self._response)})

    def note(self, event: Event) -> None:
        """Do nothing: the end brings the whole body."""

    def whole(self, end: Ended) -> bytes:
        body = end.frame or b""
        response = read_object(body, loads_exactly) if end.ok else None
        if response is None:
            return body
        response = self.shown = final(response, end, {}, self._display, self._blobs)
        if end.trouble is None:
            return dumps(response)
        refusal = problem(end.trouble.message, code=end.trouble.code)
        refusal["error"]["response"] = failed(response, end.trouble)
        return dumps(refusal)

    # Frames

    def _number(self, frame: bytes) -> bytes:
        """Give a frame the next number, spliced in where it can only be the event's own."""
        plain = b'"response"' not in frame and (self._display.raw or _RAW not in frame)
        if self._numbered and plain and frame.count(_KEY) == 1:
            found = _NUMBER.search(frame)
            if found is not None:
                number, self._next = self._next, self._next + 1
                return frame[: found.start(1)] + b"%d" % number + frame[found.end(1) :]
        data = sse.data(frame)
        if data is None or not data.startswith(b"{"):
            return frame
        event = read_object(data, loads_exactly)
        return frame if event is None else self._read(event, frame)

    def _read(self, event: Json, frame: bytes) -> bytes:
        """Write a frame that had to be parsed. Upstream numbers all of its events or none."""
        number = event.get("sequence_number")
        if self._numbered is None:
            self._numbered = isinstance(number, int)
        shown = self._veiled(event)
        if shown != event or number != self._next:
            return self._rewritten(shown)
        self._next += 1
        return frame

    def _veiled(self, event: Json) -> Json:
        """Return the event with no more reasoning in its response or item than is shown."""
        veiled, response = event, event.get("response")
        if isinstance(response, dict):
            veiled = {**veiled, "response": snapshot(response, self._display)}
        if "item" in event:
            veiled = {**veiled, "item": without_raw(event["item"], self._display)}
        return veiled

    def _event(self, kind: str, fields: Json) -> bytes:
        self._next += 1
        return frame_of(kind, {"sequence_number": self._next - 1, **fields})

    def _rewritten(self, event: Json) -> bytes:
        fields = {key: value for key, value in event.items() if key not in _OWN}
        return self._event(string(event.get("type")), fields)

    # Events

    def _began(self, event: Began) -> bytes:
        response = exactly(event.frame).get("response")
        if isinstance(response, dict):
            self._response = packed(snapshot(response, self._display))
        return self._number(event.frame or b"")

    def _opened(self, event: Opened) -> bytes:
        added = exactly(event.frame)
        item = added.get("item")
        if not isinstance(item, dict):
            return b""
        self._ids[event.item] = string(item.get("id"))
        if self._display.raw:
            return self._number(event.frame or b"")
        item = {key: value for key, value in conceal(item).items() if key != "encrypted_content"}
        return self._rewritten({**added, "item": item})

    def _native(self, event: Native) -> bytes:
        if not self._display.summary or event.frame is None:
            return b""
        return self._number(_PART.sub(rb'"summary_index"\g<1>%d' % event.part, event.frame))

    def _part(self, event: PartOpened | PartSaid | PartClosed) -> Iterator[bytes]:
        at: Json = {
            "item_id": self._ids.get(event.item, ""),
            "output_index": event.item,
            "summary_index": event.index,
        }
        return starmap(self._event, spoken(event, at))

    def _closed(self, event: Closed) -> bytes:
        done = exactly(event.frame)
        item = done.get("item")
        if not isinstance(item, dict):
            return b""
        blob = self._blobs.blob(event.item, item)
        shown = dress(item, event.summary, self._display, blob)
        if shown == item:
            return self._number(event.frame or b"")
        return self._rewritten({**done, "item": shown})

    def _ended(self, event: Ended) -> bytes:
        ended = exactly(event.frame)
        response = ended.get("response")
        if not isinstance(response, dict):
            return self._number(event.frame or b"")
        shown = self.shown = final(response, event, self._ids, self._display, self._blobs)
        if event.ok and event.trouble is not None:
            return self._event("response.failed", {"response": failed(shown, event.trouble)})
        if shown == response:
            return self._number(event.frame or b"")
        return self._rewritten({**ended, "response": shown})


_OWN = frozenset({"type", "sequence_number"})
