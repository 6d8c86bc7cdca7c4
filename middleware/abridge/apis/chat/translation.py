"""Translate Chat Completions for clients of other APIs, into events without frames.

The pieces of a choice become events without frames: its text with log probabilities, its refusal,
each fragment of a call as a piece of its call, opaque state after the reasoning it belongs to, and
the finish reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from abridge.apis.chat.accumulator import ARGUMENTS_FIELDS, kind_of_call
from abridge.apis.chat.choice_reader import REASONING_ITEM, ChoiceReader, ChunkPiece
from abridge.apis.chat.citations import read_annotations, read_listed
from abridge.apis.chat.errors import read_finish_error
from abridge.apis.chat.reasoning import LIST_FIELDS, find_reasoning, get_delta
from abridge.apis.endings import reason_of_parts
from abridge.apis.json import as_object, dumps, objects, string
from abridge.core.conversation import Json
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    ErrorReported,
    Event,
    Finished,
    FinishReason,
    NativeSummary,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningStarted,
    RefusalDelta,
    ToolCallDelta,
    text_size,
)
from abridge.stages.tags import MAX_LEADING_BLANKS

EXPLICIT_REASONS: Mapping[str, FinishReason] = {
    "length": "length",
    "content_filter": "content_filter",
}
"""Finish reasons to pass on. Any other means `tool_calls` if there were calls, else `stop`."""

FIRST_CHOICE = 0
"""The choice that the sources are of which are listed beside all choices."""

STOP_SEQUENCE_FIELDS = ("stop_reason", "matched_stop")
"""Fields beside the finish reason that name the stop sequence, as vLLM and SGLang have them; a
number there is a token's id (vllm/entrypoints/openai/chat_completion/protocol.py; sglang
entrypoints/openai/protocol.py)."""


class TranslatedEvents:
    """Translate the pieces of all choices. See the protocol `Framing`."""

    carries_frames: ClassVar[bool] = False

    def __init__(self) -> None:
        self._choices: dict[int, ChoiceTranslation] = {}
        self._listed: list[CitationDelta] = []  # sources that no choice names
        self.failed = False

    def note_body(self, body: Json, /) -> None:
        self._listed = read_listed(body, FIRST_CHOICE) or self._listed

    def read_choice(
        self, reader: ChoiceReader, choice: Json, *, separate_finish: bool
    ) -> list[ChunkPiece]:
        translation = self._get_choice(reader)
        events = translation.read(reader, choice, separate_finish=separate_finish)
        listed = self._listed if reader.lane == FIRST_CHOICE else []
        events = translation.add_citations(events, reader, get_delta(choice), listed)
        if self.failed:
            events = [event for event in events if not isinstance(event, ErrorReported)]
        self.failed = self.failed or translation.failed
        return list(map(ChunkPiece, events))

    def flush_choice(self, reader: ChoiceReader) -> list[ChunkPiece]:
        return list(map(ChunkPiece, self._get_choice(reader).translate(reader.flush(), {})))

    def proceed_call(
        self, reader: ChoiceReader, index: int, key: str, text: str, _frame: bytes | None, /
    ) -> Event:
        custom = key == ARGUMENTS_FIELDS["custom"]
        return self._get_choice(reader).calls.proceed(index, text, custom=custom)

    def make_events(
        self, pieces: list[ChunkPiece], _chunk: Json, _frame: bytes | None, /
    ) -> list[Event]:
        return [piece.event for piece in pieces if not isinstance(piece.event, Passthrough)]

    def _get_choice(self, reader: ChoiceReader) -> ChoiceTranslation:
        if reader.lane not in self._choices:
            self._choices[reader.lane] = ChoiceTranslation(reader.lane)
        return self._choices[reader.lane]


class ChoiceTranslation:
    """Translate what the reader of one choice makes of its deltas."""

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self.calls = ToolCallFragments(lane)
        self._finish_reported = False
        self._held_blank = ""
        self._citations: list[CitationDelta] = []  # held until the text ends
        self._has_cited = False
        self._has_reasoned = False
        self.failed = False

    def add_citations(
        self, events: list[Event], reader: ChoiceReader, delta: Json, listed: list[CitationDelta]
    ) -> list[Event]:
        """Add the sources at the end of the text: before the first call, or the finish.

        Those that are listed beside the choices are more of the same where some are annotated.
        Reasoning may have stood in the text, and moved all passages.
        """
        named = read_annotations(delta, self._lane)
        self._citations += [one for one in named if reader.message.reserve(text_size(one))]
        self._has_reasoned |= any(isinstance(event, ReasoningStarted) for event in events)
        ends = (isinstance(event, ToolCallDelta | Finished) for event in events)
        place = next((place for place, is_end in enumerate(ends) if is_end), None)
        if place is None:
            return events
        citations, self._citations = self._citations, []
        if isinstance(events[-1], Finished) and not (citations or self._has_cited):
            citations = listed
        self._has_cited = self._has_cited or bool(citations)
        if self._has_reasoned:
            citations = [replace(citation, passage=None) for citation in citations]
        return [*events[:place], *citations, *events[place:]]

    def read(self, reader: ChoiceReader, choice: Json, *, separate_finish: bool) -> list[Event]:
        """Read a chunk's choice. Opaque state opens a stretch even if it comes alone."""
        delta = get_delta(choice)
        opening: list[Event] = []
        entries = read_state(delta)
        if entries and not (reader.reasoning_open or reader.finished):
            found = find_reasoning(delta)
            opening = [reader.open_reasoning(found.field if found is not None else "")]
        was_open = reader.reasoning_open
        pieces = reader.read(choice, separate_finish=separate_finish)
        events = self.translate(pieces, choice)
        opens = any(isinstance(event, ReasoningStarted) for event in events)
        if not (was_open or opens):
            events = self._hold_blank(events)
        if entries and was_open:
            events = insert_state(events, entries, self._lane, REASONING_ITEM)
        if opens:
            self._release_blank(events)
        return [*opening, *events, *self._read_finish(choice)]

    def translate(self, pieces: list[ChunkPiece], choice: Json) -> list[Event]:
        """Translate the pieces that a reader made of a choice."""
        return [event for piece in pieces for event in self._translate_piece(piece, choice)]

    def _translate_piece(self, piece: ChunkPiece, choice: Json) -> Iterator[Event]:
        event, piece_choice = piece.event, (piece.choices or [{}])[0]
        if isinstance(event, ContentDelta):
            yield from self._read_answer(event.text, piece_choice, whole=piece_choice is choice)
        elif not isinstance(event, Passthrough) and not (
            isinstance(event, ReasoningDelta) and not event.text
        ):
            yield event

    def _read_answer(self, text: str, choice: Json, *, whole: bool) -> Iterator[Event]:
        delta = get_delta(choice)
        logprobs = _read_logprobs(choice, "content")
        if not (whole or "".join(string(entry.get("token")) for entry in logprobs) == text):
            logprobs = ()  # they cover reasoning, too
        if text:
            yield ContentDelta(self._lane, None, text, logprobs)
        if refusal := string(delta.get("refusal")):
            logprobs = _read_logprobs(choice, "refusal")
            yield RefusalDelta(self._lane, None, logprobs=logprobs, refusal=refusal)
        yield from self.calls.read(delta)

    def _read_finish(self, choice: Json) -> list[Event]:
        """End the choice at its first finish reason."""
        reason = choice.get("finish_reason")
        if (error := read_finish_error(choice)) is not None:
            self._finish_reported = self.failed = True
            return [ErrorReported(None, None, error)]
        if not reason or self._finish_reported:
            return []
        self._finish_reported = True
        nameless = list(self.calls.report_nameless())
        if explicit := EXPLICIT_REASONS.get(string(reason)):
            return [*nameless, Finished(self._lane, None, explicit)]
        default = reason_of_parts(has_calls=self.calls.count > 0)
        finished = Finished(self._lane, None, default, _stop_sequence(choice))
        return [*nameless, *self.calls.finish(), finished]

    # Blank reasoning opens no stretch

    def _hold_blank(self, events: list[Event]) -> list[Event]:
        """Hold back blank reasoning for the stretch that comes next."""
        blank = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        self._held_blank += blank[: MAX_LEADING_BLANKS - len(self._held_blank)]
        return [event for event in events if not isinstance(event, ReasoningDelta | NativeSummary)]

    def _release_blank(self, events: list[Event]) -> None:
        first = next((event for event in events if isinstance(event, ReasoningDelta)), None)
        if first is not None:
            first.text, self._held_blank = self._held_blank + first.text, ""


