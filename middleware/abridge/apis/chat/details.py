"""Say what the choices of an answer hold, in detail, for clients of another API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from abridge.apis.chat.chunks import ARGUMENTS_FIELDS, kind_of_call
from abridge.apis.chat.errors import read_finish_error
from abridge.apis.chat.reasoning import REASONING_ITEM, StateEntry, get_delta
from abridge.apis.endings import reason_of_parts
from abridge.apis.json import as_object, dumps, objects, string
from abridge.core.conversation import Json
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
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
)
from abridge.stages.tags import MAX_LEADING_BLANKS

LEGACY_CALL = -1
"""The index of the only call that `function_call` has, which `tool_calls` replaced."""

MAX_NAMELESS = 1 << 16
"""Characters of arguments for which a call waits for its name."""

EXPLICIT_REASONS: Mapping[str, FinishReason] = {
    "length": "length",
    "content_filter": "content_filter",
}
"""Finish reasons to pass on. Any other means `tool_calls` if there were calls, else `stop`."""

STOP_SEQUENCE_FIELDS = ("stop_reason", "matched_stop")
"""Fields beside the finish reason that name the stop sequence, as vLLM and SGLang have them; a
number there is a token's id (vllm/entrypoints/openai/chat_completion/protocol.py; sglang
entrypoints/openai/protocol.py)."""


@dataclass(slots=True)
class ChunkPiece:
    """An event, and the choices that go into its frame."""

    event: Event
    choices: list[Json] | None = None  # None: the event has no frame


class AnswerDetails:
    """Say in detail, in events without frames, what the pieces of one choice hold: its text with
    log probabilities, its refusal, each fragment of a call as a piece of its call, opaque state
    after the reasoning it belongs to, its sources, and the finish reason. `listed` are sources that
    no choice names."""

    def __init__(self, lane: int, listed: list[CitationDelta]) -> None:
        self._lane = lane
        self.calls = ToolCallFragments(lane)
        self._listed = listed
        self._finish_reported = False
        self._held_blank = ""
        self._citations: list[CitationDelta] = []  # held until the text ends
        self._has_cited = False
        self._has_reasoned = False

    def read(
        self, pieces: list[ChunkPiece], choice: Json, state: list[StateEntry], *, was_open: bool
    ) -> list[Event]:
        """Read the pieces that were made of a choice, with opaque state for the open stretch."""
        events = self.list_events(pieces, choice)
        kinds = set(map(type, events))
        opens = ReasoningStarted in kinds
        if not (was_open or opens or kinds.isdisjoint(_THOUGHTS)):
            events = self._hold_blank(events)
        if state and was_open:
            events = insert_state(events, state, self._lane)
        if opens:
            self._release_blank(events)
        return [*events, *self._read_finish(choice)]

    def cite(self, events: list[Event], named: list[CitationDelta]) -> list[Event]:
        """Add the sources at the end of the text: before the first call, or the finish.

        Those that are listed beside the choices are more of the same where some are annotated.
        Reasoning may have stood in the text, and moved all passages.
        """
        kinds = list(map(type, events))
        self._citations += named
        self._has_reasoned |= ReasoningStarted in kinds
        ends = [kinds.index(kind) for kind in (ToolCallDelta, Finished) if kind in kinds]
        if not ends:
            return events
        place, citations, self._citations = min(ends), self._citations, []
        if isinstance(events[-1], Finished) and not (citations or self._has_cited):
            citations = self._listed
        self._has_cited = self._has_cited or bool(citations)
        if self._has_reasoned:
            citations = [replace(citation, passage=None) for citation in citations]
        return [*events[:place], *citations, *events[place:]]

    def list_events(self, pieces: list[ChunkPiece], choice: Json) -> list[Event]:
        """List the events of pieces. One of the answer says all that is in its piece; one that only
        carries a frame is left out."""
        events: list[Event] = []
        for piece in pieces:
            event, piece_choice = piece.event, (piece.choices or [{}])[0]
            if isinstance(event, ContentDelta):
                is_whole = piece_choice is choice
                events += self._read_answer(event.text, piece_choice, is_whole=is_whole)
            elif isinstance(event, ReasoningDelta):
                events += [event] if event.text else []
            elif not isinstance(event, Passthrough):
                events.append(event)
        return events

    def _read_answer(self, text: str, choice: Json, *, is_whole: bool) -> Iterator[Event]:
        delta = get_delta(choice)
        logprobs = read_logprobs(choice, "content")
        if not (is_whole or "".join(string(entry.get("token")) for entry in logprobs) == text):
            logprobs = ()  # they cover reasoning, too
        if text:
            yield ContentDelta(self._lane, None, text, logprobs)
        if refusal := string(delta.get("refusal")):
            logprobs = read_logprobs(choice, "refusal")
            yield RefusalDelta(self._lane, None, logprobs=logprobs, refusal=refusal)
        yield from self.calls.read(delta)

    def _read_finish(self, choice: Json) -> list[Event]:
        """End the choice at its first finish reason."""
        reason = choice.get("finish_reason")
        if not reason or self._finish_reported:
            return []
        self._finish_reported = True
        if read_finish_error(choice) is not None:
            return []  # the error is reported instead
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
        return [event for event in events if type(event) not in _THOUGHTS]

    def _release_blank(self, events: list[Event]) -> None:
        first = next((event for event in events if isinstance(event, ReasoningDelta)), None)
        if first is not None:
            first.text, self._held_blank = self._held_blank + first.text, ""


_THOUGHTS: frozenset[type[Event]] = frozenset({ReasoningDelta, NativeSummary})


def read_logprobs(choice: Json, name: str) -> Sequence[Mapping[str, Any]]:
    logprobs = choice.get("logprobs")
    return objects(logprobs.get(name)) if isinstance(logprobs, dict) else ()


def insert_state(events: list[Event], entries: list[StateEntry], lane: int) -> list[Event]:
    """Insert opaque state into a choice's events, each after the reasoning it belongs to: that is
    split by entry, if it has the text of all of them."""
    thoughts = (
        (place, event)
        for place, event in enumerate(events)
        if isinstance(event, ReasoningDelta | NativeSummary)
    )
    place, thought = next(thoughts, (-1, None))
    text = "".join(entry.text for entry in entries)
    is_split = thought is not None and thought.text == text
    inserted: list[Event] = []
    for entry in entries:
        if thought is not None and is_split and entry.text:
            inserted.append(replace(thought, text=entry.text))
        if entry.data:
            inserted.append(ProviderState(lane, None, REASONING_ITEM, entry.data, entry.signs))
    return [*events[: place + (not is_split)], *inserted, *events[place + 1 :]]


@dataclass(slots=True)
class _ReadCall:
    id: str
    number: int | None = None  # counts the calls reported; None until its name has come
    custom: bool = False
    waiting: list[str] = field(default_factory=list)  # arguments that came before the name
    room_left: int = MAX_NAMELESS
    lacks_arguments: bool = True  # a function that has had no arguments so far


class ToolCallFragments:
    """Read the calls of one choice. An index that comes again with another id and a name begins
    another call."""

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._by_index: dict[int, _ReadCall] = {}
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
            yield from self._read_fragment({"index": LEGACY_CALL, "function": legacy})

    def proceed(self, index: int, text: str, *, custom: bool) -> ToolCallDelta:
        """Read more arguments of a call that was reported."""
        call = self._by_index[index]
        call.lacks_arguments = call.lacks_arguments and not (custom or text.strip())
        number = call.number or 0
        return ToolCallDelta(self._lane, None, call_index=number, arguments=text, custom=custom)

    def _read_fragment(self, fragment: Json) -> Iterator[ToolCallDelta]:
        kind = kind_of_call(fragment)
        custom, payload = kind == "custom", as_object(fragment.get(kind))
        name = string(payload.get("name"))
        text = _format_arguments(payload.get(ARGUMENTS_FIELDS[kind]))
        call = self._find_call(fragment["index"], string(fragment.get("id")), name)
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

    def _find_call(self, index: int, identity: str, name: str) -> _ReadCall:
        known = self._by_index.get(index)
        begins = known is None or (name and identity and known.id not in ("", identity))
        if known is None or begins:
            known = self._by_index[index] = _ReadCall(identity)
            self._calls.append(known)
        known.id = known.id or identity
        return known


def _stop_sequence(choice: Json) -> str:
    return next(filter(None, (string(choice.get(name)) for name in STOP_SEQUENCE_FIELDS)), "")


def _format_arguments(arguments: Any) -> str:
    """Return arguments as JSON text; some servers give them as an object."""
    return dumps(arguments).decode() if isinstance(arguments, dict) else string(arguments)
