"""Put reasoning and summaries into the deltas of a choice.

Rewrite the choices of a whole completion, by the same rules as a stream.

Write Chat Completions: events as chunks, or into a whole completion.

Frames from upstream go out unchanged, unless they hold something that the client is to see
elsewhere or not at all. The summary goes where clients look for reasoning: alone, in the field that
upstream uses for its reasoning; with raw reasoning, in `reasoning_content`, with the raw in
`reasoning`.
"""

from __future__ import annotations

from abridge.apis import sse
from abridge.apis.chat.choice import REASONING_ITEM, remove_unknown_fields
from abridge.apis.chat.envelopes import list_visible_entries, make_entry, make_envelope, next_index
from abridge.apis.chat.errors import encode_error
from abridge.apis.chat.inline import split_inline
from abridge.apis.chat.reader import DONE_FRAME
from abridge.apis.chat.reasoning import (
    TEXT_FIELDS,
    FieldLayout,
    FoundReasoning,
    extract_native_summary,
    find_reasoning,
    replace_reasoning,
    without_reasoning,
)
from abridge.apis.display import Display, ListField
from abridge.apis.json import dumps, loads_exact, objects, parse_object
from abridge.apis.openai import failure_body
from abridge.apis.usage import CHAT_USAGE
from abridge.core.conversation import ItemKey, Json, RecordedTurn
from abridge.core.events import (
    NO_SUMMARY,
    ErrorDetail,
    ErrorReported,
    Event,
    ItemSummary,
    NativeSummary,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    SummaryTextDelta,
    TurnRecorded,
    UsageReported,
)
from abridge.providers.profile import Profile

PART_SEPARATOR = "\n\n"


class ReasoningFields:
    """Build the fields of deltas that hold reasoning or a summary.

    A blank line separates the parts of a summary, and the reasoning of several items that goes into
    one field.
    """

    def __init__(self, display: Display) -> None:
        self._writes_details = display.add_details
        self._shows_raw = display.show_raw
        self._layout = FieldLayout(display)
        self._upstream_fields: dict[int, str] = {}
        self._last_item: dict[int, int] = {}
        self._last_part: dict[int, tuple[int, int]] = {}
        self._last_index: dict[int, int] = {}

    def note_start(self, event: ReasoningStarted) -> None:
        self._upstream_fields[event.lane or 0] = event.field

    def upstream_field(self, lane: int) -> str:
        """Return the field in which upstream puts the lane's reasoning."""
        return self._upstream_fields.get(lane, "")

    def raw_field(self, lane: int) -> str:
        return self._layout.raw_field(self.upstream_field(lane))

    def count_entries(self, lane: int, name: ListField) -> int:
        """Return how many entries of a list Abridge has written in a lane that had reasoning."""
        counted = self._writes_details and name == "reasoning_details"
        return self._shows_raw + self._last_index.get(lane, -1) + 1 if counted else 0

    def add_raw(self, key: ItemKey, text: str) -> Json:
        lane, item = key
        is_new = self._last_item.get(lane, item) != item
        self._last_item[lane] = item
        return self._layout.build_raw(self.raw_field(lane), PART_SEPARATOR * is_new + text)

    def add_summary(self, key: ItemKey, index: int, text: str) -> Json:
        """Build the delta for a piece of a summary part of an item."""
        lane, item = key
        separator = ""
        if self._last_part.get(lane) != (item, index):
            separator = PART_SEPARATOR if lane in self._last_part else ""
            self._last_part[lane] = item, index
            self._last_index[lane] = self._last_index.get(lane, -1) + 1
        delta: Json = {self._layout.summary_field(self.upstream_field(lane)): separator + text}
        if self._writes_details:
            delta["reasoning_details"] = [
                self._layout.build_summary_detail(text, self._last_index[lane])
            ]
        return delta


