"""Write the events of a summary part.

Seal the reasoning items of a response.

An item is sent more than once, when it is done and in the final response, with the same blob each
time. So it is sealed once.

Build the response that the client is shown: snapshots on the way, and the final one.

Write the Responses API: events as a stream, or into a whole response.

An upstream event goes out in the bytes it came in, with only its number spliced in. The writer owns
`sequence_number`, dense from 0; ids and `output_index` stay as the reader has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import starmap
from typing import TypeAlias

from abridge.apis import sse
from abridge.apis.display import Display, Envelope, SealEnvelope
from abridge.apis.json import dumps, loads_exact, packed, parse_object, string
from abridge.apis.openai import failure_body
from abridge.apis.responses.contents import encode_event, parse_frame
from abridge.apis.responses.errors import as_failed
from abridge.apis.responses.reasoning import (
    LANE,
    as_shown,
    is_reasoning,
    raw_text,
    without_raw_content,
    without_reasoning,
)
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.events import (
    NO_SUMMARY,
    Event,
    NativeSummary,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
)
from abridge.providers.profile import Profile

WireEvents: TypeAlias = Iterator[tuple[str, Json]]
"""Stream events without their numbers: the type of each, and its other fields."""

_SUMMARY_PREFIX = "response.reasoning_summary_"


def write_part(
    event: SummaryPartAdded | SummaryTextDelta | SummaryPartDone, address: Json
) -> WireEvents:
    """Write an event. `address` has the item's id and index, and the part's `summary_index`."""
    match event:
        case SummaryPartAdded():
            yield from write_part_added(address)
        case SummaryTextDelta():
            yield from write_part_delta(address, event.text)
        case SummaryPartDone():
            yield from write_part_done(address, event.text, complete=event.complete)


def write_part_added(address: Json) -> WireEvents:
    yield f"{_SUMMARY_PREFIX}part.added", {**address, "part": {"type": "summary_text", "text": ""}}


def write_part_delta(address: Json, text: str) -> WireEvents:
    yield f"{_SUMMARY_PREFIX}text.delta", {**address, "delta": text}


def write_part_done(address: Json, text: str, *, complete: bool = True) -> WireEvents:
    status = {} if complete else {"status": "incomplete"}
    yield f"{_SUMMARY_PREFIX}text.done", {**address, "text": text}
    yield (
        f"{_SUMMARY_PREFIX}part.done",
        {**address, "part": {"type": "summary_text", "text": text}, **status},
    )


MAX_BLOB_CHARS = 1 << 22
"""Characters of blobs that are stored until a response's end. Items after that get no blob."""


class EnvelopeSealer:
    """Seals the items of one response.

    An item with only opaque state is not sealed: the client can return that as it is.
    """

    def __init__(self, seal: SealEnvelope | None) -> None:
        self._seal = seal
        self._blobs: dict[int, str] = {}
        self._room_left = MAX_BLOB_CHARS

    def get_blob(self, output_index: int, item: Json) -> str:
        """Return the blob of upstream's item with this output index, or an empty string."""
        if self._seal is None or output_index < 0:
            return ""
        if output_index not in self._blobs and self._room_left > 0 and raw_text(item).strip():
            blob = self._seal(Envelope([item], string(item.get("id"))))
            self._room_left -= len(blob)
            self._blobs[output_index] = blob
        return self._blobs.get(output_index, "")


TRANSCRIPT_FIELDS = ("input_messages", "output_messages")
"""Fields with all that the model read, earlier reasoning included, and wrote, in its own format
(vLLM's `enable_response_messages`)."""


def snapshot(response: Json, display: Display) -> Json:
    """Return the response so far, with no more of its reasoning than is shown."""
    return _show_response(response, display, lambda _, item: as_shown(item, NO_SUMMARY, display))


