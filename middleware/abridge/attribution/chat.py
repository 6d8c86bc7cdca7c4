"""Attribute reasoning to the tool calls of a Chat Completions answer.

A choice is a turn. In a stream its reasoning is read from the events, and its parts from the lists
of reasoning in their frames; a call is attributed in its first fragment. A whole message does not
show the order of reasoning and calls, so all of its reasoning is attributed to its first call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from abridge.apis import sse
from abridge.apis.api import Writer
from abridge.apis.attribution_fields import attribute_call
from abridge.apis.chat.reasoning import (
    LIST_FIELDS,
    REASONING_ITEM,
    find_reasoning,
    get_delta,
)
from abridge.apis.chat.writer import PART_SEPARATOR, ReasoningFields
from abridge.apis.display import Display, is_envelope
from abridge.apis.json import dumps, loads_exact, objects, parse_object, string
from abridge.apis.openai import change_answer
from abridge.attribution.attributor import (
    RAW,
    REDACTED,
    SUMMARY,
    Attribution,
    AttributionKind,
    AttributionPart,
    Attributor,
)
from abridge.core.conversation import Json
from abridge.core.events import (
    NO_SUMMARY,
    ContentDelta,
    Event,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ResponseEnded,
    SummaryTextDelta,
    ToolCallDelta,
)

CALLS_NEEDLE = b'"tool_calls"'

_DETAILS_NEEDLE, _BLOCKS_NEEDLE = (f'"{name}"'.encode() for name in LIST_FIELDS)


class ChatAttributingWriter:
    """Wrap a Writer, and attribute its calls; keep at most `limit` characters of each choice."""

    def __init__(self, writer: Writer, display: Display, limit: int) -> None:
        self._writer = writer
        self._display = display
        self._limit = limit
        self._choices: dict[int, _ChoiceAttribution] = {}

    @property
    def final_response(self) -> Json | None:
        return self._writer.final_response

    def write(self, event: Event) -> bytes:
        data = self._writer.write(event)
        if self._limit:
            self._note_reasoning(event)
        if CALLS_NEEDLE not in data:
            return data
        return b"".join(map(self._attribute_frame, sse.split_frames(data)))

    def keep_alive(self) -> bytes:
        return self._writer.keep_alive()

    def note(self, event: Event) -> None:
        self._writer.note(event)
        self._note_reasoning(event)
        if isinstance(event, ToolCallDelta) and event.lane is not None:
            self._get_choice(event.lane).add_call(event)

    def write_whole(self, end: ResponseEnded) -> bytes:
        body = self._writer.write_whole(end)
        if CALLS_NEEDLE not in body:
            return body

        def attribute(completion: Json) -> Json:
            return map_choices(completion, lambda choice: self._attribute_whole(choice, end))

        return change_answer(body, attribute)

    # Reasoning

    def _note_reasoning(self, event: Event) -> None:
        lane, frame = event.lane, event.frame
        if lane is None:
            return
        if frame is not None and (_DETAILS_NEEDLE in frame or _BLOCKS_NEEDLE in frame):
            self._note_entries(event, _read_frame_entries(frame, lane), lane)
        elif not isinstance(event, ContentDelta):
            self._note_event(event, lane)

    def _note_event(self, event: Event, lane: int) -> None:
        """Add the reasoning of an event, if it is shown, or that there is some which is not."""
        match event:
            case ReasoningDelta() if self._display.show_raw:
                self._get_choice(lane).add_reasoning(RAW, event.text, 0, event.item)
            case SummaryTextDelta():
                self._get_choice(lane).add_reasoning(SUMMARY, event.text, event.index, event.item)
            case NativeSummary() if self._display.show_summary:
                self._get_choice(lane).add_reasoning(SUMMARY, event.text, event.index, event.item)
            case ProviderState(signs=False):
                self._get_choice(lane).redact(event.item)

    def _note_entries(self, event: Event, entries: list[ReasoningEntry], lane: int) -> None:
        """Add the entries of the lists in an event's frame; they may hold no text to show."""
        kind = {ReasoningDelta: RAW, NativeSummary: SUMMARY}.get(type(event))
        is_shown = self._display.show_raw if kind == RAW else self._display.show_summary
        if not any(entry.text for entry in entries if entry.kind == kind):
            self._note_event(event, lane)
        self._get_choice(lane).add_entries(entries, kind if is_shown else None)

    def _get_choice(self, lane: int) -> _ChoiceAttribution:
        if lane not in self._choices:
            self._choices[lane] = _ChoiceAttribution(self._limit, self._display)
        return self._choices[lane]

    # Calls

    def _attribute_frame(self, frame: bytes) -> bytes:
        chunk = (
            parse_object(sse.frame_data(frame) or b"", loads_exact)
            if CALLS_NEEDLE in frame
            else None
        )
        changed = map_choices(chunk or {}, self._attribute_delta)
        return frame if not chunk or changed == chunk else sse.encode_frame(dumps(changed))

    def _attribute_delta(self, choice: Json) -> Json:
        delta = get_delta(choice)
        calls = objects(delta.get("tool_calls"))
        if not calls or len(calls) < len(delta["tool_calls"]):
            return choice
        state = self._get_choice(_get_index(choice))
        fragments = [
            state.attribute_fragment(call, position) for position, call in enumerate(calls)
        ]
        key = "delta" if choice.get("delta") is delta else "message"
        return {**choice, key: {**delta, "tool_calls": fragments}}

    def _attribute_whole(self, choice: Json, end: ResponseEnded) -> Json:
        message, state = choice.get("message"), self._choices.get(_get_index(choice))
        if not isinstance(message, dict):
            return choice
        if state is not None and state.attributions:
            return {**choice, "message": attribute_calls(message, state.attributions)}
        summary = end.summaries.get((_get_index(choice), REASONING_ITEM), NO_SUMMARY).parts
        changed = attribute_message(message, self._display, summary, self._limit)
        return {**choice, "message": changed}