class CompletionRewriter:
    """Put a summary into a choice, and remove what its client is not to see."""

    def __init__(self, profile: Profile, display: Display) -> None:
        self._profile = profile
        self._display = display
        self._layout = FieldLayout(display)

    def rewrite(self, choice: Json, summary: ItemSummary) -> None:
        message = choice.get("message")
        found = self._take_reasoning(message) if isinstance(message, dict) else None
        if message is None or found is None or self._display.is_plain:
            return
        if not (found.native and self._display.show_summary):
            choice["message"] = self._rewrite_message(message, found, summary)
        elif not self._display.show_raw:
            choice["message"] = {**without_reasoning(message), **extract_native_summary(message)}
        if not self._display.show_raw:
            remove_unknown_fields(choice)

    def _take_reasoning(self, message: Json) -> FoundReasoning | None:
        """Find the message's reasoning; inline reasoning is removed from the content.

        Where a field holds the reasoning, tags in the text belong to the answer, unless raw is
        hidden: then they are removed all the same, since they may repeat the field.
        """
        found = find_reasoning(message)
        if found is not None and self._display.show_raw:
            return found
        content = message.get("content")
        inline, rest = split_inline(content, self._profile, no_field=found is None)
        if found is not None or inline.strip():
            message["content"] = rest
        if found is None and inline.strip():
            message[TEXT_FIELDS[0]] = inline
            return FoundReasoning(inline, TEXT_FIELDS[0])
        return found

    def _rewrite_message(self, message: Json, found: FoundReasoning, summary: ItemSummary) -> Json:
        field = self._layout.raw_field(found.field)
        if found.native or not self._display.show_raw:
            message = without_reasoning(message)
        elif field != found.field or self._display.show_summary:
            message = replace_reasoning(message, self._layout.build_raw(field, found.text))
        if summary.parts:
            message[self._layout.summary_field(found.field)] = PART_SEPARATOR.join(summary.parts)
        if summary.parts and self._display.add_details:
            details = [
                self._layout.build_summary_detail(text, part)
                for part, text in enumerate(summary.parts)
            ]
            message["reasoning_details"] = objects(message.get("reasoning_details")) + details
        if summary.error is not None:
            message["summary_error"] = summary.error.as_dict()
        return message