def show_final(
    response: Json,
    end: ResponseEnded,
    ids: Mapping[int, str],
    display: Display,
    envelopes: EnvelopeSealer,
) -> Json:
    """Return the final response: its items as they were shown, and all of the usage.

    `ids` are those of the streamed reasoning items, by output index. Other items are known by their
    position.
    """
    indexes_by_id = {item_id: output_index for output_index, item_id in ids.items() if item_id}

    def show_item(place: int, item: Json) -> Json:
        number = indexes_by_id.get(string(item.get("id")), -1 if ids.get(place) else place)
        summary = end.summaries.get((LANE, number), NO_SUMMARY)
        return as_shown(item, summary, display, envelopes.get_blob(number, item))

    shown = _show_response(response, display, show_item)
    RESPONSES_USAGE.add_share(shown, end.share, merged=display.merge_usage)
    return shown


def _show_response(
    response: Json, display: Display, show_item: Callable[[int, Json], Json]
) -> Json:
    """Return the response with its reasoning items as `show_item` returns them.

    `reasoning.summary` is the style in effect (openai-openapi, `Response.reasoning`).
    """
    shown: Json = {}
    reasoning, output = response.get("reasoning"), response.get("output")
    style = display.style if display.show_summary else None
    is_different = isinstance(reasoning, dict) and reasoning.get("summary") != style
    if isinstance(reasoning, dict) and is_different and not display.is_plain:
        shown["reasoning"] = {**reasoning, "summary": style}
    if isinstance(output, list):
        shown["output"] = [
            show_item(index, item) if is_reasoning(item) else without_raw_content(item, display)
            for index, item in enumerate(output)
        ]
    if not display.show_raw:
        shown.update(dict.fromkeys(filter(response.get, TRANSCRIPT_FIELDS)))
    return {**response, **shown}


_NUMBER_KEY = b'"sequence_number"'

_RAW_PART_TYPE = b'"reasoning_text"'

_NUMBER_PATTERN = re.compile(_NUMBER_KEY + rb"\s*:\s*(\d+)")

_PART_INDEX_PATTERN = re.compile(rb'"summary_index"(\s*:\s*)\d+')


