"""Attribute reasoning to the tool calls of a Chat Completions answer.

A choice is a turn. Frames of upstream's are read for what their events do not say: the entries of
lists of reasoning, which keep the parts of its text apart, and the fragments that begin calls. A
whole message does not show the order of reasoning and calls, so all of its reasoning is attributed
to its first call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from abridge.apis import sse
from abridge.apis.attribution_fields import attribute_call
from abridge.apis.chat.reasoning import (
    LIST_FIELDS,
    PART_SEPARATOR,
    REASONING_ITEM,
    find_reasoning,
    get_delta,
    get_index,
)
from abridge.apis.display import Display, is_envelope
from abridge.apis.json import dumps, loads_exact, objects, parse_object, string
from abridge.core.answer import Attribution, AttributionKind, AttributionPart
from abridge.core.conversation import Json
from abridge.core.events import ContentDelta, Event, NativeSummary, ReasoningDelta
from abridge.stages.attribution import (
    RAW,
    REDACTED,
    SUMMARY,
    Attributor,
    CallAttribution,
    LaneAttributor,
)

_CALLS_NEEDLE = b'"tool_calls"'

_DETAILS_NEEDLE, _BLOCKS_NEEDLE = (f'"{name}"'.encode() for name in LIST_FIELDS)


class ChatCallAttribution(CallAttribution):
    """Attribute the calls of an answer; at most `limit` characters are kept of each choice."""

    def __init__(self, display: Display, limit: int) -> None:
        super().__init__(
            limit,
            shows_raw=display.show_raw,
            shows_summary=display.show_summary,
            native=display.native,
            joins_stretches=True,
        )
        self._choices: dict[int, _ChoiceFragments] = {}

    def note(self, event: Event) -> None:
        frame, lane = event.frame, event.lane
        if frame is None:
            super().note(event)
            return
        if _CALLS_NEEDLE in frame:
            event.frame = self._attribute_frame(frame)
        if lane is not None and (_DETAILS_NEEDLE in frame or _BLOCKS_NEEDLE in frame):
            self._note_entries(event, _read_frame_entries(frame, lane), lane)
        elif not isinstance(event, ContentDelta):
            super().note(event)

    def _note_entries(self, event: Event, entries: list[ReasoningEntry], lane: int) -> None:
        """Add the entries of the lists in an event's frame; they may hold no text to show."""
        kind = {ReasoningDelta: RAW, NativeSummary: SUMMARY}.get(type(event))
        is_shown = self._shows_raw if kind == RAW else self._shows_summary
        if not any(entry.text for entry in entries if entry.kind == kind):
            super().note(event)
        self._choice(lane).add_entries(entries, kind if is_shown else None)

    def _choice(self, lane: int) -> _ChoiceFragments:
        if lane not in self._choices:
            self._choices[lane] = _ChoiceFragments(self.turn(lane))
        return self._choices[lane]

    def _attribute_frame(self, frame: bytes) -> bytes:
        """Return the frame with its calls attributed; as it is, if it is nested too deep for
        that."""
        chunk = parse_object(sse.frame_data(frame) or b"", loads_exact) or {}
        try:
            changed = map_choices(chunk, self._attribute_delta)
            return frame if changed == chunk else sse.encode_frame(dumps(changed))
        except RecursionError:
            return frame

    def _attribute_delta(self, choice: Json) -> Json:
        delta = get_delta(choice)
        calls = objects(delta.get("tool_calls"))
        if not calls or len(calls) < len(delta["tool_calls"]):
            return choice
        state = self._choice(get_index(choice))
        fragments = [state.attribute(call, position) for position, call in enumerate(calls)]
        key = "delta" if choice.get("delta") is delta else "message"
        return {**choice, key: {**delta, "tool_calls": fragments}}