def _read_logprobs(choice: Json, name: str) -> Sequence[Mapping[str, Any]]:
    logprobs = choice.get("logprobs")
    return objects(logprobs.get(name)) if isinstance(logprobs, dict) else ()


# Opaque state


class StateEntry(NamedTuple):
    """An entry of a list of reasoning."""

    text: str
    data: str  # the opaque state; empty if the entry has none
    signs: bool  # the state is a signature of the text


def read_state(message: Json) -> list[StateEntry]:
    """Read the entries of a list that holds opaque state; empty if no list does.

    `thinking_blocks` takes precedence over `reasoning_details`.
    """
    found = (
        [_read_entry(entry) for entry in objects(message.get(name))]
        for name in reversed(LIST_FIELDS)
    )
    return next((entries for entries in found if any(entry.data for entry in entries)), [])


def _read_entry(entry: Json) -> StateEntry:
    if string(entry.get("type")) in ("redacted_thinking", "reasoning.encrypted"):
        return StateEntry("", string(entry.get("data")), signs=False)
    text = next(filter(None, map(string, map(entry.get, ("thinking", "text", "summary")))), "")
    return StateEntry(text, string(entry.get("signature")), signs=True)


def insert_state(
    events: list[Event], entries: list[StateEntry], lane: int, item: int
) -> list[Event]:
    """Insert opaque state into a choice's events, each after the reasoning it belongs to."""
    position = next(
        (
            n
            for n, candidate in enumerate(events)
            if isinstance(candidate, ReasoningDelta | NativeSummary)
        ),
        None,
    )
    if position is None:
        return [*_make_state_events(entries, None, lane, item), *events]
    event = events[position]
    is_split = _get_text(event) == "".join(entry.text for entry in entries)
    unsplit = [] if is_split else [event]
    inserted = _make_state_events(entries, event if is_split else None, lane, item)
    return [*events[:position], *unsplit, *inserted, *events[position + 1 :]]