class ResponsesWriter:
    """Writes one response. See `abridge.apis.api.Writer`."""

    def __init__(self, _profile: Profile, display: Display) -> None:
        self._display = display
        self._next_number = 0
        self._is_numbered: bool | None = None  # None until the first event shows it
        self._response: bytes | None = None
        self._item_ids: dict[int, str] = {}  # of reasoning items, by output index
        self._envelopes = EnvelopeSealer(display.seal)
        self.final_response: Json | None = None

    def write(self, event: Event) -> bytes:
        match event:
            case ReasoningDelta() if not self._display.show_raw:
                return b""
            case NativeSummary():
                return self._write_native(event)
            case SummaryPartAdded() | SummaryTextDelta() | SummaryPartDone():
                return b"".join(self._write_part(event))
            case ReasoningStarted():
                return self._write_reasoning_start(event)
            case ReasoningEnded():
                return self._write_reasoning_end(event)
            case ResponseStarted():
                return self._write_start(event)
            case ResponseEnded():
                return self._write_end(event)
        return self._renumber(event.frame) if event.frame else b""

    def keep_alive(self) -> bytes:
        """Repeat the response so far, which every client accepts and Codex counts as activity."""
        if self._response is None:
            return b""
        return self._encode("response.in_progress", {"response": parse_object(self._response)})

    def note(self, event: Event) -> None:
        """Do nothing: the end brings the whole body."""

    def write_whole(self, end: ResponseEnded) -> bytes:
        body = end.frame or b""
        response = parse_object(body, loads_exact) if end.ok else None
        if response is None:
            return body
        response = self.final_response = show_final(
            response, end, {}, self._display, self._envelopes
        )
        if end.error is None:
            return dumps(response)
        return dumps(failure_body(end.error, as_failed(response, end.error)))

    # Frames

    def _renumber(self, frame: bytes) -> bytes:
        """Give a frame the next number, spliced in where it can only be the event's own."""
        is_plain = b'"response"' not in frame and (
            self._display.show_raw or _RAW_PART_TYPE not in frame
        )
        if self._is_numbered and is_plain and frame.count(_NUMBER_KEY) == 1:
            found = _NUMBER_PATTERN.search(frame)
            if found is not None:
                number, self._next_number = self._next_number, self._next_number + 1
                return frame[: found.start(1)] + b"%d" % number + frame[found.end(1) :]
        data = sse.frame_data(frame)
        if data is None or not data.startswith(b"{"):
            return frame
        event = parse_object(data, loads_exact)
        return frame if event is None else self._write_parsed(event, frame)

    def _write_parsed(self, event: Json, frame: bytes) -> bytes:
        """Write a frame that had to be parsed. Upstream numbers all of its events or none."""
        number = event.get("sequence_number")
        if self._is_numbered is None:
            self._is_numbered = isinstance(number, int)
        shown = self._hide_raw(event)
        if shown != event or number != self._next_number:
            return self._rewrite(shown)
        self._next_number += 1
        return frame

    def _hide_raw(self, event: Json) -> Json:
        """Return the event with no more reasoning in its response or item than is shown."""
        visible, response = event, event.get("response")
        if isinstance(response, dict):
            visible = {**visible, "response": snapshot(response, self._display)}
        if "item" in event:
            visible = {**visible, "item": without_raw_content(event["item"], self._display)}
        return visible

    def _encode(self, event_type: str, fields: Json) -> bytes:
        self._next_number += 1
        return encode_event(event_type, {"sequence_number": self._next_number - 1, **fields})

    def _rewrite(self, event: Json) -> bytes:
        fields = {key: value for key, value in event.items() if key not in _WRITER_FIELDS}
        return self._encode(string(event.get("type")), fields)

    # Events

    def _write_start(self, event: ResponseStarted) -> bytes:
        response = parse_frame(event.frame).get("response")
        if isinstance(response, dict):
            self._response = packed(snapshot(response, self._display))
        return self._renumber(event.frame or b"")

    def _write_reasoning_start(self, event: ReasoningStarted) -> bytes:
        added = parse_frame(event.frame)
        item = added.get("item")
        if not isinstance(item, dict):
            return b""
        self._item_ids[event.item] = string(item.get("id"))
        if self._display.show_raw:
            return self._renumber(event.frame or b"")
        item = {
            key: value
            for key, value in without_reasoning(item).items()
            if key != "encrypted_content"
        }
        return self._rewrite({**added, "item": item})

    def _write_native(self, event: NativeSummary) -> bytes:
        if not self._display.show_summary or event.frame is None:
            return b""
        return self._renumber(
            _PART_INDEX_PATTERN.sub(rb'"summary_index"\g<1>%d' % event.index, event.frame)
        )

    def _write_part(
        self, event: SummaryPartAdded | SummaryTextDelta | SummaryPartDone
    ) -> Iterator[bytes]:
        address: Json = {
            "item_id": self._item_ids.get(event.item, ""),
            "output_index": event.item,
            "summary_index": event.index,
        }
        return starmap(self._encode, write_part(event, address))

    def _write_reasoning_end(self, event: ReasoningEnded) -> bytes:
        done = parse_frame(event.frame)
        item = done.get("item")
        if not isinstance(item, dict):
            return b""
        blob = self._envelopes.get_blob(event.item, item)
        shown = as_shown(item, event.summary, self._display, blob)
        if shown == item:
            return self._renumber(event.frame or b"")
        return self._rewrite({**done, "item": shown})

    def _write_end(self, event: ResponseEnded) -> bytes:
        ended = parse_frame(event.frame)
        response = ended.get("response")
        if not isinstance(response, dict):
            return self._renumber(event.frame or b"")
        shown = self.final_response = show_final(
            response, event, self._item_ids, self._display, self._envelopes
        )
        if event.ok and event.error is not None:
            return self._encode("response.failed", {"response": as_failed(shown, event.error)})
        if shown == response:
            return self._renumber(event.frame or b"")
        return self._rewrite({**ended, "response": shown})


_WRITER_FIELDS = frozenset({"type", "sequence_number"})