class _ChoiceFragments:
    """The entries and the fragments of calls in the frames of one choice."""

    def __init__(self, turn: LaneAttributor) -> None:
        self._turn = turn
        self._calls: dict[int, Attribution] = {}  # the last of each index
        self._signature_count = 0

    def add_entries(self, entries: list[ReasoningEntry], kind: AttributionKind | None) -> None:
        """Add reasoning of a kind from the entries of an event's frame, and redacted reasoning."""
        for entry in entries:
            if entry.kind == kind:
                part = entry.part, self._signature_count
                self._turn.add_reasoning(kind, entry.text, part=part, stretch=REASONING_ITEM)
            elif entry.kind == REDACTED and entry.text:
                self._turn.add_redacted(stretch=REASONING_ITEM)
            self._signature_count += entry.signed

    def attribute(self, call: Json, position: int) -> Json:
        """Return a call's fragment, with the attribution if it is the first of its call."""
        index, call_id = call.get("index"), string(call.get("id"))
        index = index if isinstance(index, int) else position
        known = self._calls.get(index)
        if known is None or _begins_another(call, call_id, known):
            attribution = self._calls[index] = self._turn.attribute_call()
            return attribute_call(call, attribution, call_id)
        known.call_id = known.call_id or call_id
        return attribute_call(call, Attribution(), call_id)


def _begins_another(call: Json, call_id: str, known: Attribution) -> bool:
    """Return whether a fragment, at the index of a call that is known, begins another: it has
    another id and a name."""
    payload = call.get("function") or call.get("custom")
    has_name = isinstance(payload, dict) and bool(payload.get("name"))
    return known.call_id not in ("", call_id) and bool(call_id and has_name)


def _read_frame_entries(frame: bytes, lane: int) -> list[ReasoningEntry]:
    """Read the entries of the lists in a frame, of one lane."""
    chunk = parse_object(sse.frame_data(frame) or b"") or {}
    choices = [choice for choice in objects(chunk.get("choices")) if get_index(choice) == lane]
    return [entry for choice in choices for entry in read_entries(get_delta(choice))]


# A whole message


def attribute_message(
    message: Json,
    display: Display,
    fields: tuple[str, str],
    summary: Sequence[str] = (),
    limit: int = sys.maxsize,
) -> Json:
    """Return the message with its calls attributed. `fields` hold raw reasoning and summary, where
    it has both; `summary` are the parts of a summary that Abridge made."""
    calls = objects(message.get("tool_calls"))
    if not calls or len(calls) < len(message["tool_calls"]):
        return message
    attributor = Attributor(limit, native=display.native)
    for number, part in enumerate(_read_parts(message, display, fields, summary)):
        if part.kind == REDACTED:
            attributor.add_redacted()
        else:
            attributor.add_reasoning(part.kind, part.text, part=number)
    attributed = [
        attribute_call(call, attributor.attribute_call(), string(call.get("id"))) for call in calls
    ]
    return {**message, "tool_calls": attributed}


def map_choices(body: Json, change: Callable[[Json], Json]) -> Json:
    """Return a chunk or a completion with `change` applied to its choices."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return body
    changed = [change(choice) if isinstance(choice, dict) else choice for choice in choices]
    return {**body, "choices": changed}


def _read_parts(
    message: Json, display: Display, fields: tuple[str, str], summary: Sequence[str]
) -> Iterator[AttributionPart]:
    """Return a message's reasoning, in parts if it has them.

    Its lists take precedence over its texts: they keep the parts apart.
    """
    entries = read_entries(message)
    kinds = {entry.kind for entry in entries if entry.text.strip()}
    for part in _read_text_parts(message, display, fields):
        if part.kind in kinds:
            continue
        is_own_summary = part.kind == SUMMARY and part.text == PART_SEPARATOR.join(summary)
        yield from (
            (AttributionPart(SUMMARY, text) for text in summary) if is_own_summary else [part]
        )
    for entry in entries:
        if entry.text:
            yield AttributionPart(entry.kind, entry.text)


def _read_text_parts(
    message: Json, display: Display, fields: tuple[str, str]
) -> Iterator[AttributionPart]:
    """Return the reasoning's text, as raw or summary. Two texts that differ are one of each, unless
    all is shown as upstream sends it."""
    found = find_reasoning(message)
    if found is None:
        return
    raw, summary = (string(message.get(name)) for name in fields)
    if found.native or not display.show_raw:
        yield AttributionPart(SUMMARY, found.text)
    elif raw and summary and raw != summary and not display.is_plain:
        yield AttributionPart(RAW, raw)
        yield AttributionPart(SUMMARY, summary)
    else:
        yield AttributionPart(RAW, found.text)


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