def _make_state_events(
    entries: list[StateEntry], event: Event | None, lane: int, item: int
) -> Iterator[Event]:
    """Make events of the state.

    With `event`, which holds the text of all entries, split that by entry, each followed by its
    state.
    """
    for entry in entries:
        if isinstance(event, ReasoningDelta | NativeSummary) and entry.text:
            yield replace(event, text=entry.text)
        if entry.data:
            yield ProviderState(lane, None, item, entry.data, entry.signs)


def _get_text(event: Event) -> str:
    return event.text if isinstance(event, ReasoningDelta | NativeSummary) else ""


# Tool calls


MAX_NAMELESS = 1 << 16
"""Characters of arguments for which a call waits for its name."""


@dataclass(slots=True)
class _ReadCall:
    id: str
    number: int | None = None  # counts the calls reported; None until its name has come
    custom: bool = False
    waiting: list[str] = field(default_factory=list)  # arguments that came before the name
    room_left: int = MAX_NAMELESS
    lacks_arguments: bool = True  # a function that has had no arguments so far


class ToolCallFragments:
    """Read the calls of one choice.

    A fragment belongs to the call of its index; without an index (Gemini) to that of its id; else
    to the last call, unless it names another function. An index that comes again with another id
    and a name begins another call.
    """

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._by_index: dict[int, _ReadCall] = {}
        self._by_id: dict[str, _ReadCall] = {}
        self._last: _ReadCall | None = None
        self._calls: list[_ReadCall] = []
        self._reported: list[_ReadCall] = []

    @property
    def count(self) -> int:
        """The number of calls reported so far."""
        return len(self._reported)

    def report_nameless(self) -> Iterator[ToolCallDelta]:
        """Report the calls that wait for their name, now that none will come."""
        for call in self._calls:
            if call.number is None and (call.id or "".join(call.waiting).strip()):
                yield self._report(call, "")

    def finish(self) -> Iterator[ToolCallDelta]:
        """End the calls: give `{}` to those without arguments, which some servers leave out."""
        for number, call in enumerate(self._reported):
            if call.lacks_arguments:
                yield ToolCallDelta(self._lane, None, call_index=number, arguments="{}")

    def read(self, delta: Json) -> Iterator[ToolCallDelta]:
        """Read the calls in a delta or a message."""
        for fragment in objects(delta.get("tool_calls")):
            yield from self._read_fragment(fragment)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            yield from self._read_fragment({"function": legacy})

    def proceed(self, index: int, text: str, *, custom: bool) -> ToolCallDelta:
        """Read more arguments of a call that was reported."""
        call = self._last = self._by_index[index]
        call.lacks_arguments = call.lacks_arguments and not (custom or text.strip())
        number = call.number or 0
        return ToolCallDelta(self._lane, None, call_index=number, arguments=text, custom=custom)

    def _read_fragment(self, fragment: Json) -> Iterator[ToolCallDelta]:
        kind = kind_of_call(fragment)
        custom, payload = kind == "custom", as_object(fragment.get(kind))
        name = string(payload.get("name"))
        text = _format_arguments(payload.get(ARGUMENTS_FIELDS[kind]))
        call = self._last = self._find_call(fragment.get("index"), string(fragment.get("id")), name)
        call.lacks_arguments = call.lacks_arguments and not (custom or text.strip())
        if call.number is not None:
            if text:
                yield ToolCallDelta(
                    self._lane, None, call_index=call.number, arguments=text, custom=custom
                )
            return
        call.custom = call.custom or custom
        call.waiting.append(text)
        call.room_left -= len(text)
        if name or call.room_left < 0:
            yield self._report(call, name)

    def _report(self, call: _ReadCall, name: str) -> ToolCallDelta:
        call.number = self.count
        self._reported.append(call)
        arguments, call.waiting = "".join(call.waiting), []
        return ToolCallDelta(
            self._lane,
            None,
            call_index=call.number,
            id=call.id,
            name=name,
            arguments=arguments,
            custom=call.custom,
        )

    def _find_call(self, index: Any, identity: str, name: str) -> _ReadCall:
        known = self._last if not (identity or name) else self._by_id.get(identity)
        if isinstance(index, int):
            known = self._by_index.get(index)
            if known is not None and name and identity and known.id not in ("", identity):
                known = None
        if known is None:
            known = _ReadCall(identity)
            self._calls.append(known)
        known.id = known.id or identity
        if identity:
            self._by_id[identity] = known
        if isinstance(index, int):
            self._by_index[index] = known
        return known


def _stop_sequence(choice: Json) -> str:
    return next(filter(None, (string(choice.get(name)) for name in STOP_SEQUENCE_FIELDS)), "")


def _format_arguments(arguments: Any) -> str:
    """Return arguments as JSON text; some servers give them as an object."""
    return dumps(arguments).decode() if isinstance(arguments, dict) else string(arguments)