class ChatWriter:
    """Write one response. See the protocol `Writer`."""

    final_response = None

    def __init__(self, profile: Profile, display: Display) -> None:
        self._display = display
        self._reasoning_fields = ReasoningFields(display)
        self._rewriter = CompletionRewriter(profile, display)
        self._header: Json = {}
        self._error_lanes: set[int] = set()
        self._recorded_turns: dict[int, RecordedTurn] = {}

    def write(self, event: Event) -> bytes:
        match event:
            case ReasoningDelta():
                return self._write_raw(event)
            case SummaryTextDelta(lane=int(lane)):
                return self._encode_chunk(
                    lane,
                    self._reasoning_fields.add_summary(
                        (lane, REASONING_ITEM), event.index, event.text
                    ),
                )
            case ResponseStarted():
                self._header = {
                    "id": event.id,
                    "object": "chat.completion.chunk",
                    "created": event.created,
                    "model": event.model,
                }
            case ReasoningStarted():
                self._reasoning_fields.note_start(event)
            case NativeSummary() if not self._display.show_summary:
                return b""
            case ReasoningEnded(lane=int(lane)):
                return self._write_summary_error(lane, event.summary.error)
            case TurnRecorded(lane=int(lane)):
                return self._write_envelope(lane, event.turn)
            case UsageReported():
                return self._write_usage(event)
            case ErrorReported() | ResponseEnded():
                return self._write_end(event)
        return event.frame or b""

    def keep_alive(self) -> bytes:
        return b""

    def note(self, event: Event) -> None:
        """Keep the recorded turn; all else is in upstream's body, which the last event carries."""
        if isinstance(event, TurnRecorded):
            self._recorded_turns[event.lane or 0] = event.turn

    def write_whole(self, end: ResponseEnded) -> bytes:
        body = end.frame or b""
        completion = parse_object(body, loads_exact) if end.ok else None
        if completion is None:
            return body
        for choice in objects(completion.get("choices")):
            index = choice.get("index")
            lane = index if isinstance(index, int) else 0
            self._rewriter.rewrite(choice, end.summaries.get((lane, REASONING_ITEM), NO_SUMMARY))
            if lane in self._recorded_turns:
                self._add_envelope(choice["message"], self._recorded_turns[lane])
        CHAT_USAGE.add_share(completion, end.share, merged=self._display.merge_usage)
        if end.error is not None:
            return dumps(failure_body(end.error, completion))
        return dumps(completion)

    # Envelopes

    def _write_envelope(self, lane: int, turn: RecordedTurn) -> bytes:
        name = self._display.envelope_field
        index = max(
            next_index(list_visible_entries(turn, self._display)),
            self._reasoning_fields.count_entries(lane, name),
        )
        entries = self._make_entries(turn, index)
        return self._encode_chunk(lane, {name: entries}) if entries else b""

    def _add_envelope(self, message: Json, turn: RecordedTurn) -> None:
        name = self._display.envelope_field
        entries = message.get(name)
        entries = entries if isinstance(entries, list) else []
        if added := self._make_entries(turn, next_index(entries)):
            message[name] = entries + added

    def _make_entries(self, turn: RecordedTurn, index: int) -> list[Json]:
        """Return the entry with the recorded turn's envelope, if there is to be one."""
        blob = self._display.seal(make_envelope(turn)) if self._display.seal is not None else ""
        return [make_entry(blob, self._display.envelope_field, index)] if blob else []

    # Chunks

    def _encode_chunk(self, lane: int, delta: Json) -> bytes:
        choice = {"index": lane, "delta": delta, "finish_reason": None}
        return sse.encode_frame(dumps({**self._header, "choices": [choice]}))

    def _write_raw(self, event: ReasoningDelta) -> bytes:
        if not self._display.show_raw or event.lane is None:
            return b""
        if self._display.is_plain and event.frame is not None:
            return event.frame
        delta = self._reasoning_fields.add_raw((event.lane, REASONING_ITEM), event.text)
        if event.frame is None:
            return self._encode_chunk(event.lane, delta)
        if (
            self._reasoning_fields.raw_field(event.lane)
            == self._reasoning_fields.upstream_field(event.lane)
            and len(delta) == 1
        ):
            return event.frame
        return _replace_in_frame(event.frame, delta)

    def _write_summary_error(self, lane: int, error: ErrorDetail | None) -> bytes:
        """Report once per lane why there is no summary, before the answer is released."""
        if error is None or lane in self._error_lanes:
            return b""
        self._error_lanes.add(lane)
        return self._encode_chunk(lane, {"summary_error": error.as_dict()})

    def _write_usage(self, event: UsageReported) -> bytes:
        if event.frame is None or (event.share is None and event.error is None):
            return event.frame or b""
        chunk = _parse_chunk(event.frame)
        if event.error is not None:
            del chunk["usage"]
            return sse.encode_frame(dumps(chunk)) if chunk.get("choices") else b""
        CHAT_USAGE.add_share(chunk, event.share, merged=self._display.merge_usage)
        return sse.encode_frame(dumps(chunk))

    def _write_end(self, event: ErrorReported | ResponseEnded) -> bytes:
        if isinstance(event, ErrorReported):
            return event.frame or encode_error(event.error)
        if event.error is not None:
            return encode_error(event.error)
        return event.frame or (DONE_FRAME if event.ok else b"")


def _parse_chunk(frame: bytes) -> Json:
    return parse_object(sse.frame_data(frame) or b"", loads_exact) or {}


def _replace_in_frame(frame: bytes, fields: Json) -> bytes:
    """Return the frame with its reasoning replaced by these fields."""
    chunk = _parse_chunk(frame)
    for choice in objects(chunk.get("choices")):
        choice["delta"] = replace_reasoning(choice.get("delta") or {}, fields)
    return sse.encode_frame(dumps(chunk))