class _ChoiceAttribution:
    def __init__(self, limit: int, display: Display) -> None:
        self.attributions: list[
            Attribution[int]
        ] = []  # of the calls that events reported, in order
        self._attributor: Attributor[int] = Attributor(limit, native=display.native)
        self._call_ids: list[str] = []
        self._positions: dict[int, int] = {}
        self._signature_count = 0

    def add_reasoning(self, kind: AttributionKind, text: str, part: int, item: int) -> None:
        """Add reasoning of an event."""
        self._attributor.add_reasoning(kind, text, part=part, stretch=item)

    def add_entries(self, entries: list[ReasoningEntry], kind: AttributionKind | None) -> None:
        """Add reasoning of a kind from the entries of an event's frame, and redacted reasoning."""
        for entry in entries:
            if entry.kind == kind:
                self._attributor.add_reasoning(
                    kind,
                    entry.text,
                    part=(entry.part, self._signature_count),
                    stretch=REASONING_ITEM,
                )
            elif entry.kind == REDACTED and entry.text:
                self._attributor.add_redacted(stretch=REASONING_ITEM)
            self._signature_count += entry.signed

    def redact(self, item: int) -> None:
        self._attributor.add_redacted(stretch=item)

    def add_call(self, event: ToolCallDelta) -> None:
        """Attribute the call of an event, if this is its first piece."""
        if event.call_index == len(self.attributions):
            self.attributions.append(self._attributor.attribute_call(event.call_index))

    def attribute_fragment(self, call: Json, position: int) -> Json:
        """Return a call's fragment, with the attribution if it is the first of its call."""
        index = call.get("index")
        if self._attributor.is_over_limit or not self._is_new_call(
            call, index if isinstance(index, int) else position
        ):
            return attribute_call(call, (), "")
        attribution = self._attributor.attribute_call(len(self._call_ids) - 1)
        return attribute_call(
            call,
            attribution.parts,
            self._call_ids[attribution.ref] if attribution.ref is not None else "",
        )

    def _is_new_call(self, call: Json, index: int) -> bool:
        """Return whether the fragment begins a call.

        An index that comes again with another id and a name begins another.
        """
        identity, payload = string(call.get("id")), call.get("function") or call.get("custom")
        has_name = isinstance(payload, dict) and bool(payload.get("name"))
        position = self._positions.get(index)
        if position is not None and (
            self._call_ids[position] in ("", identity) or not (identity and has_name)
        ):
            self._call_ids[position] = self._call_ids[position] or identity
            return False
        self._positions[index] = len(self._call_ids)
        self._call_ids.append(identity)
        return True


def _read_frame_entries(frame: bytes, lane: int) -> list[ReasoningEntry]:
    """Read the entries of the lists in a frame, of one lane."""
    chunk = parse_object(sse.frame_data(frame) or b"") or {}
    choices = [choice for choice in objects(chunk.get("choices")) if _get_index(choice) == lane]
    return [entry for choice in choices for entry in read_entries(get_delta(choice))]


def _get_index(choice: Json) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


# A whole message

NO_ATTRIBUTION: Attribution[int] = Attribution()


