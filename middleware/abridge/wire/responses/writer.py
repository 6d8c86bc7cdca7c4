"""Writes the Responses API: turn events as the events of a stream, or into a whole response.

An event of upstream's goes out in the bytes it came in, with only its number spliced in. The Writer
owns `sequence_number`, dense from 0; ids and `output_index` are upstream's and stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from abridge.turn.events import (
    NO_SUMMARY,
    Began,
    Closed,
    Ended,
    Event,
    ItemKey,
    Native,
    Opened,
    PartClosed,
    PartOpened,
    PartSaid,
    Raw,
    Summary,
    Trouble,
)
from abridge.wire import sse
from abridge.wire.codec import Json, dumps, loads_exactly, read_object, string
from abridge.wire.display import Display
from abridge.wire.problem import problem
from abridge.wire.profiles import Profile
from abridge.wire.responses.items import conceal, dress, is_reasoning
from abridge.wire.usage import RESPONSES

_NUMBER = re.compile(rb'"sequence_number"(\s*:\s*)\d+')
_PART = re.compile(rb'"summary_index"(\s*:\s*)\d+')


class ResponsesWriter:
    """Writes one response. See `abridge.wire.api.Writer`."""

    def __init__(self, _profile: Profile, display: Display) -> None:
        self._display = display
        self._next = 0
        self._response: Json | None = None
        self._ids: dict[int, str] = {}

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
        """The response so far once more, which every client takes and Codex counts as life."""
        if self._response is None:
            return b""
        return self._event("response.in_progress", {"response": self._response})

    def whole(self, end: Ended) -> bytes:
        body = end.frame or b""
        response = read_object(body, loads_exactly) if end.ok else None
        if response is None:
            return body
        response = self._final(response, end)
        if end.trouble is not None:
            failed = problem(end.trouble.message, code=end.trouble.code)
            failed["error"]["response"] = _failed(response, end.trouble)
            return dumps(failed)
        return dumps(response)

    # Frames

    def _number(self, frame: bytes) -> bytes:
        """The frame with the next number, spliced in where it can only be the event's own."""
        data = sse.data(frame)
        if data is None or not data.startswith(b"{"):
            return frame
        if data.count(b'"sequence_number"') == 1 and b'"response"' not in data:
            number, self._next = self._next, self._next + 1
            return _NUMBER.sub(rb'"sequence_number"\g<1>%d' % number, frame, count=1)
        event = read_object(data, loads_exactly)
        if event is None:
            return frame
        if event.get("sequence_number") != self._next:
            return self._rewritten(event)
        self._next += 1
        return frame

    def _event(self, kind: str, fields: Json) -> bytes:
        event = {"type": kind, "sequence_number": self._next, **fields}
        self._next += 1
        return sse.encode(dumps(event), kind)

    def _rewritten(self, event: Json) -> bytes:
        fields = {key: value for key, value in event.items() if key not in _OWN}
        return self._event(string(event.get("type")), fields)

    # Events

    def _began(self, event: Began) -> bytes:
        lifecycle = _read(event)
        response = lifecycle.get("response")
        if not isinstance(response, dict):
            return self._number(event.frame or b"")
        self._response = self._echo(response)
        if self._response is response:
            return self._number(event.frame or b"")
        return self._rewritten({**lifecycle, "response": self._response})

    def _opened(self, event: Opened) -> bytes:
        added = _read(event)
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
        fields: Json = {
            "item_id": self._ids.get(event.item, ""),
            "output_index": event.item,
            "summary_index": event.index,
        }
        kind = "response.reasoning_summary_"
        match event:
            case PartOpened():
                part = {"type": "summary_text", "text": ""}
                yield self._event(f"{kind}part.added", {**fields, "part": part})
            case PartSaid():
                yield self._event(f"{kind}text.delta", {**fields, "delta": event.text})
            case PartClosed():
                part = {"type": "summary_text", "text": event.text}
                status = {} if event.complete else {"status": "incomplete"}
                yield self._event(f"{kind}text.done", {**fields, "text": event.text})
                yield self._event(f"{kind}part.done", {**fields, "part": part, **status})

    def _closed(self, event: Closed) -> bytes:
        done = _read(event)
        item = done.get("item")
        if not isinstance(item, dict):
            return b""
        shown = dress(item, event.summary, self._display)
        if shown == item:
            return self._number(event.frame or b"")
        return self._rewritten({**done, "item": shown})

    def _ended(self, event: Ended) -> bytes:
        ended = _read(event)
        response = ended.get("response")
        if not isinstance(response, dict):
            return self._number(event.frame or b"")
        final = self._final(response, event)
        if event.ok and event.trouble is not None:
            return self._event("response.failed", {"response": _failed(final, event.trouble)})
        if final == response:
            return self._number(event.frame or b"")
        return self._rewritten({**ended, "response": final})

    # Responses

    def _echo(self, response: Json) -> Json:
        """The response, its `reasoning.summary` being what is honoured.

        Source of the key's meaning: openai-openapi, `Response.reasoning`.
        """
        reasoning = response.get("reasoning")
        style = self._display.style if self._display.summary else None
        if not isinstance(reasoning, dict) or reasoning.get("summary") == style:
            return response
        return {**response, "reasoning": {**reasoning, "summary": style}}

    def _final(self, response: Json, end: Ended) -> Json:
        """The final response: its items as they were shown, and the whole bill."""
        final = dict(self._echo(response))
        output = final.get("output")
        if isinstance(output, list):
            keys = iter(sorted(end.summaries))
            final["output"] = [
                self._shown(item, next(keys, None), end) if is_reasoning(item) else item
                for item in output
            ]
        RESPONSES.add(final, end.share, merged=self._display.merged)
        return final

    def _shown(self, item: Json, key: ItemKey | None, end: Ended) -> Json:
        summary: Summary = end.summaries.get(key, NO_SUMMARY) if key else NO_SUMMARY
        return dress(item, summary, self._display)


_OWN = frozenset({"type", "sequence_number"})


def _read(event: Event) -> Json:
    data = sse.data(event.frame or b"")
    return read_object(data or b"", loads_exactly) or {}


def _failed(response: Json, trouble: Trouble) -> Json:
    """`error.code` is `server_error`: the API's description allows no code of our own."""
    error = {"code": "server_error", "message": trouble.message}
    return {**response, "status": "failed", "error": error}
