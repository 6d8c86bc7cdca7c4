"""Writes Chat Completions: turn events as chunks, or into a whole completion.

What upstream said goes out in the bytes it came in, unless the client is not to see it there. The
summary goes where clients look for reasoning: alone, in the field in which upstream put its own;
beside the raw reasoning, in `reasoning_content`, with the raw in `reasoning`.
"""

from __future__ import annotations

from abridge.turn.events import (
    NO_SUMMARY,
    Began,
    Billed,
    Closed,
    Ended,
    Event,
    Failed,
    Native,
    Opened,
    PartSaid,
    Raw,
    Summary,
    Trouble,
)
from abridge.wire import sse
from abridge.wire.chat.choice import ITEM
from abridge.wire.chat.dialects import PLAIN, Found, conceal, find, without_chunks
from abridge.wire.chat.inline import split_inline
from abridge.wire.codec import Json, dumps, loads_exactly, objects, read_object
from abridge.wire.display import Display
from abridge.wire.problem import problem
from abridge.wire.profiles import Profile
from abridge.wire.usage import CHAT

BETWEEN_PARTS = "\n\n"
DONE = b"data: [DONE]\n\n"


class ChatWriter:
    """Writes one response. See `abridge.wire.api.Writer`."""

    def __init__(self, profile: Profile, display: Display) -> None:
        self._profile = profile
        self._display = display
        self._envelope: Json = {}
        self._fields: dict[int, str] = {}
        self._last_part: dict[int, int] = {}
        self._troubled: set[int] = set()

    def write(self, event: Event) -> bytes:
        match event:
            case Raw():
                return self._raw(event)
            case PartSaid(lane=int(lane)):
                return self._chunk(lane, self._part(lane, event))
            case Began():
                self._envelope = {
                    "id": event.id,
                    "object": "chat.completion.chunk",
                    "created": event.created,
                    "model": event.model,
                }
            case Opened(lane=int(lane)):
                self._fields[lane] = event.field
            case Native() if not self._display.summary:
                return b""
            case Closed(lane=int(lane)):
                return self._closed(lane, event.summary.trouble)
            case Billed():
                return self._billed(event)
            case Failed():
                return event.frame or _failure(event.trouble)
            case Ended():
                return self._ended(event)
        return event.frame or b""

    def beat(self) -> bytes:
        return b""

    def whole(self, end: Ended) -> bytes:
        body = end.frame or b""
        completion = read_object(body, loads_exactly) if end.ok else None
        if completion is None:
            return body
        for choice in objects(completion.get("choices")):
            index = choice.get("index")
            lane = index if isinstance(index, int) else 0
            self._rewrite(choice, end.summaries.get((lane, ITEM), NO_SUMMARY))
        CHAT.add(completion, end.share, merged=self._display.merged)
        if end.trouble is not None:
            failed = problem(end.trouble.message, code=end.trouble.code)
            failed["error"]["response"] = completion
            return dumps(failed)
        return dumps(completion)

    # Where things go

    def _summary_field(self, upstream: str) -> str:
        if self._display.summary_field != "auto":
            return self._display.summary_field
        return PLAIN[0] if self._display.raw else upstream or PLAIN[0]

    def _raw_field(self, upstream: str) -> str:
        if self._display.raw_field != "auto":
            return self._display.raw_field
        return PLAIN[1] if self._display.summary else upstream or PLAIN[0]

    # Chunks

    def _chunk(self, lane: int, delta: Json) -> bytes:
        choice = {"index": lane, "delta": delta, "finish_reason": None}
        return sse.encode(dumps({**self._envelope, "choices": [choice]}))

    def _raw(self, event: Raw) -> bytes:
        if not self._display.raw or event.lane is None:
            return b""
        upstream = self._fields.get(event.lane, "")
        field = self._raw_field(upstream)
        told = self._told(field, event.text)
        if event.frame is None:
            return self._chunk(event.lane, told)
        if field == upstream and len(told) == 1:
            return event.frame
        return _retold(event.frame, told)

    def _told(self, field: str, text: str) -> Json:
        told: Json = {field: text}
        if self._display.details:
            told["reasoning_details"] = [{"type": "reasoning.text", "text": text, "index": 0}]
        return told

    def _part(self, lane: int, event: PartSaid) -> Json:
        fresh = self._last_part.get(lane) != event.index
        between = BETWEEN_PARTS if fresh and lane in self._last_part else ""
        self._last_part[lane] = event.index
        delta: Json = {self._summary_field(self._fields.get(lane, "")): between + event.text}
        if self._display.details:
            delta["reasoning_details"] = [self._detail(event.text, event.index)]
        return delta

    def _detail(self, text: str, part: int) -> Json:
        index = part + 1 if self._display.raw else part
        return {"type": "reasoning.summary", "summary": text, "index": index}

    def _closed(self, lane: int, trouble: Trouble | None) -> bytes:
        """The delta that releases the hold tells once why there is no summary."""
        if trouble is None or lane in self._troubled:
            return b""
        self._troubled.add(lane)
        return self._chunk(lane, {"summary_error": trouble.as_dict()})

    def _billed(self, event: Billed) -> bytes:
        if event.frame is None or (event.share is None and event.trouble is None):
            return event.frame or b""
        chunk = _chunk_of(event.frame)
        if event.trouble is not None:
            del chunk["usage"]
            return sse.encode(dumps(chunk)) if chunk.get("choices") else b""
        CHAT.add(chunk, event.share, merged=self._display.merged)
        return sse.encode(dumps(chunk))

    def _ended(self, event: Ended) -> bytes:
        if event.trouble is not None:
            return _failure(event.trouble)
        return event.frame or (DONE if event.ok else b"")

    # A whole completion

    def _rewrite(self, choice: Json, summary: Summary) -> None:
        message = choice.get("message")
        if not isinstance(message, dict):
            return
        found = find(message)
        if found is None:
            content = message.get("content")
            reasoning, kept = split_inline(content, self._profile, alone=True)
            if not reasoning.strip():
                return
            message["content"] = kept
            message[PLAIN[0]] = reasoning
            found = Found(reasoning, PLAIN[0])
        if found.native and self._display.summary:
            return
        choice["message"] = self._shown(message, found, summary)
        if not self._display.raw and choice.get("logprobs"):
            choice["logprobs"] = None

    def _shown(self, message: Json, found: Found, summary: Summary) -> Json:
        field = self._raw_field(found.field)
        if found.native or not self._display.raw:
            message = conceal(message)
        elif field != found.field or self._display.summary:
            message = _retell(message, self._told(field, found.text))
        if summary.parts:
            message[self._summary_field(found.field)] = BETWEEN_PARTS.join(summary.parts)
        if summary.parts and self._display.details:
            details = [self._detail(text, part) for part, text in enumerate(summary.parts)]
            message["reasoning_details"] = objects(message.get("reasoning_details")) + details
        if summary.trouble is not None:
            message["summary_error"] = summary.trouble.as_dict()
        return message


def _failure(trouble: Trouble) -> bytes:
    return sse.encode(dumps(problem(trouble.message, code=trouble.code)))


def _chunk_of(frame: bytes) -> Json:
    return read_object(sse.data(frame) or b"", loads_exactly) or {}


def _retold(frame: bytes, told: Json) -> bytes:
    """The frame with its reasoning told in other fields."""
    chunk = _chunk_of(frame)
    for choice in objects(chunk.get("choices")):
        choice["delta"] = _retell(choice.get("delta") or {}, told)
    return sse.encode(dumps(chunk))


def _retell(said: Json, told: Json) -> Json:
    kept = {key: value for key, value in said.items() if key not in PLAIN}
    if isinstance(kept.get("content"), list):
        kept["content"] = without_chunks(kept["content"]) or None
    return {**{key: value for key, value in told.items() if value}, **kept}