def attribute_message(
    message: Json,
    display: Display | None = None,
    summary: Sequence[str] = (),
    limit: int = sys.maxsize,
) -> Json:
    """Return the message with its calls attributed.

    Without a display to say what its texts are, two that differ are taken for raw reasoning and
    summary. `summary` are the parts of a summary that Abridge made.
    """
    native = display is not None and display.native
    attributor: Attributor[int] = Attributor(limit, native=native)
    for number, part in enumerate(_read_parts(message, display, summary)):
        if part.kind == REDACTED:
            attributor.add_redacted()
        else:
            attributor.add_reasoning(part.kind, part.text, part=number)
    return attribute_calls(
        message, map(attributor.attribute_call, range(len(objects(message.get("tool_calls")))))
    )


def map_choices(body: Json, change: Callable[[Json], Json]) -> Json:
    """Return a chunk or a completion with `change` applied to its choices."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return body
    changed = [change(choice) if isinstance(choice, dict) else choice for choice in choices]
    return {**body, "choices": changed}


def attribute_calls(message: Json, attributions: Iterable[Attribution[int]]) -> Json:
    """Return the message with these attributions added to its calls, in their order."""
    calls = objects(message.get("tool_calls"))
    if not calls or len(calls) < len(message["tool_calls"]):
        return message
    ids = [string(call.get("id")) for call in calls]
    attributed_calls = [
        attribute_call(
            call, attribution.parts, ids[attribution.ref] if attribution.ref is not None else ""
        )
        for call, attribution in zip(
            calls, chain(attributions, repeat(NO_ATTRIBUTION)), strict=False
        )
    ]
    return {**message, "tool_calls": attributed_calls}


def _read_parts(
    message: Json, display: Display | None, summary: Sequence[str]
) -> Iterator[AttributionPart]:
    """Return a message's reasoning, in parts if it has them.

    Its lists take precedence over its texts: they keep the parts apart.
    """
    entries = read_entries(message)
    kinds = {entry.kind for entry in entries if entry.text.strip()}
    for part in _read_text_parts(message, display):
        if part.kind in kinds:
            continue
        is_own_summary = part.kind == SUMMARY and part.text == PART_SEPARATOR.join(summary)
        yield from (
            (AttributionPart(SUMMARY, text) for text in summary) if is_own_summary else [part]
        )
    for entry in entries:
        if entry.text:
            yield AttributionPart(entry.kind, entry.text)


def _read_text_parts(message: Json, display: Display | None) -> Iterator[AttributionPart]:
    """Return the reasoning's text, as raw or summary."""
    found = find_reasoning(message)
    if found is None:
        return
    raw, summary = _read_raw_and_summary(message, display)
    if found.native or (display is not None and not display.show_raw):
        yield AttributionPart(SUMMARY, found.text)
    elif raw and summary:
        yield AttributionPart(RAW, raw)
        yield AttributionPart(SUMMARY, summary)
    else:
        yield AttributionPart(RAW, found.text)


def _read_raw_and_summary(message: Json, display: Display | None) -> tuple[str, str]:
    """Return raw reasoning and the summary next to it, both empty unless a message shows both."""
    fields = ReasoningFields(display or Display())
    raw = string(message.get(fields.raw_field))
    summary = string(message.get(fields.summary_field))
    may_differ = display is None or not display.is_plain
    return (raw, summary) if may_differ and raw != summary else ("", "")


# The entries of a message's lists of reasoning, which keep the parts of its text apart

ENTRY_KINDS: dict[str, tuple[AttributionKind, str]] = {
    "reasoning.text": (RAW, "text"),
    "reasoning.summary": (SUMMARY, "summary"),
    "reasoning.encrypted": (REDACTED, "data"),
    "thinking": (RAW, "thinking"),
    "redacted_thinking": (REDACTED, "data"),
}
"""Types of entries: the kind of reasoning, and the key of its text."""


class ReasoningEntry(NamedTuple):
    kind: AttributionKind
    text: str
    part: Hashable  # in a stream, entries with the same value are pieces of one
    signed: bool  # it has a signature, which ends it


def read_entries(message: Json) -> list[ReasoningEntry]:
    """Read the entries of a delta or a message, from the first list that has any.

    A blob of Abridge's has no text: it stands for the whole message, and comes last.
    """
    for name in LIST_FIELDS:
        found = [
            _read_entry(entry)
            for entry in objects(message.get(name))
            if _entry_type(entry) in ENTRY_KINDS
        ]
        if found:
            return found
    return []


def _read_entry(entry: Json) -> ReasoningEntry:
    kind, key = ENTRY_KINDS[_entry_type(entry)]
    index, text = entry.get("index"), string(entry.get(key))
    part = _entry_type(entry), index if isinstance(index, int) else None
    return ReasoningEntry(
        kind, "" if is_envelope(text) else text, part, signed=bool(entry.get("signature"))
    )


def _entry_type(entry: Json) -> str:
    return string(entry.get("type"))
