"""Write Chat Completions: events as chunks, or into a whole completion.

Frames from upstream go out unchanged, unless they hold something that the client is to see
elsewhere or not at all. The summary goes where clients look for reasoning: alone, in the field that
upstream uses for its reasoning; with raw reasoning, in `reasoning_content`, with the raw in
`reasoning`.
"""

from __future__ import annotations

from abridge.turn.conversation import Heard
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
    Reasoned,
    Trouble,
)
from abridge.wire import sse
from abridge.wire.chat.choice import ITEM
from abridge.wire.chat.fields import retell
from abridge.wire.chat.frames import DONE, failure
from abridge.wire.chat.sealing import after, envelope_of, shown_in, spell
from abridge.wire.chat.shown import Shown
from abridge.wire.chat.whole import Rewriter
from abridge.wire.codec import Json, dumps, loads_exactly, objects, read_object
from abridge.wire.display import Display
from abridge.wire.problem import problem
from abridge.wire.profiles import Profile
from abridge.wire.usage import CHAT


class ChatWriter:
    """Write one response. See the protocol `Writer`."""

    shown = None

    def __init__(self, profile: Profile, display: Display) -> None:
        self._display = display
        self._shown = Shown(display)
        self._whole = Rewriter(profile, display)
        self._envelope: Json = {}
        self._troubled: set[int] = set()
        self._heard: dict[int, Heard] = {}

    def write(self, event: Event) -> bytes:
        match event:
            case Raw():
                return self._raw(event)
            case PartSaid(lane=int(lane)):
                return self._chunk(lane, self._shown.part((lane, ITEM), event.index, event.text))
            case Began():
                self._envelope = {
                    "id": event.id,
                    "object": "chat.completion.chunk",
                    "created": event.created,
                    "model": event.model,
                }
            case Opened():
                self._shown.open(event)
            case Native() if not self._display.summary:
                return b""
            case Closed(lane=int(lane)):
                return self._closed(lane, event.summary.trouble)
            case Reasoned(lane=int(lane)):
                return self._reasoned(lane, event.heard)
            case Billed():
                return self._billed(event)
            case Failed() | Ended():
                return self._ended(event)
        return event.frame or b""

    def beat(self) -> bytes:
        return b""

    def note(self, event: Event) -> None:
        """Keep the recorded turn; all else is in upstream's body, which the last event carries."""
        if isinstance(event, Reasoned):
            self._heard[event.lane or 0] = event.heard

    def whole(self, end: Ended) -> bytes:
        body = end.frame or b""
        completion = read_object(body, loads_exactly) if end.ok else None
        if completion is None:
            return body
        for choice in objects(completion.get("choices")):
            index = choice.get("index")
            lane = index if isinstance(index, int) else 0
            self._whole.rewrite(choice, end.summaries.get((lane, ITEM), NO_SUMMARY))
            if lane in self._heard:
                self._seal(choice["message"], self._heard[lane])
        CHAT.add(completion, end.share, merged=self._display.merged)
        if end.trouble is not None:
            failed = problem(end.trouble.message, code=end.trouble.code)
            failed["error"]["response"] = completion
            return dumps(failed)
        return dumps(completion)

    # Envelopes

    def _reasoned(self, lane: int, heard: Heard) -> bytes:
        name = self._display.envelope
        index = max(after(shown_in(heard, self._display)), self._shown.listed(lane, name))
        sealed = self._sealed(heard, index)
        return self._chunk(lane, {name: sealed}) if sealed else b""

    def _seal(self, message: Json, heard: Heard) -> None:
        name = self._display.envelope
        entries = message.get(name)
        entries = entries if isinstance(entries, list) else []
        if sealed := self._sealed(heard, after(entries)):
            message[name] = entries + sealed

    def _sealed(self, heard: Heard, index: int) -> list[Json]:
        """Return the entry with the recorded turn's envelope, if there is to be one."""
        blob = self._display.seal(envelope_of(heard)) if self._display.seal is not None else ""
        return [spell(blob, self._display.envelope, index)] if blob else []

    # Chunks

    def _chunk(self, lane: int, delta: Json) -> bytes:
        choice = {"index": lane, "delta": delta, "finish_reason": None}
        return sse.encode(dumps({**self._envelope, "choices": [choice]}))

    def _raw(self, event: Raw) -> bytes:
        if not self._display.raw or event.lane is None:
            return b""
        if self._display.plain and event.frame is not None:
            return event.frame
        told = self._shown.raw((event.lane, ITEM), event.text)
        if event.frame is None:
            return self._chunk(event.lane, told)
        if self._shown.raw_field(event.lane) == self._shown.upstream(event.lane) and len(told) == 1:
            return event.frame
        return _retold(event.frame, told)

    def _closed(self, lane: int, trouble: Trouble | None) -> bytes:
        """Report once per lane why there is no summary, before the answer is released."""
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

    def _ended(self, event: Failed | Ended) -> bytes:
        if isinstance(event, Failed):
            return event.frame or failure(event.trouble)
        if event.trouble is not None:
            return failure(event.trouble)
        return event.frame or (DONE if event.ok else b"")


def _chunk_of(frame: bytes) -> Json:
    return read_object(sse.data(frame) or b"", loads_exactly) or {}


def _retold(frame: bytes, told: Json) -> bytes:
    """Return the frame with its reasoning replaced by these fields."""
    chunk = _chunk_of(frame)
    for choice in objects(chunk.get("choices")):
        choice["delta"] = retell(choice.get("delta") or {}, told)
    return sse.encode(dumps(chunk))
